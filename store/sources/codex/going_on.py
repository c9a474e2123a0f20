"""Reads a long rollout in steps, and goes on where the last reading stopped.

As with other sources of JSON lines: the lines right before the end, the *window*, are read
and mapped again, with a few earlier lines that stand for all the others, the *context*.
Threads of several files, forks that begin with copies, and lines that reach behind the
window have all files read whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store.sources.base import stretches
from store.sources.base.collection import paused_collection
from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.json_lines import CHUNK
from store.sources.base.protocol import Known, Place, Problem, Reading, Step, Unit
from store.sources.base.stretches import (
    CannotGoOn,
    Mark,
    Stretch,
    in_steps,
    read_end,
    read_stretch,
)
from store.sources.base.values import mapping
from store.sources.codex.copies import base_of, copied_from
from store.sources.codex.facts import STAMP
from store.sources.codex.names import DOCUMENT, PACKED
from store.sources.codex.reader import Earlier, ThreadReader
from store.sources.codex.rollout import Line, Rollout
from store.system.paths import open_regular

if TYPE_CHECKING:
    from store.sources.codex.source import CodexSource

MOST_TRIED = 400
"""Lines that are looked at before it is given up."""
MOST_HEAD = 60
"""Lines at a file's beginning, up to the first prompt, that are kept as context."""
COMPARED = (
    "title", "title_from", "agent", "workspace_root", "model", "metadata", "created_at",
    "updated_at", "archived_at", "lineage", "tells_title",
)  # fmt: skip
"""What a thread says that must be the same however it was read."""
_LAST_OF = ("turn_context", "token_usage_record")
_LAST_EVENTS = (
    "token_count", "thread_settings_applied", "task_started", "task_complete", "turn_aborted",
    "error", "user_message", "item_completed",
)  # fmt: skip
_REWINDS = "thread_rolled_back"


@dataclass(slots=True)
class Stop(Mark):
    """Where a rollout is gone on with, and what later lines are read with.

    Attributes:
        numbers: The numbers of the context's records.
        lineage: Kind, parent, parent's message and call, of a thread that has a parent.
        answers: How many answers lie before the window.
        agent: What the side files call the agent, which all its answers say.
        problems: Line and reason, of what lies before the window.
    """

    numbers: list[int] = field(default_factory=list)
    lineage: list[Any] | None = None
    answers: int = 0
    agent: list[Any] = field(default_factory=list)
    problems: list[list[Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Read:
    """A stretch of the file and what it holds; ``torn`` is wrong with its last line."""

    rollout: Rollout
    stretch: Stretch
    torn: Problem | None = None


class LongReader:
    """Reads one thread in steps."""

    def __init__(self, source: CodexSource, root: Path, unit: Unit, known: Known) -> None:
        """Start with nothing read.

        Args:
            source: Makes readers of the thread.
            root: The root.
            unit: The thread's files as they are now.
            known: Tells of names that were passed.
        """
        self._source, self._root, self._unit, self._known = source, root, unit, known
        files = [one for one in unit.stamps if not one.path.endswith(STAMP)]
        plain = len(files) == 1 and not files[0].path.endswith((PACKED, DOCUMENT))
        self._path = files[0].path if plain else None
        self._others = [one for one in unit.stamps if one.path.endswith(STAMP)]
        self._facts = source.facts_of(root, unit)

    def steps(self, start: Place | None, *, fresh: bool) -> Iterator[Step]:
        """Read the thread; see ``LongSource.steps``."""
        if self._path is not None and (start is not None or fresh):
            try:
                yield from in_steps(self._step, start)
                return
            except CannotGoOn:
                pass
        yield self._whole()

    def _step(self, start: Place | None, *, grown: bool) -> Step:
        stop = Stop(**start.state) if start is not None else None
        context = start.context if start is not None else b""
        if stop is not None and stop.agent != self._agent():
            raise CannotGoOn
        read = self._read(stop, context, CHUNK, grown=grown)
        self._check(read)
        reader, draft = self._draft(read, stop)
        first = self._first_of(stop, context, draft)
        place = self._place(read, draft, stop, first)
        if read.stretch.more and place is None:
            raise CannotGoOn
        if place is not None:
            place.message -= first
        draft.messages, draft.first_record = draft.messages[first:], read.rollout.first
        problems = [] if stop is None else [Problem(stop.path, *one) for one in stop.problems]
        problems += read.rollout.problems
        problems += [] if read.torn is None else [read.torn]
        stamps = (read.stretch.stamp(read.rollout.offset), *self._others)
        reading = Reading([draft], problems, stamps, facts=reader.told, wants=reader.wants)
        return Step(reading, stop is not None, place, read.stretch.more)

    def _agent(self) -> list[Any]:
        facts = self._facts
        return [] if facts is None else [facts.role, facts.nickname]

    def _read(self, stop: Stop | None, context: bytes, most: int, *, grown: bool) -> _Read:
        assert self._path is not None
        stretch = read_stretch(open_regular, self._path, stop, most, grown=grown)
        read = _Read(self._rollout(stop, context), stretch)
        read.rollout.push(stretch.data)
        read.torn = None if stretch.more else read.rollout.finish()
        return read

    def _rollout(self, stop: Stop | None, context: bytes) -> Rollout:
        assert self._path is not None
        if stop is None:
            return Rollout(self._path, self._source.line_limit)
        rollout = Rollout(
            stop.path, self._source.line_limit, first=stop.record, line=stop.line,
            offset=stop.offset,
        )  # fmt: skip
        rollout.take_context(zip(stop.numbers, context.split(b"\n"), strict=True))
        return rollout

    def _check(self, read: _Read) -> None:
        """Refuse lines that reach behind the window, and threads that begin elsewhere.

        Raises:
            CannotGoOn: It is such a thread, or has such lines.
        """
        rollout = read.rollout
        own = rollout.lines[rollout.context_lines :]
        if not own or _begins_elsewhere(rollout) or any(line.kind == _REWINDS for line in own):
            raise CannotGoOn
        if rollout.context_lines:
            names = {name for line in own for name in names_of(line)}
            before = {n for line in rollout.lines[: rollout.context_lines] for n in names_of(line)}
            if not names.isdisjoint(before) or (names and self._known(names)):
                raise CannotGoOn

    def _draft(self, read: _Read, stop: Stop | None) -> tuple[ThreadReader, SessionDraft]:
        """Return the thread as far as it was read.

        Raises:
            CannotGoOn: It holds more than its file does, or no message.
        """
        reader = self._reader(read.rollout, stop)
        drafts = reader.build()
        if not drafts or len(drafts[0].records) != len(read.rollout.records):
            raise CannotGoOn
        return reader, drafts[0]

    def _reader(self, rollout: Rollout, stop: Stop | None) -> ThreadReader:
        reader = self._source.reader(self._root)
        reader.rollouts[rollout.path], reader.facts = rollout, self._facts
        if stop is not None:
            lineage = LineageDraft(*stop.lineage) if stop.lineage is not None else None
            reader.earlier = Earlier(lineage, stop.answers)
        return reader

    def _context_messages(self, stop: Stop, context: bytes) -> list[MessageDraft]:
        drafts = self._reader(self._rollout(stop, context), stop).build()
        return drafts[0].messages if drafts else []

    def _first_of(self, stop: Stop | None, context: bytes, draft: SessionDraft) -> int:
        """Return which of a draft's messages is the first that does not come of the context.

        Raises:
            CannotGoOn: Later lines change what lies before.
        """
        if stop is None:
            return 0
        messages = self._context_messages(stop, context)
        if draft.messages[: len(messages)] != messages:
            raise CannotGoOn
        return len(messages)

    def _place(
        self, read: _Read, draft: SessionDraft, stop: Stop | None, first: int
    ) -> Place | None:
        stretch = read.stretch
        small = stop is not None and stretch.end - stop.offset < stretches.KEPT_BYTES
        if stop is not None and small and not stretch.more:
            state = self._stop(read, draft, stop.offset, stop.record)
            state.numbers, state.problems = stop.numbers, stop.problems
            state.answers = stop.answers
            context = b"\n".join(read.rollout.context[number] for number in stop.numbers)
            return Place(first, stop.record, state.as_json(), context, ())
        before = stop.answers if stop is not None else 0
        found = _places(read.rollout, draft.messages)
        for index, message in islice(found, stretches.MOST_PROVED):
            place = self._place_at(read, draft, stop, index, message)
            if place is not None and self._proved(place, draft, read, before):
                return place
        return None

    def _place_at(
        self, read: _Read, draft: SessionDraft, stop: Stop | None, index: int, message: int
    ) -> Place | None:
        rollout = read.rollout
        line = rollout.lines[index]
        offset = read.stretch.start_of(rollout.raw(line.number))
        if offset is None:
            return None
        state = self._stop(read, draft, offset, line.number)
        state.numbers = sorted(_context(rollout, index, draft.messages[:message]))
        state.problems = [
            *(stop.problems if stop is not None else []),
            *([one.line, one.reason] for one in rollout.problems if one.line < state.line),
        ]
        context = b"\n".join(rollout.raw(number) for number in state.numbers)
        passed = rollout.lines[rollout.context_lines : index]
        names = {name for each in passed for name in names_of(each)}
        return Place(message, line.number, state.as_json(), context, names)

    def _proved(self, place: Place, draft: SessionDraft, read: _Read, before: int) -> bool:
        """Say whether going on from a place now gives what is there, from its message on."""
        stop = Stop(**place.state)
        answers = before + _answers(draft.messages[: place.message])
        stop.answers = answers - _answers(self._context_messages(stop, place.context))
        place.state["answers"] = stop.answers
        try:
            again = self._read(stop, place.context, read.stretch.end - stop.end, grown=False)
            _, found = self._draft(again, stop)
            first = self._first_of(stop, place.context, found)
        except CannotGoOn:
            return False
        return found.messages[first:] == draft.messages[place.message :] and all(
            getattr(found, name) == getattr(draft, name) for name in COMPARED
        )

    def _stop(self, read: _Read, draft: SessionDraft, offset: int, record: int) -> Stop:
        lineage = draft.lineage
        mark = read.stretch.mark(offset, read.rollout.whole_lines, record)
        return Stop(
            **mark.as_json(),
            lineage=None if lineage is None else [
                lineage.kind, lineage.parent_source_id, lineage.parent_message_source_id,
                lineage.tool_call_id,
            ],
            agent=self._agent(),
        )  # fmt: skip

    def _whole(self) -> Step:
        """Read the thread whole, and find where it can be gone on with."""
        with paused_collection():
            reader, reading = self._source.read_with(self._root, self._unit)
            rollout = reader.rollouts.get(self._path) if self._path is not None else None
            place = self._place_in_whole(rollout, reading) if rollout is not None else None
            return Step(reading, False, place)

    def _place_in_whole(self, rollout: Rollout, reading: Reading) -> Place | None:
        stamp = next((one for one in reading.stamps if one.path == rollout.path), None)
        if stamp is None or not reading.sessions or _begins_elsewhere(rollout):
            return None
        draft = reading.sessions[0]
        if len(draft.records) != len(rollout.records):
            return None
        try:
            read = _Read(rollout, read_end(open_regular, stamp))
        except CannotGoOn:
            return None
        return self._place(read, draft, None, 0)


def _begins_elsewhere(rollout: Rollout) -> bool:
    return base_of(rollout) is not None or copied_from(rollout) is not None


def _answers(messages: Sequence[MessageDraft]) -> int:
    return sum(message.role == "assistant" for message in messages)


def names_of(line: Line) -> Iterator[str]:
    """Yield the ids by which a line and others belong together."""
    payload = line.payload
    item = mapping(payload.get("item"))
    for value in (
        payload.get("call_id"), payload.get("id"), payload.get("response_id"), item.get("id"),
        payload.get("new_thread_id"), payload.get("receiver_thread_id"),
    ):  # fmt: skip
        if isinstance(value, str) and value and line.type != "session_meta":
            yield value


def _places(rollout: Rollout, messages: Sequence[MessageDraft]) -> Iterator[tuple[int, int]]:
    """Yield lines that begin a turn, and their messages, with a window behind them."""
    lines, first = rollout.lines, rollout.context_lines
    seen: dict[str, int] = {}
    for index, line in enumerate(lines):
        for name in names_of(line):
            seen.setdefault(name, index)
    low, size, tried = len(lines), 0, 0
    counted = rollout.first + len(rollout.records)
    for index in range(len(lines) - 1, first, -1):
        line = lines[index]
        size += sum(len(rollout.raw(number)) + 1 for number in range(line.number, counted))
        counted = line.number
        if line.kind == _REWINDS or tried > MOST_TRIED:
            return
        if size >= stretches.WINDOW_BYTES and index <= low and _begins_turn(line):
            tried += 1
            message = _message_from(line.number, messages)
            if message is not None:
                yield index, message
        low = min([low, *(seen[name] for name in names_of(line))])


def _begins_turn(line: Line) -> bool:
    """Say whether a line is a prompt: what comes before it in its turn goes with no message."""
    is_message = line.type == "response_item" and line.kind == "message"
    return is_message and line.payload.get("role") == "user"


def _message_from(number: int, messages: Sequence[MessageDraft]) -> int | None:
    """Return the first message that is made of records from a number on, where one is."""
    for index in range(len(messages) - 1, -1, -1):
        if min(_records(messages[index]), default=-1) < number:
            earlier = (max(_records(one), default=-1) for one in messages[: index + 1])
            is_last = index + 1 == len(messages)
            return None if is_last or max(earlier, default=-1) >= number else index + 1
    return None


def _records(message: MessageDraft) -> Iterator[int]:
    for part in message.parts:
        yield from part.records
    yield from message.records


def _context(rollout: Rollout, index: int, messages: Sequence[MessageDraft]) -> set[int]:
    """Return the numbers of the records that stand for all before a line."""
    lines = rollout.lines[:index]
    found = {lines[0].number, lines[-1].number}
    for line in lines:
        if line.type != "session_meta":
            break
        found.add(line.number)
    for kind in _LAST_OF:
        found.update(line.number for line in islice(_backwards(lines, kind, None), 1))
    for kind in _LAST_EVENTS:
        found.update(line.number for line in islice(_backwards(lines, "event_msg", kind), 1))
    found.update(
        line.number for line in islice((one for one in lines if one.type == _LAST_OF[1]), 1)
    )
    orphans = (
        number for message in messages for part in message.parts if part.type == "data-result"
        for number in part.records
    )  # fmt: skip
    found.update(islice(orphans, MOST_HEAD))
    return found | _head(lines, messages)


def _backwards(lines: Sequence[Line], kind: str, event: str | None) -> Iterator[Line]:
    return (
        line for line in reversed(lines)
        if line.type == kind and (event is None or line.kind == event)
    )  # fmt: skip


def _head(lines: Sequence[Line], messages: Sequence[MessageDraft]) -> set[int]:
    """Return the lines up to the first prompt of a person, of which the title is made."""
    for message in messages:
        if message.metadata.get("origin") == "human" and "hidden_at" not in message.metadata:
            last = max(_records(message), default=0)
            head = {line.number for line in lines[:MOST_HEAD] if line.number <= last}
            return head | set(_records(message))
    return set()
