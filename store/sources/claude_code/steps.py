"""How a long session file is read in steps: what a place to continue from depends on.

Later rows depend on earlier ones by few threads: they name them by id, and the mapping knows
what came before (the model, the prompt, the branch). Rows that name anything that is before
the window, such as a rewind to an old prompt, have the file read whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from store.sources.base import steps
from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.protocol import FileStamp, Known, Place, Problem, Unit
from store.sources.base.requests import words_of
from store.sources.base.steps import CannotGoOn, Found, LongReader, Stop
from store.sources.base.values import mapping
from store.sources.claude_code.agents import ROWS, RUN_MARK, agent_source_id
from store.sources.claude_code.costs import CostNote
from store.sources.claude_code.forks import marked_origin
from store.sources.claude_code.neighbours import SUMMARIES_UNTIL, version_of
from store.sources.claude_code.reader import Earlier, SessionReader
from store.sources.claude_code.references import NamingTranscript, defined_by, named_by
from store.sources.claude_code.rows import Row
from store.sources.claude_code.sidefiles import ARCHIVED, RESULTS, TITLE
from store.sources.claude_code.transcript import Transcript
from store.sources.claude_code.tree import abandoned
from store.sources.claude_code.usage import SYNTHETIC

MOST_TRIED = 200
"""Rows that are looked at before giving up."""
CONTEXT_BYTES = 8 * 1024 * 1024
"""Bytes of all earlier records that a place may need."""
_LATER = 1 << 60
_AT = attrgetter("at")


@dataclass(slots=True)
class SessionStop(Stop):
    """Where a session's file is continued, and what later rows are read with.

    Attributes:
        others: Stamps of the unit's other files.
        title: Of ``custom-title.json``.
        created_at: When its own rows begin, where it comes from another session.
        children: The subagents' sessions by the ids of the calls that started them.
        agents: The ids of those subagents and of their workflows' runs.
        elsewhere: Path, line and reason of the problems of the unit's other files.
    """

    others: list[list[Any]] = field(default_factory=list)
    title: str | None = None
    archived_at: int | None = None
    created_at: int | None = None
    children: dict[str, str] = field(default_factory=dict)
    agents: list[str] = field(default_factory=list)
    elsewhere: list[list[Any]] = field(default_factory=list)

    def keep(self, stop: Any) -> None:
        """Take from an earlier stop at the same window what is before it."""
        Stop.keep(self, stop)
        self.children, self.agents = stop.children, stop.agents


class SessionSteps(LongReader[Transcript, SessionReader, SessionStop]):
    """Reads one session in steps."""

    def __init__(
        self,
        make_reader: Callable[[Unit], SessionReader],
        line_limit: int,
        unit: Unit,
        known: Known,
    ) -> None:
        """Start with nothing read.

        Args:
            make_reader: Returns a reader of the unit that has read nothing.
            line_limit: Bytes of the longest line that is read.
            unit: The unit as it is now.
            known: Tells whether names were passed.
        """
        name = unit.key.rpartition("/")[2] + ROWS
        found = [one for one in unit.stamps if os.path.basename(one.path) == name]
        super().__init__(unit, found[0] if found else None, known)
        self._make_reader, self._line_limit = make_reader, line_limit
        self._moved: list[str] = []
        self._before: SessionStop | None = None

    def stop(self, state: dict[str, Any]) -> SessionStop:
        """Return a stop from its state."""
        return SessionStop(**state)

    def reader(self) -> SessionReader:
        """Return a reader of the unit that has read nothing."""
        return self._make_reader(self.unit)

    def open(self, path: str, **begin: int) -> NamingTranscript:
        """Return the session's file with nothing read."""
        return NamingTranscript(path, self._line_limit, **begin)

    def file_of(self, reader: SessionReader) -> Transcript | None:
        """Return the session's file."""
        return reader.main

    def put(self, reader: SessionReader, file: Transcript, stop: SessionStop | None) -> None:
        """Give a reader the session's file, and what is known of what is before it.

        Args:
            reader: A reader that has read nothing.
            file: The session's file.
            stop: Where it was continued; None for the beginning.
        """
        reader.main = file
        if stop is not None:
            reader.earlier = Earlier(stop.lineage_draft, stop.created_at)
            reader.side_files.title = stop.title
            reader.side_files.archived_at = stop.archived_at

    def begin(self, stop: SessionStop | None) -> None:
        """Note which side files moved.

        Raises:
            CannotGoOn: Files of agents came or moved.
        """
        before = {one[0]: one for one in stop.others} if stop is not None else {}
        self._moved, self._before = [], stop
        if before.keys() - {one.path for one in self.others}:
            raise CannotGoOn
        for one in self.others:
            if _listed(one) != before.get(one.path):
                if not _is_result(one.path) and os.path.basename(one.path) not in (TITLE, ARCHIVED):
                    raise CannotGoOn
                self._moved.append(one.path)

    def take_others(self, reader: SessionReader) -> None:
        """Read the side files that moved.

        Raises:
            CannotGoOn: One cannot be read.
        """
        if not all([reader.side_files.take(path) for path in self._moved]):
            raise CannotGoOn
        before = self._before.elsewhere if self._before is not None else ()
        self.elsewhere = [Problem(*one) for one in before if one[0] not in self._moved]
        self.elsewhere += reader.side_files.problems

    def attach(self, reader: SessionReader, draft: SessionDraft) -> None:
        """Leave out of a draft the files of ``tool-results/`` that did not move."""
        side, moved = reader.side_files.attachments, {os.path.basename(one) for one in self._moved}
        draft.attachments = [one for one in draft.attachments if one not in side]
        draft.attachments += [one for one in side if one.name in moved]

    def check(self, file: Transcript, stop: SessionStop | None) -> None:
        """Refuse rows that change what is before the window, or that are of old versions.

        Raises:
            CannotGoOn: There are such rows.
        """
        rows = file.rows
        if len(rows) <= file.context_rows or version_of(rows) < SUMMARIES_UNTIL:
            raise CannotGoOn
        session = self.unit.key.rpartition("/")[2]
        first = rows[file.context_rows].number
        for row in file.seldom:
            if row.number >= first and (
                row.data.get("isSidechain") or marked_origin(row, session)
            ):
                raise CannotGoOn
        if stop is None:
            return  # nothing is before
        names = _later_references(file)
        # What an agent was started by is known; that it is named again changes nothing.
        if names is None or self.known(names.difference(stop.agents)):
            raise CannotGoOn

    def holds(self, file: Transcript) -> bool:
        """Return whether the rows after a place name nothing of its context."""
        return _later_references(file) is not None

    def build(self, reader: SessionReader, stop: SessionStop | None) -> SessionDraft | None:
        """Return the session, its calls linked to the agents that they started."""
        drafts = reader.build()
        if len(drafts) != 1:
            return None
        children = stop.children if stop is not None else {}
        for message in drafts[0].messages if children else ():
            for part in message.parts:
                child = children.get(part.tool_call_id or "")
                if child is not None:
                    bag = part.data.setdefault("resultProviderMetadata", {})
                    bag.setdefault("backscroll", {}).setdefault("child_session_source_id", child)
        return drafts[0]

    def check_draft(
        self, reader: SessionReader, draft: SessionDraft, stop: SessionStop | None
    ) -> None:
        """Refuse a session that is, or may become, a fork.

        Args:
            reader: What was read.
            draft: The session made of it.
            stop: Where the reading went on; None for the beginning.

        Raises:
            CannotGoOn: It is one.
        """
        if stop is None and (draft.lineage is not None or not reader.is_origin_settled()):
            raise CannotGoOn

    def can_grow(self, reader: SessionReader, draft: SessionDraft) -> bool:
        """Return whether a session that was read whole can be continued."""
        rows = reader.main.rows if reader.main is not None else []
        return (
            bool(rows)
            and version_of(rows) >= SUMMARIES_UNTIL
            and reader.is_origin_settled()
            and not (reader.main is not None and reader.main.has_sidechains)
        )

    def places(self, file: Transcript, messages: Sequence[MessageDraft]) -> Iterator[Found]:
        """Yield rows with a window behind them that nothing looks past, the last one first."""
        return places(file, messages)

    def names(self, file: Transcript, until: int) -> set[str]:
        """Return the ids that rows define."""
        return set[str]().union(*map(defined_by, file.rows[file.context_rows : until]))

    def details(self, reader: SessionReader, draft: SessionDraft) -> dict[str, Any]:
        """Return what the side files say, and where the session begins."""
        return {
            "others": [_listed(one) for one in self.others],
            "title": reader.side_files.title,
            "archived_at": reader.side_files.archived_at,
            "created_at": None if draft.lineage is None else draft.created_at,
            "elsewhere": [[one.path, one.line, one.reason] for one in self.elsewhere],
        }

    def note(
        self,
        state: SessionStop,
        place: Place,
        stop: SessionStop | None,
        reader: SessionReader,
        draft: SessionDraft,
    ) -> None:
        """Note the agents whose calls are before the place, and the ids of all agents.

        Args:
            state: The new stop.
            place: Its place.
            stop: Where this reading went on; None for the beginning.
            reader: What was read.
            draft: The session made of it.
        """
        if stop is not None:
            state.children, state.agents = stop.children, stop.agents
            return
        state.children = _children_in(draft)
        names = set(place.names)
        for key in reader.agents:
            own = set(key.split(RUN_MARK))
            names |= own
            if agent_source_id(key, reader.session_id) in state.children.values():
                state.agents += sorted(own)
        place.names = names


def _listed(stamp: FileStamp) -> list[Any]:
    return [stamp.path, stamp.inode, stamp.size, stamp.mtime_ns]


def _is_result(path: str) -> bool:
    return os.path.basename(os.path.dirname(path)) == RESULTS


def _children_in(draft: SessionDraft) -> dict[str, str]:
    """Return the sessions of subagents that a session's calls started."""
    found: dict[str, str] = {}
    for message in draft.messages:
        for part in message.parts:
            own = mapping(mapping(part.data.get("resultProviderMetadata")).get("backscroll"))
            child = own.get("child_session_source_id")
            if part.tool_call_id is not None and isinstance(child, str):
                found[part.tool_call_id] = child
    return found


def places(
    transcript: Transcript, messages: Sequence[MessageDraft]
) -> Iterator[Found]:
    """Yield the places with a self-contained window behind them, the last one first.

    Args:
        transcript: What was read; its context was before the place that was read from.
        messages: What was made of it.
    """
    rows = transcript.rows
    ends = _Ends(transcript)
    tried = 0
    for index in ends.candidates(_last_row(transcript)):
        row = rows[index]
        tried += 1
        if tried > MOST_TRIED:
            break
        message = _message_of(row, messages)
        if message is None or not ends.keeps_hidden(index):
            continue
        numbers = sorted(_context(transcript, index, messages[:message]))
        if sum(len(transcript.raw(number)) for number in numbers) > CONTEXT_BYTES:
            return
        yield Found(index, row.number, message, numbers)


def _later_references(file: Transcript) -> set[str] | None:
    """Return ``NamingTranscript.later_references`` of a file that ``SessionSteps.open`` made.

    Only of such files is anything behind a place asked; one that was read whole has none.
    """
    assert isinstance(file, NamingTranscript), "the file was read whole, from no place on"
    return file.later_references()


def _last_row(transcript: Transcript) -> int:
    """Return the last row that has a window behind it; -1 where none has."""
    size, counted = 0, transcript.first + len(transcript.records)
    for index in range(len(transcript.rows) - 1, transcript.context_rows, -1):
        number = transcript.rows[index].number
        size += sum(len(transcript.raw(each)) + 1 for each in range(number, counted))
        counted = number
        if size >= steps.WINDOW_BYTES:
            return index
    return -1


class _Ends:
    """Which rows nothing behind them looks past."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        rows, first = transcript.rows, transcript.context_rows
        self._rows, self._first = rows, first
        own = rows[first:]
        self._left = abandoned(own, transcript.leaf, goes_on=first > 0)
        # The first row that defines a name counts.
        self._defined = {
            name: index for index in reversed(range(len(rows))) for name in defined_by(rows[index])
        }

    def candidates(self, last: int) -> Iterator[int]:
        """Yield rows, from one on backwards, that begin a message and close all before them."""
        rows, low = self._rows, len(self._rows)
        for index in range(len(rows) - 1, self._first, -1):
            row = rows[index]
            if index <= min(low, last) and self._begins(index) and not self._has_open_call(index):
                yield index
            low = min([low, *(self._defined.get(name, low) for name in named_by(row))])

    def _begins(self, index: int) -> bool:
        """Return whether a row of the current branch begins a message after the row before."""
        row = self._rows[index]
        if row.parent != self._rows[index - 1].uuid or row.uuid in self._left:
            return False
        if self._transcript.is_busy_at(row.number):
            return False
        if row.type == "assistant":
            return self._defined[row.message_id] == index
        is_words = row.type == "user" and not row.data.get("isCompactSummary")
        return is_words and bool(row.blocks) and not row.has_result

    def _has_open_call(self, index: int) -> bool:
        """Return whether a call of a row's turn, before the row, waits for its result."""
        settled: set[object] = set()
        for row in reversed(self._rows[:index]):
            if row.type == "user":
                if not row.has_result and not row.data.get("isMeta"):
                    return False
                settled.update(block.get("tool_use_id") for block in row.blocks)
            elif row.type == "assistant":
                for block in row.blocks:
                    if block.get("type") == "tool_use" and block.get("id") not in settled:
                        return True
        return False

    def keeps_hidden(self, index: int) -> bool:
        """Return whether the rows before one are hidden as they are whatever follows it.

        A row that no prompt took the place of is hidden since the last row of the file,
        which will be another one.
        """
        if not self._left:
            return True
        before, row = self._rows[self._first : index], self._rows[index]
        names = {each.uuid for each in before}
        left = {uuid: at for uuid, at in self._left.items() if uuid in names}
        if self._hidden_until(before, row) != left:
            return False
        is_prompt = row.type == "user" and not row.data.get("isMeta")
        later = replace(row, at=_LATER)
        return is_prompt or max(self._hidden_until(before, later).values(), default=0) < _LATER

    def _hidden_until(self, before: list[Row], row: Row) -> dict[str, int]:
        return abandoned([*before, row], None, goes_on=self._first > 0)


def _message_of(row: Row, messages: Sequence[MessageDraft]) -> int | None:
    """Return the message that begins with a row, where no earlier one has a later record."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].source_id in (row.uuid, row.message_id):
            last = max(_records(messages[:index]), default=-1)
            first = min(_records(messages[index:]), default=row.number)
            return index if last < row.number <= first else None
    return None


def _records(messages: Sequence[MessageDraft]) -> Iterator[int]:
    for message in messages:
        yield from message.records
        for part in message.parts:
            yield from part.records


def _context(
    transcript: Transcript, index: int, messages: Sequence[MessageDraft]
) -> set[int]:
    """Return the numbers of the records that replace all before a row."""
    rows = transcript.rows[:index]
    limit = transcript.rows[index].number
    seldom = [row for row in transcript.seldom if row.number < limit]
    found = {row.number for row in _rows_that_tell(rows, seldom)}
    found |= _rows_of_title(rows, messages)
    found |= {number for number in transcript.note_records.values() if number < limit}
    found |= {number for number in transcript.summary_records if number < limit}
    found |= {number for number in _costs(transcript) if number < limit}
    leaves = {leaf for leaf, _ in transcript.summaries}
    found |= {row.number for row in rows if row.uuid in leaves} if leaves else set()
    return found | _with_calls(rows, found)


def _costs(transcript: Transcript) -> Iterator[int]:
    """Yield the notes of each counter that came first, and that says most."""
    first: dict[str, int] = {}
    most: dict[str, CostNote] = {}
    for note in transcript.costs:
        first.setdefault(note.counter, note.number)
        if note.counter not in most or note.usd > most[note.counter].usd:
            most[note.counter] = note
    yield from first.values()
    yield from (note.number for note in most.values())


def _rows_that_tell(rows: Sequence[Row], seldom: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows that say what holds for later ones, or for the session.

    Args:
        rows: Rows in file order.
        seldom: Those of them with what few rows have (``Transcript.seldom``).
    """
    yield rows[0]
    yield rows[-1]
    yield min(rows, key=_AT)
    yield max(rows, key=_AT)
    yield from _first(row for row in rows if isinstance(row.data.get("cwd"), str))
    for key in ("gitBranch", "version"):
        yield from _first(row for row in reversed(rows) if row.data.get(key))
    yield from _first(row for row in reversed(rows) if row.type == "assistant")
    yield from _first(row for row in reversed(rows) if row.type == "user" and not row.has_result)
    yield from _first(
        row for row in reversed(rows)
        if row.type == "assistant" and row.message.get("model") not in (None, SYNTHETIC)
    )
    for key in ("effort", "isCompactSummary"):
        yield from _first(row for row in reversed(seldom) if row.data.get(key))
    for key in ("systemPrompt", "tools"):
        yield from _first(row for row in reversed(seldom) if _snapshot(row).get(key))
    yield from _first(row for row in reversed(seldom) if _is_boundary(row))


def _first(rows: Iterator[Row]) -> Iterator[Row]:
    found = next(rows, None)
    if found is not None:
        yield found


def _snapshot(row: Row) -> dict[str, object]:
    attachment = mapping(row.data.get("attachment"))
    return attachment if attachment.get("type") == "prompt_snapshot" else {}


def _is_boundary(row: Row) -> bool:
    return row.type == "system" and row.data.get("subtype") == "compact_boundary"


def _rows_of_title(rows: Sequence[Row], messages: Sequence[MessageDraft]) -> set[int]:
    """Return the rows of the first messages that a title may be taken from."""
    wanted: dict[str, MessageDraft] = {}
    for message in messages:
        if message.role != "user" or "hidden_at" in message.metadata:
            continue
        origin = str(message.metadata.get("origin"))
        wanted.setdefault(origin, message)
        if origin == "human" and words_of(message).strip():
            wanted["words"] = message
            break
    names = {message.source_id for message in wanted.values()}
    return {row.number for row in rows if row.uuid in names}


def _with_calls(rows: Sequence[Row], numbers: set[int]) -> set[int]:
    """Return the rows with the calls whose results are in some rows."""
    wanted = {
        block.get("tool_use_id") for row in rows if row.number in numbers for block in row.blocks
        if block.get("type") == "tool_result"
    }  # fmt: skip
    if not wanted:
        return set()
    return {
        row.number for row in rows
        if row.type == "assistant" and not wanted.isdisjoint(defined_by(row))
    }
