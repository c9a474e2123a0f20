"""When each message and part of a session came, and what of it there was at a moment.

Messages keep the order in which the transcript shows them. The rules:

- A message without a time (0, or less) has the time of the one before it, the first ones that
  of the first that has one. Where none has a time, messages follow each other by a second.
- Messages of the same time, or with a clock that ran backwards, follow each other by one
  millisecond, so that each is a step of its own. Times after the year 9999 count as its end.
- A part never comes before its message.
- What a fork inherited is there from its first own message on. Where all is inherited, it
  comes at its own times.
- A queued message comes when it was queued, and stays at the end.
- What a rewind hid is seen until it was hidden.
- What was deleted is seen until it was deleted, where a log knows of it.
- A call runs from its part's ``created_at`` to its ``updated_at``. So does the text of an
  answer, if no other part of the message follows earlier, and it did not take many minutes: it
  was changed later then.

A log of changes knows better than the rows when messages and parts were there: see ``note``.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from copy import copy
from itertools import accumulate
from operator import attrgetter
from typing import Literal, NamedTuple

from store.conversation.turns import NO_TURN
from store.queries.transcript import Outline
from store.replay.log import FOREVER, LATEST, Hiding, Writes, bounded
from store.replay.spans import Spans
from store.rows import is_tool_type

UNTIMED_STEP_MS = 1_000
LONGEST_TEXT_MS = 600_000
"""A text that took longer was changed later, not written for so long."""
ENDED = frozenset({"output-available", "output-error", "output-denied"})
_GROWS, _CALL = 1, 2
_OF_MESSAGE = ("_ids", "_given", "_inherited", "_queued", "_hidden_at")
_OF_PART = ("_message", "_positions", "_kinds", "_created", "_updated")

Origin = Literal["log", "both", "rows", "none"]
"""Where the times are from: the log of changes, log and rows, rows alone; nothing has a time."""


class Cut(NamedTuple):
    """What there is of a session at a moment, by the numbers of parts and messages.

    Attributes:
        until: All parts before this one are there.
        beyond: Parts after it that are there, in order.
        open: Parts that are there and not as they are in the end.
        answering: Messages that are there and get more parts later.
        hidden: How many of the rewinds and restorings have happened, in the order of their times.
        lacking: Parts before ``until`` that are there no longer, in order.
    """

    until: int
    beyond: tuple[int, ...]
    open: tuple[int, ...]
    answering: tuple[int, ...]
    hidden: int
    lacking: tuple[int, ...] = ()


class Stay(NamedTuple):
    """When a part, and the message that holds it, was there; epoch ms.

    Attributes:
        message_since: When the message came there; None where its row says that.
        since: When the part came.
        until: When it went.
    """

    message_since: int | None
    since: int
    until: int


class Toggle(NamedTuple):
    """Messages were hidden by a rewind, or restored.

    Attributes:
        at: When, epoch ms.
        hides: Whether they were hidden.
    """

    at: int
    hides: bool
    messages: list[int]


class Timeline:
    """The times of a session; parts and messages are numbered in display order.

    Attributes:
        begin: When the first part came, epoch ms.
        finish: When the last thing happened.
        starts: When each part came.
        ends: When each part was as it is in the end.
        message_starts: When each message came.
        message_ends: When each message had all its parts.
        turns: The messages that begin turns, those hidden later too.
        rewinds: What rewinds hid and what was restored, in order of time.
        moments: The times at which anything happened, ascending and without repetition.
        origin: Where the times are from.
    """

    def __init__(self) -> None:
        """Start without a message."""
        self.begin = self.finish = 0
        self.starts, self.ends = array("q"), array("q")
        self.message_starts, self.message_ends = array("q"), array("q")
        self.turns = array("i")
        self.rewinds: list[Toggle] = []
        self.moments = array("q")
        self.origin: Origin = "none"
        self._ids: list[str] = []
        self._given = array("q")
        """When the row of each message says that it came."""
        self._created, self._updated = array("q"), array("q")
        """When the row of each part says that it came and was written last."""
        self._message = array("i")
        self._positions = array("q")
        self._kinds = bytearray()
        self._inherited = bytearray()
        self._queued = bytearray()
        self._hidden_at = array("q")
        self._places: dict[tuple[str, int], int] = {}
        self._message_places: dict[str, int] = {}
        self._more: dict[tuple[str, int], list[int]] = {}
        """By key: the parts that a log places, of which one is there at a time."""
        self._since: dict[int, int] = {}
        """By message: when it came to its place, where its row does not say that."""
        self._begun: dict[int, int] = {}
        self._gone: dict[int, int] = {}
        """By part: when it came to its place, and when it went; of those that a log places."""
        self._writes: dict[int, Writes] = {}
        self._message_writes: dict[int, Writes] = {}
        self._noted: set[int] = set()
        self._seen: dict[int, list[Hiding]] = {}

    def __len__(self) -> int:
        """Return how many parts there are."""
        return len(self._message)

    # What comes in, before ``settle``

    def add(
        self, outline: Outline, created_at: int, updated_at: int, stay: Stay | None = None, *,
        anew: bool = False,
    ) -> None:
        """Add the next part in display order, and its message where that is not the last one.

        Args:
            outline: The part and its message.
            created_at: When the part's row says that it was made, epoch ms.
            updated_at: When that row was written last.
            stay: When it was there, by a log; None for all the time since it came.
            anew: Whether it begins a message, be that the last one, too.
        """
        if anew or not self._ids or outline.message_id != self._ids[-1]:
            self._begin(outline)
            if stay is not None and stay.message_since is not None:
                self._since[len(self._ids) - 1] = stay.message_since
        part = len(self)
        position = -1 if outline.position is None else outline.position
        key = outline.message_id, position
        if stay is not None:
            self._begun[part] = stay.since
            if stay.until < FOREVER:
                self._gone[part] = stay.until
            self._more.setdefault(key, []).append(part)
        self._places[key] = part
        self._message.append(len(self._ids) - 1)
        self._positions.append(position)
        self._kinds.append(_kind_of(outline))
        self._created.append(bounded(created_at))
        self._updated.append(bounded(updated_at))

    def _begin(self, outline: Outline) -> None:
        queued = outline.queued_at is not None
        self._message_places[outline.message_id] = len(self._ids)
        self._ids.append(outline.message_id)
        at = outline.queued_at if queued and outline.queued_at else outline.created_at
        self._given.append(bounded(at))
        self._inherited.append(bool(outline.inherited) and not queued)
        self._queued.append(queued)
        self._hidden_at.append(bounded(outline.hidden_at or 0))
        if outline.role == "user" and not queued and outline.cancelled_at is None \
                and outline.origin not in NO_TURN:
            self.turns.append(len(self._ids) - 1)

    def drop_from(self, message: int) -> None:
        """Remove a message and all that follow; their rows are added again, or are gone."""
        part = bisect_left(self._message, message)
        for gone in range(part, len(self)):
            self._places.pop((self._ids[self._message[gone]], self._positions[gone]), None)
        for message_id in self._ids[message:]:
            self._message_places.pop(message_id, None)
        for name in _OF_MESSAGE:
            del getattr(self, name)[message:]
        for name in _OF_PART:
            del getattr(self, name)[part:]
        del self.turns[bisect_left(self.turns, message):]

    def copy(self) -> Timeline:
        """Return a timeline with the same messages and parts, and nothing of a log."""
        found = Timeline()
        for name in (*_OF_MESSAGE, *_OF_PART, "turns", "_places", "_message_places"):
            setattr(found, name, copy(getattr(self, name)))
        return found

    def note(self, part: int, writes: Writes) -> None:
        """Take from a log when a part was written; its first time and its last count.

        What the log repeats from a row that was there before says no more than that.

        Args:
            part: The part.
            writes: All writes of it, at least one.
        """
        if writes.is_news:
            self._writes[part] = writes
            self._noted.update(writes.times)

    def note_message(self, message: int, writes: Writes, hidings: Sequence[Hiding]) -> None:
        """Take from a log when a message was written.

        Args:
            message: The message.
            writes: All writes of it, at least one.
            hidings: Whether it was hidden, write by write.
        """
        if writes.is_news:
            self._message_writes[message] = writes
            self._noted.update(writes.times[1:])
        if any(hiding.hidden_at for hiding in hidings):
            self._seen[message] = list(hidings)

    def add_from(self, other: Timeline, part: int) -> None:
        """Append a part of another timeline, and its message where that is not the last one."""
        message = other._message[part]
        if not self._ids or other._ids[message] != self._ids[-1]:
            self._message_places[other._ids[message]] = len(self._ids)
            if other.turns and other.turns[bisect_right(other.turns, message) - 1] == message:
                self.turns.append(len(self._ids))
            for name in _OF_MESSAGE:
                getattr(self, name).append(getattr(other, name)[message])
        self._places[self._ids[-1], other._positions[part]] = len(self)
        for name in _OF_PART[1:]:
            getattr(self, name).append(getattr(other, name)[part])
        self._message.append(len(self._ids) - 1)

    # The times

    def settle(self) -> Timeline:
        """Bring all times in order, once everything was added; returns itself."""
        if not len(self):
            return self
        self.message_starts = self._given[:]
        self.starts, self.ends = self._created[:], self._updated[:]
        timed = any(at > 0 for at in self.message_starts)
        logged = sum(writes.is_own or len(writes.times) > 1 for writes in self._writes.values())
        self.origin = "none" if not timed else "rows" if not logged else (
            "both" if logged < sum(position != -1 and not self._inherited[message]
                                   for position, message in zip(
                                       self._positions, self._message, strict=True)) else "log")
        if all(self._inherited):
            self._inherited = bytearray(len(self._ids))
        self._settle_messages(timed=timed)
        self._settle_parts()
        self._find_rewinds()
        self._index()
        return self

    def _settle_messages(self, *, timed: bool) -> None:
        own = [number for number, copied in enumerate(self._inherited) if not copied]
        starts, before = self.message_starts, 0
        first = next((starts[number] for number in own if starts[number] > 0), 0)
        for place, number in enumerate(own):
            if number in self._since:
                starts[number] = self._since[number]
                continue
            at = starts[number] if timed else (place + 1) * UNTIMED_STEP_MS
            if self._queued[number]:
                starts[number] = at if at > 0 else max(before, first)
                continue
            before = max(at if at > 0 else before or first, before + 1)
            starts[number] = before
        self.begin = min(starts[number] for number in own)
        for number, copied in enumerate(self._inherited):
            if copied:
                starts[number] = self._since.get(number, self.begin)

    def _settle_parts(self) -> None:
        starts, ends = self.starts, self.ends
        for part, message in enumerate(self._message):
            at = self.message_starts[message]
            writes, result = self._writes.get(part), 0
            if self._inherited[message] or self._queued[message] or self.origin == "none":
                starts[part] = ends[part] = at
            elif writes is not None:
                starts[part] = max(at, writes.times[0] if writes.is_own else starts[part])
                # The result of a call may have come after the log was switched off.
                result = ends[part] if self._kinds[part] & _CALL else 0
            else:
                starts[part] = max(at, starts[part])
            if part in self._begun:
                starts[part] = max(self._begun[part], at if message not in self._since else 0)
            if writes is not None:
                ends[part] = max(starts[part], writes.times[-1], result)
            ends[part] = max(ends[part], self._gone.get(part, 0))
        following: dict[int, int] = {}
        """By message: when the next part came, of those that were looked at."""
        for part in range(len(self) - 1, -1, -1):
            message, start = self._message[part], starts[part]
            if part not in self._writes and part not in self._gone \
                    and not self._inherited[message] and not self._queued[message] \
                    and self.origin != "none":
                ends[part] = self._row_end(part, following.get(message, LATEST))
            following[message] = min(start, following.get(message, LATEST))
        self.message_ends = array("q", self.message_starts)
        for part, message in enumerate(self._message):
            end = ends[part] if part not in self._gone else starts[part]
            self.message_ends[message] = max(self.message_ends[message], end)

    def _row_end(self, part: int, following: int) -> int:
        start, end, kind = self.starts[part], self.ends[part], self._kinds[part]
        if kind & _CALL:
            return max(start, end)
        if not kind & _GROWS or not start < end <= start + LONGEST_TEXT_MS:
            return start
        return min(end, following) if following > start else end

    def _find_rewinds(self) -> None:
        found: dict[tuple[int, bool], list[int]] = {}
        for number, hidden_at in enumerate(self._hidden_at):
            if self._queued[number]:
                continue
            before, hidden = 0, False
            for hiding in self._seen.get(number, ()):
                if bool(hiding.hidden_at) != hidden:
                    hidden = not hidden
                    told = bounded(hiding.hidden_at)
                    before = max(before + 1, told if before < told <= hiding.at else hiding.at)
                    found.setdefault((before, hidden), []).append(number)
            if hidden_at > 0 and not hidden:
                found.setdefault((max(before, hidden_at), True), []).append(number)
        self.rewinds = [Toggle(at, hides, messages)
                        for (at, hides), messages in sorted(found.items())]
        self._hidden_when: dict[int, list[int]] = {}
        """By message: the numbers of the rewinds and restorings that it is in."""
        for number, toggle in enumerate(self.rewinds):
            for message in toggle.messages:
                self._hidden_when.setdefault(message, []).append(number)

    def _index(self) -> None:
        starts = self.starts
        self._latest = array("q", accumulate(starts, max))
        self._earliest = array("q", accumulate(reversed(starts), min))
        self._earliest.reverse()
        self._open = Spans(zip(starts, self.ends, range(len(self)), strict=True))
        self._answering = Spans(zip(
            self.message_starts, self.message_ends, range(len(self._ids)), strict=True))
        self.writing = Spans(
            (start, end, part) for part, (start, end) in enumerate(zip(starts, self.ends,
                                                                       strict=True))
            if self._kinds[part] & _GROWS and part not in self._writes)
        self._steps = sorted(set(self.message_starts))
        self._turn_times = sorted(self.message_starts[turn] for turn in self.turns)
        self._turn_steps = sorted(set(self._turn_times))
        self._gone_order = sorted(self._gone, key=self._gone.__getitem__)
        self._gone_times = [self._gone[part] for part in self._gone_order]
        times = {*starts, *self.ends, *(rewind.at for rewind in self.rewinds),
                 *self._noted, *self._gone_times}
        self.moments = array("q", sorted(at for at in times if self.begin <= at < FOREVER))
        self.finish = self.moments[-1]

    # What there is at a moment

    def cut(self, at: int) -> Cut:
        """Return what of the session there is at a moment; before its begin, what began it."""
        at = max(at, self.begin)
        until = bisect_right(self._latest, at)
        end = bisect_right(self._earliest, at)
        gone = set(self._gone_order[:bisect_right(self._gone_times, at)])
        beyond = tuple(part for part in range(until, end)
                       if self.starts[part] <= at and part not in gone)
        hidden = bisect_right(self.rewinds, at, key=attrgetter("at"))
        return Cut(until, beyond, tuple(sorted(self._open.at(at))),
                   tuple(sorted(self._answering.at(at))), hidden,
                   tuple(sorted(part for part in gone if part < until)))

    def share(self, part: int, at: int) -> float:
        """Return how much of its time a part has had at a moment, 0 to 1."""
        start, end = self.starts[part], self.ends[part]
        if part in self._writes:
            end = self._writes[part].times[0]
        return 1.0 if at >= end else max(0.0, (at - start) / (end - start))

    def message_of(self, part: int) -> int:
        """Return the message of a part."""
        return self._message[part]

    def parts_at(self, message: int, at: int) -> int:
        """Return how many parts of a message there were at a moment."""
        low, high = bisect_left(self._message, message), bisect_right(self._message, message)
        return sum(self.starts[part] <= at < self._gone.get(part, FOREVER)
                   for part in range(low, high))

    def writes(self, part: int) -> Writes | None:
        """Return the writes of a part that the log has, None where it knows no more than rows."""
        return self._writes.get(part)

    def message_writes(self, message: int) -> Writes | None:
        """Return the writes of a message that the log has, None where it knows no more."""
        return self._message_writes.get(message)

    def part_of(self, message_id: str, position: int, at: int = LATEST) -> int | None:
        """Return the number of a part.

        Args:
            message_id: Its message.
            position: Its ``"index"``.
            at: A moment at which it is there; where several ever had the place, it decides.
        """
        for part in self._more.get((message_id, position), ()):
            if self.starts[part] <= at < self._gone.get(part, FOREVER):
                return part
        return self._places.get((message_id, position))

    def past(self) -> dict[int, Writes]:
        """Return the writes of the messages that are gone in the end, by their numbers."""
        return {message: writes for message, writes in self._message_writes.items()
                if writes.is_past}

    def gone_at(self, message: int) -> int:
        """Return when a message went; ``FOREVER`` where it is there in the end."""
        low, high = bisect_left(self._message, message), bisect_right(self._message, message)
        return max(self._gone.get(part, FOREVER) for part in range(low, high))

    def places_in_the_end(self) -> dict[str, int]:
        """Return the numbers of the messages that are there in the end, by their ids."""
        gone = self.past()
        return {message_id: message for message, message_id in enumerate(self._ids)
                if message not in gone}

    def place_of(self, message_id: str) -> int | None:
        """Return the number of a message, None where it is not in the session."""
        return self._message_places.get(message_id)

    def is_hidden(self, message: int, at: int) -> bool:
        """Return whether a rewind had hidden a message at a moment."""
        return bool(self.hidden_by(
            message, bisect_right(self.rewinds, at, key=attrgetter("at"))))

    def hidden_by(self, message: int, rewinds: int) -> int:
        """Return when a message was hidden, 0 where it is visible.

        Args:
            message: The message.
            rewinds: How many of the rewinds and restorings have happened.
        """
        numbers = self._hidden_when.get(message, ())
        place = bisect_left(numbers, rewinds)
        toggle = self.rewinds[numbers[place - 1]] if place else None
        return toggle.at if toggle is not None and toggle.hides else 0

    def turn_around(self, message: int) -> tuple[int | None, int]:
        """Return the first message of a message's turn and the one after its last.

        Before the first turn the first message is None.
        """
        place = bisect_right(self.turns, message)
        end = self.turns[place] if place < len(self.turns) else len(self._ids)
        return self.turns[place - 1] if place else None, end

    def begin_of(self, message_id: str) -> int | None:
        """Return when a message came, None where it is not in the session."""
        place = self.place_of(message_id)
        return None if place is None else self.message_starts[place]

    # Steps

    def next_message(self, at: int) -> int | None:
        """Return when the next message came after a moment, None where none did."""
        return _after(self._steps, at)

    def previous_message(self, at: int) -> int | None:
        """Return when the last message came before a moment, None where none did."""
        return _before(self._steps, at)

    def next_turn(self, at: int) -> int | None:
        """Return when the next turn began after a moment, None where none did."""
        return _after(self._turn_steps, at)

    def previous_turn(self, at: int) -> int | None:
        """Return when the last turn began before a moment, None where none did."""
        return _before(self._turn_steps, at)

    def turn_at(self, at: int) -> int:
        """Return the number of the turn at a moment, 0 before the first."""
        return bisect_right(self._turn_times, at)

    def has_turn(self, start: int, end: int) -> bool:
        """Return whether a turn began between two moments, the second excluded."""
        return bisect_left(self._turn_steps, start) < bisect_left(self._turn_steps, end)

    @property
    def turn_times(self) -> list[int]:
        """When each turn began, in order; those that a fork inherited, when the fork did."""
        return self._turn_times


def _after(times: list[int], at: int) -> int | None:
    place = bisect_right(times, at)
    return times[place] if place < len(times) else None


def _before(times: list[int], at: int) -> int | None:
    place = bisect_left(times, at) - 1
    return times[place] if place >= 0 else None


def _kind_of(outline: Outline) -> int:
    name = outline.type or ""
    if is_tool_type(name):
        return _CALL if outline.state in ENDED else 0
    return _GROWS if outline.role == "assistant" and name in ("text", "reasoning") else 0
