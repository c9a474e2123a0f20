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
- A call runs from its part's ``created_at`` to its ``updated_at``. So does the text of an
  answer, if no other part of the message follows earlier, and it did not take many minutes: it
  was changed later then.

A log of changes knows the times of parts better than their rows: see ``note``.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from copy import copy
from itertools import accumulate
from operator import attrgetter
from typing import Literal, NamedTuple

from store.conversation.turns import NO_TURN
from store.queries.transcript import Outline
from store.replay.log import Change, Hiding
from store.replay.spans import Spans
from store.rows import is_tool_type

LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999."""
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
    """

    until: int
    beyond: tuple[int, ...]
    open: tuple[int, ...]
    answering: tuple[int, ...]
    hidden: int


class Logged(NamedTuple):
    """When a part was written by the log, and the numbers of the first and last event."""

    begin: int
    end: int
    first: int
    last: int


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
        self._logged: dict[int, Logged] = {}
        self._noted: set[int] = set()
        self._seen: dict[int, list[Hiding]] = {}

    def __len__(self) -> int:
        """Return how many parts there are."""
        return len(self._message)

    # What comes in, before ``settle``

    def add(self, outline: Outline, created_at: int, updated_at: int) -> None:
        """Add the next part in display order, and its message where that is not the last one.

        Args:
            outline: The part and its message.
            created_at: When the part's row says that it was made, epoch ms.
            updated_at: When that row was written last.
        """
        if not self._ids or outline.message_id != self._ids[-1]:
            self._begin(outline)
        position = -1 if outline.position is None else outline.position
        self._places[outline.message_id, position] = len(self._message)
        self._message.append(len(self._ids) - 1)
        self._positions.append(position)
        self._kinds.append(_kind_of(outline))
        self._created.append(_bounded(created_at))
        self._updated.append(_bounded(updated_at))

    def _begin(self, outline: Outline) -> None:
        queued = outline.queued_at is not None
        self._message_places[outline.message_id] = len(self._ids)
        self._ids.append(outline.message_id)
        at = outline.queued_at if queued and outline.queued_at else outline.created_at
        self._given.append(_bounded(at))
        self._inherited.append(bool(outline.inherited) and not queued)
        self._queued.append(queued)
        self._hidden_at.append(_bounded(outline.hidden_at or 0))
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

    def note(self, change: Change) -> None:
        """Take from a log when a part was written; its first time and its last count.

        What the log repeats from rows that were there before says no more than they do.
        """
        part = self._places.get((change.message_id, change.position))
        if part is not None and change.at > 0 and change.is_own:
            at = _bounded(change.at)
            known = self._logged.get(part, Logged(at, at, change.seq, change.seq))
            self._logged[part] = Logged(
                min(known.begin, at), max(known.end, at), known.first, change.seq)
            self._noted.add(at)

    def note_hiding(self, hiding: Hiding) -> None:
        """Take from a log whether a message was hidden, event by event."""
        message = self._message_places.get(hiding.message_id)
        if message is not None:
            self._seen.setdefault(message, []).append(hiding)

    # The times

    def settle(self) -> Timeline:
        """Bring all times in order, once everything was added; returns itself."""
        if not len(self):
            return self
        self.message_starts = self._given[:]
        self.starts, self.ends = self._created[:], self._updated[:]
        timed = any(at > 0 for at in self.message_starts)
        self.origin = "none" if not timed else "rows" if not self._logged else (
            "log" if len(self._logged) == sum(not self._inherited[message]
                                              for message in self._message) else "both")
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
            at = starts[number] if timed else (place + 1) * UNTIMED_STEP_MS
            if self._queued[number]:
                starts[number] = at if at > 0 else max(before, first)
                continue
            before = max(at if at > 0 else before or first, before + 1)
            starts[number] = before
        self.begin = min(starts[number] for number in own)
        for number, copied in enumerate(self._inherited):
            if copied:
                starts[number] = self.begin

    def _settle_parts(self) -> None:
        starts, ends = self.starts, self.ends
        for part, message in enumerate(self._message):
            at = self.message_starts[message]
            if self._inherited[message] or self._queued[message] or self.origin == "none":
                starts[part] = ends[part] = at
            elif part in self._logged:
                logged = self._logged[part]
                starts[part] = max(at, logged.begin)
                # The result of a call may have come after the log was switched off.
                result = ends[part] if self._kinds[part] & _CALL else 0
                ends[part] = max(starts[part], logged.end, result)
            else:
                starts[part] = max(at, starts[part])
        following: dict[int, int] = {}
        """By message: when the next part came, of those that were looked at."""
        for part in range(len(self) - 1, -1, -1):
            message, start = self._message[part], starts[part]
            if part not in self._logged and not self._inherited[message] \
                    and not self._queued[message] and self.origin != "none":
                ends[part] = self._row_end(part, following.get(message, LATEST))
            following[message] = min(start, following.get(message, LATEST))
        self.message_ends = array("q", self.message_starts)
        for part, message in enumerate(self._message):
            self.message_ends[message] = max(self.message_ends[message], ends[part])

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
                    before = max(before + 1, _bounded(hiding.hidden_at or hiding.at))
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
            if self._kinds[part] & _GROWS and part not in self._logged)
        self._steps = sorted(set(self.message_starts))
        self._turn_times = sorted(self.message_starts[turn] for turn in self.turns)
        self._turn_steps = sorted(set(self._turn_times))
        times = {*starts, *self.ends, *(rewind.at for rewind in self.rewinds),
                 *self._noted}
        self.moments = array("q", sorted(at for at in times if at >= self.begin))
        self.finish = self.moments[-1]

    # What there is at a moment

    def cut(self, at: int) -> Cut:
        """Return what of the session there is at a moment; before its begin, what began it."""
        at = max(at, self.begin)
        until = bisect_right(self._latest, at)
        end = bisect_right(self._earliest, at)
        beyond = tuple(part for part in range(until, end) if self.starts[part] <= at)
        hidden = bisect_right(self.rewinds, at, key=attrgetter("at"))
        return Cut(until, beyond, tuple(sorted(self._open.at(at))),
                   tuple(sorted(self._answering.at(at))), hidden)

    def share(self, part: int, at: int) -> float:
        """Return how much of its time a part has had at a moment, 0 to 1."""
        start, end = self.starts[part], self.ends[part]
        return 1.0 if at >= end else max(0.0, (at - start) / (end - start))

    def message_of(self, part: int) -> int:
        """Return the message of a part."""
        return self._message[part]

    def parts_at(self, message: int, at: int) -> int:
        """Return how many parts of a message there were at a moment."""
        low, high = bisect_left(self._message, message), bisect_right(self._message, message)
        return sum(start <= at for start in self.starts[low:high])

    def logged(self, part: int) -> Logged | None:
        """Return where the log has a part's changes, None where it has none."""
        return self._logged.get(part)

    def part_of(self, message_id: str, position: int) -> int | None:
        """Return the number of a part, by its message and its ``"index"``."""
        return self._places.get((message_id, position))

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


def _bounded(at: int) -> int:
    return max(0, min(at, LATEST))


def _kind_of(outline: Outline) -> int:
    name = outline.type or ""
    if is_tool_type(name):
        return _CALL if outline.state in ENDED else 0
    return _GROWS if outline.role == "assistant" and name in ("text", "reasoning") else 0
