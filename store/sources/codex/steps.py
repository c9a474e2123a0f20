"""How a long rollout is read in steps: what a place to continue from depends on.

Threads of several files, forks that begin with copies, and lines that reach behind the window
have all files read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from store.sources.base import steps
from store.sources.base.drafts import MessageDraft, SessionDraft
from store.sources.base.protocol import Known, Place, Unit
from store.sources.base.steps import CannotGoOn, Found, LongReader, Stop
from store.sources.base.values import mapping
from store.sources.codex.copies import base_of, copied_from
from store.sources.codex.facts import STAMP, Facts
from store.sources.codex.names import DOCUMENT, PACKED
from store.sources.codex.reader import Earlier, ThreadReader
from store.sources.codex.rollout import Line, Rollout
from store.sources.codex.words import told_prompt

MOST_TRIED = 400
"""Lines that are looked at before giving up."""
MOST_HEAD = 60
"""Lines at a file's beginning, up to the first prompt, that are kept as context."""
_LAST_OF = ("turn_context", "token_usage_record")
_LAST_EVENTS = (
    "token_count", "thread_settings_applied", "task_started", "task_complete", "turn_aborted",
    "error", "user_message", "item_completed",
)  # fmt: skip
_REWINDS = "thread_rolled_back"


@dataclass(slots=True)
class ThreadStop(Stop):
    """Where a rollout is continued, and what later lines are read with.

    Attributes:
        answers: How many answers are before the window, less those of the context.
        agent: What the side files call the agent, which all its answers say.
    """

    answers: int = 0
    agent: list[Any] = field(default_factory=list)

    def keep(self, stop: Any) -> None:
        """Take from an earlier stop at the same window what is before it."""
        Stop.keep(self, stop)
        self.answers = stop.answers


class ThreadSteps(LongReader[Rollout, ThreadReader, ThreadStop]):
    """Reads one thread in steps."""

    def __init__(
        self,
        make_reader: Callable[[Unit], ThreadReader],
        facts: Facts | None,
        unit: Unit,
        known: Known,
    ) -> None:
        """Start with nothing read.

        Args:
            make_reader: Returns a reader of the thread that has read nothing.
            facts: What side files say about it.
            unit: The thread's files as they are now.
            known: Tells whether names were passed.
        """
        files = [one for one in unit.stamps if not one.path.endswith(STAMP)]
        plain = len(files) == 1 and not files[0].path.endswith((PACKED, DOCUMENT))
        super().__init__(unit, files[0] if plain else None, known)
        self._make_reader, self._facts = make_reader, facts

    def stop(self, state: dict[str, Any]) -> ThreadStop:
        """Return a stop from its state."""
        return ThreadStop(**state)

    def reader(self) -> ThreadReader:
        """Return a reader of the thread that has read nothing."""
        return self._make_reader(self.unit)

    def open(self, path: str, **begin: int) -> Rollout:
        """Return the rollout with nothing read."""
        return Rollout(path, self.reader().line_limit, **begin)

    def file_of(self, reader: ThreadReader) -> Rollout | None:
        """Return the rollout."""
        return reader.rollouts.get(self.path or "")

    def put(self, reader: ThreadReader, file: Rollout, stop: ThreadStop | None) -> None:
        """Give a reader the rollout, and what is known of what is before it.

        Args:
            reader: A reader that has read nothing.
            file: The rollout.
            stop: Where it was continued; None for the beginning.
        """
        reader.rollouts[file.path], reader.facts = file, self._facts
        if stop is not None:
            reader.earlier = Earlier(stop.lineage_draft, stop.answers)

    def begin(self, stop: ThreadStop | None) -> None:
        """Look at what side files call the agent.

        Raises:
            CannotGoOn: They call it something else now.
        """
        if stop is not None and stop.agent != self._agent():
            raise CannotGoOn

    def _agent(self) -> list[Any]:
        facts = self._facts
        return [] if facts is None else [facts.role, facts.nickname]

    def check(self, file: Rollout, stop: ThreadStop | None) -> None:
        """Refuse lines that reach behind the window, and threads that begin elsewhere.

        Raises:
            CannotGoOn: It is such a thread, or has such lines.
        """
        before, own = file.lines[: file.context_lines], file.lines[file.context_lines :]
        if not own or _begins_elsewhere(file) or any(line.kind == _REWINDS for line in own):
            raise CannotGoOn
        if before:
            if any(line.type == "session_meta" for line in own):
                raise CannotGoOn  # It may begin a copy of the file.
            names = {name for line in own for name in names_of(line)}
            passed = {name for line in before for name in names_of(line)}
            if not names.isdisjoint(passed) or (names and self.known(names)):
                raise CannotGoOn

    def build(self, reader: ThreadReader, stop: ThreadStop | None) -> SessionDraft | None:
        """Return the thread as far as it was read; None where it holds no message."""
        drafts = reader.build()
        return drafts[0] if drafts else None

    def check_draft(
        self, reader: ThreadReader, draft: SessionDraft, stop: ThreadStop | None
    ) -> None:
        """Refuse a thread that holds more than its file does.

        Args:
            reader: What was read.
            draft: The session made of it.
            stop: Where the reading went on; None for the beginning.

        Raises:
            CannotGoOn: It is one.
        """
        if not self._is_one_file(reader, draft):
            raise CannotGoOn

    def _is_one_file(self, reader: ThreadReader, draft: SessionDraft) -> bool:
        file = self.file_of(reader)
        return file is not None and len(draft.records) == len(file.records)

    def can_grow(self, reader: ThreadReader, draft: SessionDraft) -> bool:
        """Return whether a thread that was read whole can be continued."""
        file = self.file_of(reader)
        elsewhere = file is None or _begins_elsewhere(file)
        return not elsewhere and self._is_one_file(reader, draft)

    def places(self, file: Rollout, messages: Sequence[MessageDraft]) -> Iterator[Found]:
        """Yield lines that begin a turn, with a window behind them, the last one first."""
        for index, message in _places(file, messages):
            numbers = sorted(_context(file, index, messages[:message]))
            yield Found(index, file.lines[index].number, message, numbers)

    def names(self, file: Rollout, until: int) -> set[str]:
        """Return the ids that lines define."""
        return {name for line in file.lines[file.context_lines : until] for name in names_of(line)}

    def details(self, reader: ThreadReader, draft: SessionDraft) -> dict[str, Any]:
        """Return what the side files call the agent."""
        return {"agent": self._agent()}

    def note(
        self,
        state: ThreadStop,
        place: Place,
        stop: ThreadStop | None,
        reader: ThreadReader,
        draft: SessionDraft,
    ) -> None:
        """Note how many answers are before the place.

        Args:
            state: The new stop.
            place: Its place.
            stop: Where this reading went on; None for the beginning.
            reader: What was read.
            draft: The session made of it.
        """
        before = stop.answers if stop is not None else 0
        answers = before + _answers(draft.messages[: place.message])
        state.answers = answers - _answers(self.context_messages(state, place.context))


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
        if size >= steps.WINDOW_BYTES and index <= low and _begins_turn(line):
            tried += 1
            message = _message_from(line.number, messages)
            if message is not None:
                yield index, message
        low = min([low, *(seen[name] for name in names_of(line))])


def _begins_turn(line: Line) -> bool:
    """Return whether a line is a prompt: what comes before it in its turn goes with no message."""
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
    """Return the numbers of the records that replace all before a line."""
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
    for item, event in pairwise(lines):
        if event.number in found and _begins_turn(item) and told_prompt(event) is not None:
            # Without its item, an event would be a prompt of its own.
            found.add(item.number)
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
