"""The files that a session's calls touched, and the commands that they ran.

A session's own calls count; each of its subagents is a session of its own. Messages that a
rewind hid and messages that a fork copied are read too, and marked. ``places`` is one pass over
the messages; ``read`` then takes them in batches, the newest first, between which other reads go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from store.conversation.outcomes import Outcome
from store.conversation.touched import (
    FileTouch,
    Touched,
    edit_blocks,
    may_touch,
    plain_name,
    resolved,
    touched,
)
from store.conversation.turns import starts_turn
from store.engine.database import Database
from store.engine.values import decoded, number, text
from store.errors import NotFound
from store.queries import sessions
from store.queries.details import messages_of
from store.queries.helpers import no_helpers
from store.text.diffs import DiffLine
from store.text.stored_json import as_dict

BATCH = 400
"""Messages whose parts are read in one go."""
COMMAND_CHARACTERS = 2_000
"""Characters of a command that a list of them keeps."""

LISTED = "change"
"""The kind of a file in an agent's own list of what differs after a step."""

By = Literal["agent", "user"]


@dataclass(frozen=True, slots=True)
class Place:
    """A message, and what holds for its calls.

    Attributes:
        turn: The number of its turn; that of the turn before where a rewind hid its prompt.
        folder: The working directory, where the message names one.
        shell: The command that the user typed as this message, empty for others.
    """

    message_id: str
    at: int
    turn: int
    hidden: bool
    copied: bool
    folder: str = ""
    shell: str = ""


@dataclass(frozen=True, slots=True)
class Places:
    """A session's messages in order.

    Attributes:
        root: The session's folder.
        prose: Whether edits are in the text of answers, as aider writes them.
        subagents: How many subagents the session started.
    """

    session_id: str
    root: str
    prose: bool
    subagents: int
    messages: list[Place]


@dataclass(frozen=True, slots=True)
class Call:
    """The call that touched a file or ran a command.

    Attributes:
        part_id: Its part; empty for a command that the user typed.
        at: When it was made, epoch ms.
    """

    place: Place
    part_id: str
    at: int
    tool: str
    outcome: Outcome

    @property
    def counts(self) -> bool:
        """Whether it belongs to the session as it is shown, and did what it was asked to."""
        return self.outcome.done and not self.place.hidden


@dataclass(frozen=True, slots=True)
class FileUse:
    """One touch of a file.

    Attributes:
        path: As the agent wrote it.
        key: The file, however it was spelled.
        lines: Lines added and removed, None where that is not recorded or nothing changed.
        number: Which of the files of its part it is, from 0.
    """

    call: Call
    path: str
    key: str
    kind: str
    moved_to: str
    lines: tuple[int, int] | None
    number: int

    @property
    def is_change(self) -> bool:
        """Whether the call asked to change the file."""
        return self.kind != "read"


@dataclass(frozen=True, slots=True)
class CommandUse:
    """A command that was run.

    Attributes:
        text: Its start, at most ``COMMAND_CHARACTERS``; all of it is ``command_text``.
        length: Characters of all of it.
        folder: Where it ran, resolved; empty where unknown.
    """

    call: Call
    text: str
    length: int
    folder: str
    by: By = "agent"


@dataclass(slots=True)
class FileRow:
    """A file, with all that was done to it, oldest first.

    Attributes:
        key: Its resolved path.
        shown: The path from the session's folder on, or ``key`` outside of it.
    """

    key: str
    shown: str
    uses: list[FileUse] = field(default_factory=list)

    def count(self, *kinds: str) -> int:
        """Return how many touches of these kinds there were that did what they should."""
        return sum(use.kind in kinds and use.call.counts for use in self.uses)

    @property
    def changes(self) -> int:
        """How many times the file was edited, written, moved or deleted."""
        return sum(use.is_change and use.call.counts for use in self.uses)

    @property
    def lines(self) -> tuple[int, int]:
        """Lines added and removed in all of its edits whose lines are recorded."""
        known = [use.lines for use in self.uses if use.is_change and use.call.counts and use.lines]
        return sum(plus for plus, _ in known), sum(minus for _, minus in known)

    @property
    def lines_known(self) -> bool:
        """Whether the lines of all its edits are recorded."""
        return all(
            use.lines is not None for use in self.uses if use.is_change and use.call.counts
        )

    @property
    def hidden(self) -> int:
        """How many touches a rewind hid."""
        return sum(use.call.place.hidden for use in self.uses)

    def ended(self, *statuses: str) -> int:
        """Return how many visible calls ended in one of these ways."""
        return sum(
            use.call.outcome.status in statuses and not use.call.place.hidden for use in self.uses
        )

    @property
    def last(self) -> FileUse:
        """The newest touch."""
        return self.uses[-1]


@dataclass(slots=True)
class Touches:
    """What was read so far of a session.

    Attributes:
        files: By resolved path.
        commands: Oldest first.
        done: How many of the messages were read.
    """

    places: Places
    files: dict[str, FileRow] = field(default_factory=dict)
    commands: list[CommandUse] = field(default_factory=list)
    done: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether all messages were read."""
        return self.done >= len(self.places.messages)

    @property
    def next_batch(self) -> tuple[int, int]:
        """Start and end of the messages to read next: a session is read from its end."""
        end = len(self.places.messages) - self.done
        return max(0, end - BATCH), end

    def add(self, found: Iterable[FileUse | CommandUse]) -> None:
        """Add what the messages of ``next_batch`` touched."""
        uses: dict[str, list[FileUse]] = {}
        commands: list[CommandUse] = []
        for use in found:
            if isinstance(use, CommandUse):
                commands.append(use)
            else:
                uses.setdefault(use.key, []).append(use)
        self.commands[:0] = commands
        for key, older in uses.items():
            row = self.files.get(key)
            if row is None:
                row = self.files[key] = FileRow(key, _from_root(key, self.places.root))
            row.uses[:0] = older
        self.done += min(BATCH, len(self.places.messages) - self.done)


def _from_root(key: str, root: str) -> str:
    start = root.rstrip("/\\") + "/"
    below = len(start) > 1 and key.replace("\\", "/").startswith(start.replace("\\", "/"))
    return key[len(start) :] if below else key


def places(db: Database, session_id: str) -> Places:
    """Return the messages of a session, to be read in batches.

    Raises:
        NotFound: The store has no such session.
    """
    row = sessions.get(db, session_id)
    if row is None:
        raise NotFound(f"the session {session_id} is no longer in the store")
    found: list[Place] = []
    turn = 0
    for message_id, role, hidden_at, at, metadata in messages_of(db, session_id):
        if isinstance(metadata.get("queued_at"), int | float):
            continue
        turn += starts_turn(role, metadata) and hidden_at is None
        own = as_dict(metadata.get("backscroll"))
        folder = metadata.get("cwd") or own.get("cwd")
        shell = own.get("shell") if metadata.get("origin") == "shell" else None
        found.append(Place(
            message_id, at, turn, hidden_at is not None, "inherited_from" in metadata,
            folder if isinstance(folder, str) else "",
            shell if isinstance(shell, str) and shell.strip() else "",
        ))  # fmt: skip
    source = as_dict(decoded(row.metadata_json).get("source"))
    return Places(
        session_id, row.workspace_root or "", source.get("kind") == "aider",
        _subagents(db, session_id), found,
    )


def _subagents(db: Database, session_id: str) -> int:
    rows = db.connection.execute(
        f"SELECT s.metadata_json FROM chat_sessions s WHERE s.parent_id = $1 AND {no_helpers(db)}",
        {"1": session_id},
    )
    kinds = (as_dict(decoded(metadata).get("lineage")).get("kind") for (metadata,) in rows)
    return sum(kind == "subagent" for kind in kinds)


def read(
    db: Database, of: Places, start: int, end: int, *, whole: bool = False
) -> list[FileUse | CommandUse]:
    """Return what some of a session's messages touched, in order.

    Args:
        db: The store.
        of: The session's messages.
        start: The first of them to read, from 0.
        end: The first of them not to read.
        whole: Keep all of a long command.
    """
    if of.prose:
        # An answer's edits are confirmed by a later message, so all messages are one batch.
        start, end = 0, len(of.messages) if end == len(of.messages) else 0
    batch = of.messages[start:end]
    if not batch:
        return []
    longest = None if whole else COMMAND_CHARACTERS
    parts: dict[str, list[_Part]] = {place.message_id: [] for place in batch}
    for part in _parts(db, list(parts), prose=of.prose):
        parts[part.message_id].append(part)
    if of.prose:
        return list(_uses_in_prose(of, batch, parts, longest))
    found: list[FileUse | CommandUse] = []
    for place in batch:
        uses: list[FileUse | CommandUse] = [*_typed(of, place, longest)]
        for part in parts[place.message_id]:
            touch = touched(part.data, (part.at, part.updated_at))
            if touch is not None:
                uses += _uses(of, place, part, touch, longest)
        found += _without_repeats(uses)
    return found


def _without_repeats(uses: list[FileUse | CommandUse]) -> Iterator[FileUse | CommandUse]:
    """Yield a message's uses without the listed changes that one of its calls made."""
    files = [use for use in uses if isinstance(use, FileUse)]
    known = {use.key for use in files if use.is_change and use.kind != LISTED and use.call.counts}
    for use in uses:
        if not isinstance(use, FileUse) or use.kind != LISTED:
            yield use
        elif use.key not in known:
            known.add(use.key)
            yield use


@dataclass(frozen=True, slots=True)
class _Part:
    id: str
    message_id: str
    at: int
    updated_at: int
    data: dict[str, Any]


def _parts(db: Database, message_ids: Sequence[str], *, prose: bool) -> Iterator[_Part]:
    """Yield the parts that may touch something, in order within each message."""
    marks = ", ".join(f"${place}" for place in range(1, len(message_ids) + 1))
    more = ", 'data-event', 'text'" if prose else ", 'data-patch'"
    rows = db.connection.execute(
        "SELECT id, message_id, created_at, updated_at, type, data_json FROM chat_parts"
        f" WHERE message_id IN ({marks})"
        f" AND (type LIKE 'tool-%' OR type IN ('dynamic-tool'{more}))"
        ' ORDER BY message_id, "index", id',
        {str(place): value for place, value in enumerate(message_ids, 1)},
    )
    wanted: dict[str, bool] = {}
    for part_id, message_id, at, updated_at, column, data_json in rows:
        kind = text(column) or ""
        if kind not in wanted:
            tool = kind.startswith("tool-")
            wanted[kind] = not tool or may_touch(plain_name(kind[5:]))
        if wanted[kind]:
            data = decoded(text(data_json))
            data["type"] = kind
            yield _Part(part_id, message_id, number(at), number(updated_at), data)


def _typed(of: Places, place: Place, longest: int | None) -> Iterator[CommandUse]:
    """Yield the command that the user typed as a message; how it ended is not recorded."""
    if place.shell:
        call = Call(place, "", place.at, "!", Outcome("ended", "typed by the user"))
        folder = resolved(place.folder, of.root) if place.folder else of.root
        yield CommandUse(call, place.shell[:longest], len(place.shell), folder, "user")


def _uses(
    of: Places, place: Place, part: _Part, touch: Touched, longest: int | None
) -> Iterator[FileUse | CommandUse]:
    call = Call(place, part.id, part.at, touch.tool, touch.outcome)
    folders = touch.folder, place.folder, of.root
    if touch.command is not None:
        named = next(filter(None, folders), "")
        folder = resolved(named, place.folder, of.root) if named else ""
        yield CommandUse(call, touch.command[:longest], len(touch.command), folder)
    for at, file in enumerate(touch.files):
        if file.is_use:
            yield _use(call, file, at, folders)


def _use(call: Call, file: FileTouch, at: int, folders: tuple[str, ...]) -> FileUse:
    return FileUse(
        call, file.path, resolved(file.path, *folders), file.kind, file.moved_to,
        file.counts() if file.is_change else None, at,
    )


def _uses_in_prose(
    of: Places, batch: Sequence[Place], parts: dict[str, list[_Part]], longest: int | None
) -> Iterator[FileUse | CommandUse]:
    """Yield what aider did: it prints which files it edited, after the answer with the edits."""
    asked: list[tuple[Place, _Part, FileTouch, int]] = []
    for place in batch:
        yield from _typed(of, place, longest)
        for part in parts[place.message_id]:
            if part.data["type"] == "text":
                blocks = edit_blocks(str(part.data.get("text") or ""))
                asked += ((place, part, file, at) for at, file in enumerate(blocks))
                continue
            touch = touched(part.data)
            for at, file in enumerate(touch.files if touch is not None else ()):
                edits = [one for one in asked if file.is_change and one[2].path == file.path]
                asked = [one for one in asked if one not in edits]
                for edit in edits or [(place, part, file, at)]:
                    call = Call(edit[0], edit[1].id, edit[1].at, "aider", Outcome("ok"))
                    yield _use(call, edit[2], edit[3], (edit[0].folder, of.root))


def diffs(
    db: Database, uses: Sequence[FileUse], *, prose: bool = False
) -> list[tuple[FileUse, list[DiffLine]]]:
    """Return the lines of each change of a file, in the order given.

    Args:
        db: The store.
        uses: Touches of the file; reads are left out.
        prose: Whether edits are in the text of answers (``Places.prose``).
    """
    changes = [use for use in uses if use.is_change]
    found: list[tuple[FileUse, list[DiffLine]]] = []
    for start in range(0, len(changes), BATCH):
        batch = changes[start : start + BATCH]
        data = _data_of(db, {use.call.part_id for use in batch})
        found += ((use, _lines(data.get(use.call.part_id, {}), use, prose)) for use in batch)
    return found


def _lines(data: dict[str, Any], use: FileUse, prose: bool) -> list[DiffLine]:
    files: Sequence[FileTouch] = ()
    if prose and data.get("type") == "text":
        files = list(edit_blocks(str(data.get("text") or "")))
    elif (touch := touched(data)) is not None:
        files = touch.files
    lines = files[use.number].diff() if use.number < len(files) else []
    # The heading of a hunk is shown between hunks, not before the first one.
    return lines[1:] if lines and lines[0].sign == "@" and not lines[0].text else lines


def command_text(db: Database, use: CommandUse, of: Places) -> str:
    """Return all of a command.

    Args:
        db: The store.
        use: The command as the list has it.
        of: The session's messages.
    """
    if len(use.text) == use.length:
        return use.text
    if not use.call.part_id:
        return next((place.shell for place in of.messages
                     if place.message_id == use.call.place.message_id), use.text)
    touch = touched(_data_of(db, {use.call.part_id}).get(use.call.part_id, {}))
    return touch.command if touch is not None and touch.command is not None else use.text


def _data_of(db: Database, part_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    ids = list(part_ids)
    marks = ", ".join(f"${place}" for place in range(1, len(ids) + 1))
    rows = db.connection.execute(
        f"SELECT id, type, data_json FROM chat_parts WHERE id IN ({marks})",
        {str(place): value for place, value in enumerate(ids, 1)},
    )
    return {
        part_id: {**decoded(text(data_json)), "type": text(kind)}
        for part_id, kind, data_json in rows
    }


def touches(db: Database, session_id: str, *, whole: bool = False) -> Touches:
    """Return all that a session touched, in one go.

    Args:
        db: The store.
        session_id: The session's id.
        whole: Keep all of long commands.

    Raises:
        NotFound: The store has no such session.
    """
    found = Touches(places(db, session_id))
    while not found.is_whole:
        found.add(read(db, found.places, *found.next_batch, whole=whole))
    return found
