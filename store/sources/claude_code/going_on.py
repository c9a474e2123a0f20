"""Reads a long session file in steps, and goes on where the last reading stopped.

Later rows hang on earlier ones by few threads: they name them by id, and the mapping knows
what came before (the model, the prompt, the branch). So a place in the file can be gone on
from with the rows right before its end, the *window*, which are read and mapped again, and a
few earlier records that stand for all the others, the *context*. Rows that name anything
that lies before the window, such as a rewind to an old prompt, have the file read whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from store.sources.base import stretches
from store.sources.base.collection import paused_collection
from store.sources.base.drafts import LineageDraft, SessionDraft
from store.sources.base.json_lines import CHUNK
from store.sources.base.protocol import FileStamp, Known, Place, Problem, Reading, Step, Unit
from store.sources.base.stretches import (
    CannotGoOn,
    Mark,
    Stretch,
    in_steps,
    read_end,
    read_stretch,
)
from store.sources.base.values import mapping
from store.sources.claude_code.agents import ROWS, RUN_MARK, agent_source_id
from store.sources.claude_code.forks import marked_origin
from store.sources.claude_code.neighbours import SUMMARIES_UNTIL, version_of
from store.sources.claude_code.place import Found, names_of, places
from store.sources.claude_code.reader import Earlier, SessionReader
from store.sources.claude_code.references import later_references
from store.sources.claude_code.sidefiles import ARCHIVED, RESULTS, TITLE
from store.sources.claude_code.transcript import Transcript
from store.system.paths import open_regular

if TYPE_CHECKING:
    from store.sources.claude_code.source import ClaudeCodeSource

MOST_PROBLEMS = 500
"""Where a file has more of them, it is read whole."""


@dataclass(slots=True)
class Stop(Mark):
    """Where a session's file is gone on with, and what later rows are read with.

    Attributes:
        numbers: The numbers of the context's records.
        others: Stamps of the unit's other files.
        title: Of ``custom-title.json``.
        lineage: Kind, parent and parent's message, for a session that comes from another one.
        created_at: When its own rows begin then.
        problems: Line and reason, of what lies before the window.
        children: The subagents' sessions by the ids of the calls that started them.
        agents: The ids of those subagents and of their workflows' runs.
        elsewhere: Path, line and reason of the problems of the unit's other files.
    """

    numbers: list[int] = field(default_factory=list)
    others: list[list[Any]] = field(default_factory=list)
    title: str | None = None
    archived_at: int | None = None
    lineage: list[Any] | None = None
    created_at: int | None = None
    problems: list[list[Any]] = field(default_factory=list)
    children: dict[str, str] = field(default_factory=dict)
    agents: list[str] = field(default_factory=list)
    elsewhere: list[list[Any]] = field(default_factory=list)


class LongReader:
    """Reads one unit in steps."""

    def __init__(self, source: ClaudeCodeSource, unit: Unit, known: Known) -> None:
        """Start with nothing read.

        Args:
            source: Makes readers of the unit.
            unit: The unit as it is now.
            known: Tells of names that were passed.
        """
        self._source, self._unit, self._known = source, unit, known
        name = unit.key.rpartition("/")[2] + ROWS
        found = [one for one in unit.stamps if os.path.basename(one.path) == name]
        self._main = found[0] if found else None
        self._others = [one for one in unit.stamps if one is not self._main]
        self._elsewhere: list[Problem] = []

    def steps(self, start: Place | None, *, fresh: bool) -> Iterator[Step]:
        """Read the unit; see ``LongSource.steps``."""
        if self._main is not None and (start is not None or fresh):
            try:
                yield from in_steps(self._step, start)
                return
            except CannotGoOn:
                pass
        yield self._whole()

    def _step(self, start: Place | None, *, grown: bool) -> Step:
        """Read what follows a place, ``CHUNK`` bytes at most.

        Raises:
            CannotGoOn: It changes what lies before, or nothing would follow from it.
        """
        stop = Stop(**start.state) if start is not None else None
        side = self._side_files(stop)
        context = start.context if start is not None else b""
        read = self._read(stop, context, CHUNK, grown=grown)
        self._check(read, stop)
        reader = self._reader(read, stop, side)
        draft = _draft_of(reader, stop)
        if draft is None:
            raise CannotGoOn
        if stop is None and (draft.lineage is not None or not reader.is_origin_settled()):
            raise CannotGoOn
        self._elsewhere = [
            *(Problem(*one) for one in (stop.elsewhere if stop is not None else ())
              if one[0] not in side.moved),
            *side.problems,
        ]  # fmt: skip
        first = self._first_of(stop, context, draft)
        place = self._place(read, reader, draft, stop, first)
        if read.stretch.more and place is None:
            raise CannotGoOn
        if place is not None:
            place.message -= first
        draft.messages = draft.messages[first:]
        draft.first_record = read.transcript.first
        draft.attachments = [
            one for one in draft.attachments if one not in reader.side.attachments
        ] + [one for one in reader.side.attachments if one.name in side.names]
        problems = _problems_before(stop) + read.transcript.problems + self._elsewhere
        if read.torn is not None:
            problems.append(read.torn)
        reading = Reading(
            [draft], problems, (read.stretch.stamp(read.transcript.offset), *self._others),
            facts=reader.told, wants=reader.wants,
        )  # fmt: skip
        return Step(reading, stop is not None, place, read.stretch.more)

    def _side_files(self, stop: Stop | None) -> _Side:
        """Tell which side files moved.

        Raises:
            CannotGoOn: Files of agents came or moved.
        """
        before = {one[0]: one for one in stop.others} if stop is not None else {}
        side = _Side()
        if before.keys() - {one.path for one in self._others}:
            raise CannotGoOn
        for one in self._others:
            if _listed(one) == before.get(one.path):
                continue
            name = os.path.basename(one.path)
            if os.path.basename(os.path.dirname(one.path)) == RESULTS:
                side.names.add(name)
            elif name not in (TITLE, ARCHIVED):
                raise CannotGoOn
            side.moved.append(one.path)
        return side

    def _read(
        self, stop: Stop | None, context: bytes, most: int, *, grown: bool
    ) -> _Read:
        """Read the window and what follows it.

        Raises:
            CannotGoOn: The file is not the one that was read, or has nothing more.
        """
        assert self._main is not None
        stretch = read_stretch(open_regular, self._main.path, stop, most, grown=grown)
        return _Read(self._transcript(stop, context), stretch).taken()

    def _transcript(self, stop: Stop | None, context: bytes) -> Transcript:
        """Return a transcript of the context, to be gone on with at the window."""
        assert self._main is not None
        limit = self._source.line_limit
        if stop is None:
            return Transcript(self._main.path, limit)
        transcript = Transcript(
            stop.path, limit, first=stop.record, line=stop.line, offset=stop.offset
        )
        transcript.take_context(zip(stop.numbers, context.split(b"\n"), strict=True))
        return transcript

    def _check(self, read: _Read, stop: Stop | None) -> None:
        """Refuse rows that change what lies before the window, or that are of old versions.

        Raises:
            CannotGoOn: There are such rows.
        """
        transcript, earlier = read.transcript, read.transcript.context_rows
        rows = transcript.rows
        if len(rows) <= earlier or version_of(rows) < SUMMARIES_UNTIL:
            raise CannotGoOn
        session = self._unit.key.rpartition("/")[2]
        for row in rows[earlier:]:
            if row.data.get("isSidechain") or marked_origin(row, session):
                raise CannotGoOn
        if stop is None:
            return  # nothing lies before
        names = later_references(transcript)
        # What an agent was started by is known; that it is named again changes nothing.
        if names is None or self._known(names.difference(stop.agents)):
            raise CannotGoOn

    def _reader(self, read: _Read, stop: Stop | None, side: _Side) -> SessionReader:
        """Return the unit's reader with what was read."""
        reader = self._source.reader(self._unit)
        reader.main = read.transcript
        if stop is not None:
            lineage = LineageDraft(*stop.lineage) if stop.lineage is not None else None
            reader.earlier = Earlier(lineage, stop.created_at)
            reader.side.title, reader.side.archived_at = stop.title, stop.archived_at
        for path in side.moved:
            if not reader.side.take(path):
                raise CannotGoOn
        side.problems = reader.side.problems
        return reader

    def _first_of(self, stop: Stop | None, context: bytes, draft: SessionDraft) -> int:
        """Return which of a draft's messages is the first that does not come of the context.

        Raises:
            CannotGoOn: Later rows change what lies before.
        """
        if stop is None:
            return 0
        reader = self._source.reader(self._unit)
        reader.main, reader.earlier = self._transcript(stop, context), Earlier()
        earlier = _draft_of(reader, stop)
        messages = earlier.messages if earlier is not None else []
        if draft.messages[: len(messages)] != messages:
            raise CannotGoOn
        return len(messages)

    def _place(
        self,
        read: _Read,
        reader: SessionReader,
        draft: SessionDraft,
        stop: Stop | None,
        first: int,
    ) -> Place | None:
        """Return where the next reading goes on; None where no place was found to be right.

        Args:
            read: What was read.
            reader: What was made of it.
            draft: The session.
            stop: Where it was gone on with; None for the beginning.
            first: The first message that does not come of the context.
        """
        transcript = read.transcript
        stretch = read.stretch
        small = stop is not None and stretch.end - stop.offset < stretches.KEPT_BYTES
        if stop is not None and small and not stretch.more:
            state = self._stop(read, reader, draft, stop.offset, stop.record)
            state.numbers, state.problems = stop.numbers, stop.problems
            state.children, state.agents = stop.children, stop.agents
            context = b"\n".join(transcript.context[number] for number in stop.numbers)
            return Place(first, stop.record, state.as_json(), context, ())
        for found in islice(places(transcript, draft.messages), stretches.MOST_PROVED):
            place = self._place_at(found, read, reader, draft, stop)
            if place is not None and self._proved(place, draft, read):
                return place
        return None

    def _place_at(
        self,
        found: Found,
        read: _Read,
        reader: SessionReader,
        draft: SessionDraft,
        stop: Stop | None,
    ) -> Place | None:
        transcript = read.transcript
        row = transcript.rows[found.row]
        offset = read.stretch.start_of(transcript.raw(row.number))
        if offset is None:
            return None
        state = self._stop(read, reader, draft, offset, row.number)
        state.numbers = found.numbers
        state.problems = [
            *(stop.problems if stop is not None else []),
            *([one.line, one.reason] for one in transcript.problems if one.line < state.line),
        ]
        context = b"\n".join(transcript.raw(number) for number in found.numbers)
        names = names_of(transcript.rows[transcript.context_rows : found.row])
        if stop is not None:
            state.children, state.agents = stop.children, stop.agents
        else:
            state.children = _children_in(draft)
            names |= self._note_agents(reader, state)
        return Place(found.message, row.number, state.as_json(), context, names)

    def _note_agents(self, reader: SessionReader, state: Stop) -> set[str]:
        """Note the agents whose calls are known; return the ids of all."""
        names: set[str] = set()
        for key in reader.agents:
            own = set(key.split(RUN_MARK))
            names |= own
            if agent_source_id(key, reader.session_id) in state.children.values():
                state.agents += sorted(own)
        return names

    def _proved(self, place: Place, draft: SessionDraft, read: _Read) -> bool:
        """Say whether going on from a place now gives what is there, from its message on."""
        stop = Stop(**place.state)
        if len(stop.problems) + len(stop.elsewhere) > MOST_PROBLEMS:
            return False
        try:
            again = self._read(stop, place.context, read.stretch.end - stop.end, grown=False)
        except CannotGoOn:
            return False
        reader = self._reader(again, stop, _Side())
        found = _draft_of(reader, stop)
        if found is None or later_references(again.transcript) is None:
            return False
        try:
            first = self._first_of(stop, place.context, found)
        except CannotGoOn:
            return False
        return found.messages[first:] == draft.messages[place.message :] and all(
            getattr(found, name) == getattr(draft, name) for name in COMPARED
        )

    def _stop(
        self, read: _Read, reader: SessionReader, draft: SessionDraft, offset: int, record: int
    ) -> Stop:
        lineage = draft.lineage
        mark = read.stretch.mark(offset, read.transcript.lines, record)
        return Stop(
            **mark.as_json(),
            others=[_listed(one) for one in self._others],
            title=reader.side.title,
            archived_at=reader.side.archived_at,
            lineage=None if lineage is None else [
                lineage.kind, lineage.parent_source_id, lineage.parent_message_source_id
            ],
            created_at=None if lineage is None else draft.created_at,
            elsewhere=[[one.path, one.line, one.reason] for one in self._elsewhere],
        )  # fmt: skip

    def _whole(self) -> Step:
        """Read the unit whole, and find where it can be gone on with."""
        with paused_collection():
            reader, reading = self._source.read_with(self._unit)
            place = None
            self._elsewhere = [one for one in reading.problems if one.path != reader.path]
            if self._main is not None and reader.main is not None:
                place = self._place_in_whole(reader, reading)
            return Step(reading, False, place)

    def _place_in_whole(self, reader: SessionReader, reading: Reading) -> Place | None:
        transcript, draft = reader.main, reading.sessions[0] if reading.sessions else None
        stamp = next((one for one in reading.stamps if one.path == reader.path), None)
        if transcript is None or draft is None or stamp is None or not transcript.rows:
            return None
        if version_of(transcript.rows) < SUMMARIES_UNTIL or not reader.is_origin_settled():
            return None
        if any(row.data.get("isSidechain") for row in transcript.rows):
            return None
        try:
            read = _Read(transcript, read_end(open_regular, stamp))
        except CannotGoOn:
            return None
        return self._place(read, reader, draft, None, 0)


COMPARED = (
    "title", "title_from", "agent", "workspace_root", "model", "metadata", "created_at",
    "updated_at", "archived_at", "lineage", "tells_title",
)  # fmt: skip
"""What a session says that must be the same however it was read."""


@dataclass(slots=True)
class _Side:
    """Side files that moved.

    Attributes:
        names: Those of ``tool-results/``.
    """

    moved: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True)
class _Read:
    """A stretch of the file and what it holds.

    Attributes:
        torn: What is wrong with a last line that is unfinished.
    """

    transcript: Transcript
    stretch: Stretch
    torn: Problem | None = None

    def taken(self) -> _Read:
        """Parse the bytes."""
        self.transcript.push(self.stretch.data)
        self.torn = None if self.stretch.more else self.transcript.finish()
        return self


def _listed(stamp: FileStamp) -> list[Any]:
    return [stamp.path, stamp.inode, stamp.size, stamp.mtime_ns]


def _problems_before(stop: Stop | None) -> list[Problem]:
    return [] if stop is None else [Problem(stop.path, *one) for one in stop.problems]


def _draft_of(reader: SessionReader, stop: Stop | None) -> SessionDraft | None:
    """Return the session as a reader has it, its calls linked to the agents they started."""
    drafts: Sequence[SessionDraft] = reader.build()
    if len(drafts) != 1:
        return None
    for message in drafts[0].messages if stop is not None and stop.children else ():
        for part in message.parts:
            child = stop.children.get(part.tool_call_id or "") if stop is not None else None
            if child is not None:
                bag = part.data.setdefault("resultProviderMetadata", {})
                bag.setdefault("backscroll", {}).setdefault("child_session_source_id", child)
    return drafts[0]


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
