"""What is known of a session's files at each of its calls.

A file's content is taken from what says it best: an agent's copy, the whole text beside a
result, a call that wrote or read all of it. From the last of these on the edits are made again,
one after the other. An edit that does not fit makes what follows unknown, until something says
the content again; nothing is guessed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from store.conversation.touched import resolved
from store.engine.database import Database
from store.engine.values import decoded, number, text
from store.files.copies import Copy, NoCopy, copies_of
from store.files.effects import DoesNotFit, Effect, effect_of, text_read
from store.queries import sessions
from store.queries.touches import FileRow, FileUse, Places, Touches, touches
from store.queries.touches import places as places_of
from store.text.stored_json import as_dict, as_list

Origin = Literal["copy", "recorded", "written", "read", "replayed", "missing", "unknown"]
"""Where a content is from: an agent's copy; the whole text beside a result; the text that a call
wrote; the whole text that a call read; edits made again from one of these. ``missing``: there
was no file. ``unknown``: nothing says it."""
PointKind = Literal["found", "write", "edit", "delete", "move", "change", "seen"]
"""``found``: before the session's first change; ``seen``: changed by something else than a call
that is known, as a copy or a reading shows it; the others as in ``FileUse.kind``."""

MOST_BYTES = 256 << 20
"""Contents of one file that are kept in memory; older points beyond it are unknown."""
_IDS_PER_QUERY = 400
_DIGEST = 64
"""Characters of a SHA-256 as hex."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file's content as far as it is known.

    Attributes:
        origin: Where it is from.
        body: The bytes; None where there was no file or it is unknown.
        edits: How many edits were made again since it was known.
        source: What it was known from, in words; for unknown content, why it is.
    """

    origin: Origin
    body: bytes | None = None
    edits: int = 0
    source: str = ""

    @property
    def is_known(self) -> bool:
        """Whether it is known what the file held, or that there was none."""
        return self.origin != "unknown"

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes; empty where there are none."""
        return hashlib.sha256(self.body).hexdigest() if self.body is not None else ""

    def says_as(self, other: Content) -> bool:
        """Whether both are known and the same."""
        return self.is_known and other.is_known and self.body == other.body


UNKNOWN = Content("unknown", source="no call or copy says what was in it")
MISSING = Content("missing", source="there was no file")


@dataclass(frozen=True, slots=True)
class Point:
    """A file after one of the session's calls.

    Attributes:
        number: From 0; in order of time.
        kind: What the call did.
        use: The call; of ``found`` and ``seen``, the next one that touched the file, or None
            where none follows.
        at: Epoch ms; of a ``seen`` point, when the copy was made, if that is known.
        operation: What the agent's own journal calls it; empty where it has none.
    """

    number: int
    kind: PointKind
    use: FileUse | None
    at: int
    content: Content
    operation: str = ""

    @property
    def turn(self) -> int:
        """The number of its turn; 0 where it belongs to none."""
        return self.use.call.place.turn if self.use is not None else 0


@dataclass(slots=True)
class SessionFile:
    """A file that a session changed or read.

    Attributes:
        row: Its touches.
        copies: What its agent has of it.
        arrivals: Calls that moved another file here, with the key of that file.
    """

    row: FileRow
    copies: list[Copy] = field(default_factory=list)
    arrivals: list[tuple[str, FileUse]] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether a call changed it, or put it here."""
        return bool(self.arrivals) or any(
            use.is_change and use.call.outcome.done for use in self.row.uses)


@dataclass(slots=True)
class SessionFiles:
    """The files of a session.

    Attributes:
        touches: All that its calls touched.
        files: By resolved path.
        order: Each message's place.
        plain_readings: Whether what its agent's reading tools return is a file's text alone.
    """

    touches: Touches
    files: dict[str, SessionFile]
    order: Mapping[str, int]
    plain_readings: bool = False

    @property
    def places(self) -> Places:
        """The session's messages."""
        return self.touches.places


def session_files(db: Database, session_id: str, found: Touches | None = None) -> SessionFiles:
    """Return the files of a session, with the copies that its agent has of them.

    Args:
        db: The store.
        session_id: The session's id.
        found: What its calls touched, where that was read already.

    Raises:
        NotFound: The store has no such session.
    """
    found = touches(db, session_id) if found is None else found
    files = {key: SessionFile(row) for key, row in found.files.items()}
    root = found.places.root
    for row in found.files.values():
        for use in row.uses:
            if use.moved_to and use.call.outcome.done:
                target = resolved(use.moved_to, use.call.place.folder, root)
                made = files.setdefault(target, SessionFile(_empty_row(target, root)))
                made.arrivals.append((row.key, use))
    for copy in copies_of(db, found.places, list(files)):
        file = files.setdefault(copy.key, SessionFile(_empty_row(copy.key, root)))
        file.copies.append(copy)
    order = {place.message_id: at for at, place in enumerate(found.places.messages)}
    own = sessions.get(db, session_id)
    source = as_dict(decoded(own.metadata_json).get("source")) if own is not None else {}
    return SessionFiles(found, files, order, source.get("kind") in _PLAIN_READERS)


_PLAIN_READERS = frozenset({"gemini", "qwen", "pi", "copilot", "droid"})
"""Sources whose reading tools return a file's text and nothing around it."""


def _empty_row(key: str, root: str) -> FileRow:
    start = root.rstrip("/") + "/"
    return FileRow(key, key.removeprefix(start) if len(start) > 1 else key)


def points_of(db: Database, of: SessionFiles, key: str) -> list[Point]:
    """Return a file at each point of its session, oldest first.

    Args:
        db: The store.
        of: The session's files.
        key: The file.
    """
    return _points_of(db, of, key, frozenset())


def _points_of(
    db: Database, of: SessionFiles, key: str, moving: frozenset[str]
) -> list[Point]:
    """Return a file's points.

    Args:
        db: The store.
        of: The session's files.
        key: The file.
        moving: Files whose points are being read because they were moved here.
    """
    file = of.files.get(key)
    if file is None:
        return []
    uses = [use for use in file.row.uses if use.call.outcome.done]
    uses += [use for _, use in file.arrivals]
    parts = _parts_of(db, {use.call.part_id for use in uses})
    uses.sort(key=lambda use: _order_of(use, of, parts))
    walk = _Walk(parts, prose=of.places.prose, plain=of.plain_readings)
    arrived = {id(use): source for source, use in file.arrivals}
    waiting = _Waiting(file.copies, of.order, parts)
    for use in uses:
        walk.copies(waiting.before(use), use)
        source = arrived.get(id(use))
        if source is None:
            walk.use(use)
        else:
            before = [] if source in moving or len(moving) > 8 else _points_of(
                db, of, source, moving | {key})
            walk.arrive(use, before)
    walk.copies(waiting.rest(), None)
    return walk.points


def at_message(of: SessionFiles, points: Sequence[Point], message_id: str) -> Point | None:
    """Return a file as it was after a message and its calls; None without points.

    Args:
        of: The session's files.
        points: The file's points.
        message_id: The message.
    """
    place = of.order.get(message_id, len(of.order))
    is_last = place >= len(of.order) - 1
    at = 0 if is_last else of.places.messages[place].at
    found = points[0] if points else None
    for point in points[1:]:
        called = point.use is not None and of.order[point.use.call.place.message_id] <= place
        seen = point.kind == "seen" and (is_last or 0 < point.at <= at)
        if not called and not seen:
            break
        found = point
    return found


@dataclass(frozen=True, slots=True)
class _Part:
    index: int
    updated_at: int
    data: dict[str, Any]


def _parts_of(db: Database, part_ids: Iterable[str]) -> dict[str, _Part]:
    ids = sorted(filter(None, part_ids))
    found: dict[str, _Part] = {}
    for start in range(0, len(ids), _IDS_PER_QUERY):
        batch = ids[start : start + _IDS_PER_QUERY]
        marks = ", ".join(f"${place}" for place in range(1, len(batch) + 1))
        for part_id, kind, index, updated_at, data_json in db.connection.execute(
            f'SELECT id, type, "index", updated_at, data_json FROM chat_parts'
            f" WHERE id IN ({marks})",
            {str(place): value for place, value in enumerate(batch, 1)},
        ):
            data = {**decoded(text(data_json)), "type": text(kind)}
            found[part_id] = _Part(number(index), number(updated_at), data)
    return found


def _order_of(use: FileUse, of: SessionFiles, parts: Mapping[str, _Part]) -> tuple[int, int]:
    part = parts.get(use.call.part_id)
    place = of.order.get(use.call.place.message_id, 0)
    return place, part.index if part is not None else -1


class _Waiting:
    """Gives each copy at the call before which it was made."""

    def __init__(
        self, copies: Sequence[Copy], order: Mapping[str, int], parts: Mapping[str, _Part]
    ) -> None:
        self._order, self._parts = order, parts
        self._left = sorted(copies, key=lambda copy: copy.at or 0)

    def before(self, use: FileUse) -> list[Copy]:
        """Return the copies that were made before a call, and not before an earlier one."""
        if not use.is_change:
            ended = use.call.at
        else:
            part = self._parts.get(use.call.part_id)
            ended = max(use.call.at, part.updated_at if part is not None else 0)
        made: list[Copy] = []
        left: list[Copy] = []
        for copy in self._left:
            (made if self._is_before(copy, use, ended) else left).append(copy)
        self._left = left
        return made

    def _is_before(self, copy: Copy, use: FileUse, ended: int) -> bool:
        if copy.part_id:
            return copy.part_id == use.call.part_id
        if copy.message_id:
            place = self._order.get(copy.message_id, len(self._order))
            return place <= self._order.get(use.call.place.message_id, 0)
        return copy.at is not None and copy.at <= ended

    def rest(self) -> list[Copy]:
        """Return the copies that were made behind the last call."""
        return [copy for copy in self._left if not copy.part_id]


class _Walk:
    """Goes through a file's calls and keeps what is known of its content."""

    def __init__(self, parts: Mapping[str, _Part], *, prose: bool, plain: bool) -> None:
        self._parts, self._prose, self._plain = parts, prose, plain
        self._now = UNKNOWN
        self._kept = 0
        self.points: list[Point] = []

    def copies(self, copies: Iterable[Copy], use: FileUse | None) -> None:
        """Take what copies say of the time before a call."""
        known: set[tuple[str, str]] = set()
        for copy in copies:
            if (copy.kept_by, copy.name) in known:
                continue
            known.add((copy.kept_by, copy.name))
            try:
                body = copy.read()
            except NoCopy:
                continue
            said = Content("copy", body, source=f"{copy.kept_by} ({copy.name})")
            if body is None:
                said = replace(MISSING, source=f"{copy.kept_by}: there was no file")
            self._said(said, use, copy.at)

    def use(self, use: FileUse) -> None:
        """Take a call that touched the file."""
        part = self._parts.get(use.call.part_id)
        data = part.data if part is not None else {}
        if not use.is_change:
            whole = text_read(data, plain=self._plain)
            if whole is not None:
                source = f"the file as read in turn {use.call.place.turn}"
                self._said(Content("read", as_bytes(whole), source=source), use, None)
            return
        effect, noted = effect_of(data, use.number, prose=self._prose), _journaled(data, use)
        if effect.before is not None:
            source = f"beside the result in turn {use.call.place.turn}"
            self._said(Content("recorded", as_bytes(effect.before), source=source), use, None)
        elif effect.made or (noted is not None and noted.is_new):
            self._said(MISSING, use, None)
        elif noted is not None and noted.differs(noted.before, self._now):
            other = "something else changed it, as the agent's journal has another hash"
            self._said(replace(UNKNOWN, source=other), use, None)
        self._found(use)
        after = self._after(use, effect)
        if noted is not None:
            after = noted.checked(after)
        self._point(_kind_of(use), use, use.call.at, after, noted.operation if noted else "")

    def arrive(self, use: FileUse, source: Sequence[Point]) -> None:
        """Take a call that moved another file here."""
        self._found(use)
        moved = next((point for point in source if point.use is use and point.kind == "move"), None)
        before = source[moved.number - 1].content if moved is not None and moved.number else UNKNOWN
        if not before.is_known or before.body is None:
            before = UNKNOWN
        part = self._parts.get(use.call.part_id)
        effect = effect_of(part.data if part is not None else {}, use.number, prose=self._prose)
        if effect.apply is not None or effect.after is not None:
            self._now = before
            before = self._after(use, effect, moved=True)
        self._point("move", use, use.call.at, before)

    def _found(self, use: FileUse) -> None:
        """Make the first point, how the session found the file."""
        if not self.points:
            self._point("found", use, use.call.at, self._now)

    def _said(self, said: Content, use: FileUse | None, at: int | None) -> None:
        """Take a content that something says for the time before a call.

        Args:
            said: The content.
            use: The call; None behind the last one.
            at: When it was made, where that is known.
        """
        seen = self._now.origin in ("read", "replayed")
        if self._now.says_as(said) or (_nearly_same(self._now, said) and (
                seen or said.origin == "read")):
            if seen and said.origin in ("copy", "recorded"):
                # What was read or made again is what the copy holds.
                self._now = said
                if self.points:
                    self.points[-1] = replace(self.points[-1], content=said)
            return
        if self.points and not self._now.is_known and self.points[-1].kind not in (
            "delete", "found"):
            later = f"{said.source}, the next that says it"
            self.points[-1] = replace(self.points[-1], content=replace(said, source=later))
            self._now = said
        elif self.points:
            when = at if at is not None else use.call.at if use is not None else 0
            self._point("seen", use, when, said)
        else:
            self._now = said
            when = at if at is not None else use.call.at if use is not None else 0
            self._point("found", use, when, said)

    def _after(self, use: FileUse, effect: Effect, *, moved: bool = False) -> Content:
        """Return the content after a call.

        Args:
            use: The call.
            effect: What it did.
            moved: Whether the file is another one after it.
        """
        if use.kind == "delete" or (use.kind == "move" and use.moved_to and not moved):
            word = "moved" if use.kind == "move" else "deleted"
            return replace(MISSING, source=f"{word} in turn {use.call.place.turn}")
        if effect.after is not None:
            turn = use.call.place.turn
            if effect.is_written:
                source = f"the file as written in turn {turn}"
                return Content("written", as_bytes(effect.after), source=source)
            source = f"beside the result in turn {turn}"
            return Content("recorded", as_bytes(effect.after), source=source)
        if effect.apply is None:
            return replace(UNKNOWN, source="the call does not say what it changed")
        now = self._now
        if not now.is_known:
            return replace(UNKNOWN, source="what was in it before the edit is not known")
        before = None if now.body is None else now.body.decode("utf-8", "surrogateescape")
        try:
            body = as_bytes(effect.apply(before))
        except DoesNotFit as error:
            return replace(UNKNOWN, source=f"the edit of turn {use.call.place.turn} cannot be "
                                           f"made again: {error}")
        base = "an empty file" if now.origin == "missing" else now.source
        return Content("replayed", body, now.edits + 1, base)

    def _point(
        self, kind: PointKind, use: FileUse | None, at: int, content: Content, operation: str = ""
    ) -> None:
        self._now = content
        self._kept += len(content.body or b"")
        self.points.append(Point(len(self.points), kind, use, at, content, operation))
        for place, point in enumerate(self.points):
            if self._kept <= MOST_BYTES:
                break
            if point.content.body is not None and place < len(self.points) - 1:
                self._kept -= len(point.content.body)
                much = replace(UNKNOWN, source="there are too many large versions to keep")
                self.points[place] = replace(point, content=much)


@dataclass(frozen=True, slots=True)
class _Journaled:
    """What y-agent's journal says of a call and a file.

    Attributes:
        before: The SHA-256 of the file before the call, as hex; empty where it is not told.
        after: The same after the call.
        is_new: Whether there was no file.
    """

    operation: str
    before: str
    after: str
    is_new: bool

    @staticmethod
    def differs(digest: str, content: Content) -> bool:
        """Return whether a known content is another one than a hash says."""
        return bool(digest) and content.body is not None and content.digest != digest

    def checked(self, content: Content) -> Content:
        """Return a content after the call; unknown where its hash says that it is wrong."""
        if self.differs(self.after, content):
            return replace(UNKNOWN, source="the agent's journal has another hash of it")
        if self.after and content.body is not None:
            return replace(content, source=f"{content.source}, as the agent's journal confirms")
        return content


def _journaled(data: Mapping[str, Any], use: FileUse) -> _Journaled | None:
    own = as_dict(as_dict(data.get("resultProviderMetadata")).get("backscroll"))
    for noted in map(as_dict, as_list(own.get("file_mutations"))):
        if noted.get("absolute_path") == use.key:
            digests = [str(noted.get(key) or "").removeprefix("sha256:")
                       for key in ("before_hash", "after_hash")]
            before, after = (each if len(each) == _DIGEST else "" for each in digests)
            operation = str(noted.get("operation") or "")
            return _Journaled(operation, before, after, noted.get("is_new_file") is True)
    return None


def _nearly_same(one: Content, other: Content) -> bool:
    """Return whether two contents differ in what a reading tool may leave out at most."""
    if one.body is None or other.body is None:
        return False
    return _as_read(one.body) == _as_read(other.body)


def _as_read(body: bytes) -> bytes:
    return body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").rstrip(b"\n")


def _kind_of(use: FileUse) -> PointKind:
    kinds: dict[str, PointKind] = {
        "write": "write", "delete": "delete", "move": "move", "change": "change"}
    return kinds.get(use.kind, "edit")


def as_bytes(text: str) -> bytes:
    """Return a text as UTF-8; bytes that it was decoded from come back as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A point that an agent can go back to.

    Attributes:
        name: Its id or the name of its file.
        kept_by: The agent.
        message_id: The message before whose calls it was made.
        part_id: The call before which it was made; empty where it is at a message.
        at: Epoch ms.
        after: Whether it is the conversation up to and with the message, not before it.
    """

    name: str
    kept_by: str
    message_id: str
    part_id: str
    turn: int
    at: int
    after: bool = False


def checkpoints_of(db: Database, session_id: str) -> list[tuple[Checkpoint, int | None]]:
    """Return the checkpoints of a session, each with the index of its call in the message.

    The index is None where the checkpoint is before a message.

    Raises:
        NotFound: The store has no such session.
    """
    found = list(checkpoints(db, places_of(db, session_id)))
    ids = [each.part_id for each in found if each.part_id]
    parts = _parts_of(db, ids)
    return [(each, parts[each.part_id].index if each.part_id in parts else None)
            for each in found]


def checkpoints(db: Database, places: Places) -> Iterator[Checkpoint]:
    """Yield the checkpoints of y-agent and Gemini in a session, in its order.

    Gemini has two kinds: before a call that edits, and conversations that were saved by name.
    """
    yield from sorted(
        (*_checkpoints(db, places), *_saved(db, places)), key=lambda one: (one.at, one.message_id))


def _saved(db: Database, places: Places) -> Iterator[Checkpoint]:
    own = sessions.get(db, places.session_id)
    noted = as_dict(decoded(own.metadata_json).get("backscroll")) if own is not None else {}
    saved = [(each["tag"], each["message_source_id"])
             for each in map(as_dict, as_list(noted.get("checkpoints")))
             if isinstance(each.get("tag"), str) and isinstance(each.get("message_source_id"), str)]
    if not saved:
        return
    source_id = db.form.fact("m", "source.id")
    messages: dict[object, list[str]] = {}
    for message_id, name in db.connection.execute(
        f"SELECT m.id, {source_id} FROM chat_messages m WHERE m.session_id = $1"
        f" AND {source_id} IS NOT NULL", {"1": places.session_id},
    ).fetchall():
        messages.setdefault(name, []).append(message_id)
    turns = {place.message_id: place for place in places.messages}
    for tag, name in saved:
        for message_id in messages.get(name, ()):
            place = turns.get(message_id)
            if place is not None:
                yield Checkpoint(tag, "Gemini", message_id, "", place.turn, place.at, after=True)


def _checkpoints(db: Database, places: Places) -> Iterator[Checkpoint]:
    sql, noted, restored = db.sql, "'\"checkpoint\"'", "'\"restore_point\"'"
    turns = {place.message_id: place for place in places.messages}
    rows = db.connection.execute(
        "SELECT m.id, NULL, m.created_at, m.metadata_json FROM chat_messages m"
        f" WHERE m.session_id = $1 AND {sql.contains('m.metadata_json', noted)}"
        " UNION ALL SELECT m.id, p.id, p.created_at, p.data_json FROM chat_messages m"
        " JOIN chat_parts p ON p.message_id = m.id"
        f" WHERE m.session_id = $1 AND {sql.contains('p.data_json', restored)} ORDER BY 3, 1, 2",
        {"1": places.session_id},
    ).fetchall()
    for message_id, part_id, at, body in rows:
        found, place = decoded(text(body)), turns.get(message_id)
        if place is None:
            continue
        if part_id is None:
            point = as_dict(as_dict(found.get("backscroll")).get("checkpoint"))
            name, kept_by = point.get("checkpoint_id"), "y-agent"
        else:
            beside = as_dict(found.get("resultProviderMetadata")).get("backscroll")
            name, kept_by = as_dict(beside).get("restore_point"), "Gemini"
        if isinstance(name, str):
            yield Checkpoint(name, kept_by, message_id, part_id or "", place.turn, number(at))
