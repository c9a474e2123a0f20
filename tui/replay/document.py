"""The transcript's document, cut at a moment: what came later is not in it.

Skeleton and heights of the whole session are kept; what is there at a moment is a copy of their
beginning, which takes no longer in the middle of a long session than at its start. Layouts stay
but where the cut changed what they depend on.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, NamedTuple

from store.conversation.readable import decode
from store.queries.transcript import Keyset, Outline
from store.replay.log import FOREVER, Life, Lives, MessageVersions, PartVersions, Writes
from store.replay.reading import Timed
from store.replay.timeline import Cut, Stay, Timeline
from store.replay.versions import message_before, part_before
from store.rows import MessageRow, PartRow
from store.text.stored_json import as_dict
from tui.kit.cache import WeightedCache
from tui.transcript.document import Document, Key
from tui.transcript.item import Setting
from tui.transcript.layout import PartBlock
from tui.transcript.measures import estimate, estimates
from tui.transcript.skeleton import EMPTY_INDEX, HIDDEN, UNSETTLED, WAITING, Skeleton

NEAR = 60
"""Parts at the end whose rows are read before a moment is shown."""
VERSION_BYTES = 4_000_000
"""Characters of earlier versions of parts and messages that are kept in memory."""
OPEN = 32
"""Parts that changed later whose rows are read before a moment is shown."""
MOST_NEAR = 160
"""Parts whose versions are kept, however large they are."""
USUAL_SIZE = 200
"""Characters that are guessed of a part whose row is not in the store."""
_NOTHING = Cut(0, (), (), (), 0)


class Recorded(NamedTuple):
    """A session as far as it was read, in display order, with its times settled.

    Attributes:
        skeleton: Its messages and parts, queued ones last.
        timeline: Their times, in the same order.
    """

    skeleton: Skeleton
    timeline: Timeline


class Recording:
    """What was read of a session: it grows page by page, and its end can be read again."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._skeleton, self._timeline = Skeleton(), Timeline()
        self._aside: list[Timed] = []
        """Parts of queued and of cancelled messages, in the store's order."""
        self._pages: list[tuple[int, Keyset | None]] = [(0, None)]
        """Where pages begin: the message, and what its page was asked for with."""

    def __len__(self) -> int:
        """Return how many messages were read."""
        return len(self._skeleton.message_ids) + len({one.outline.message_id
                                                      for one in self._aside})

    @property
    def parts(self) -> int:
        """How many parts were read."""
        skeleton = self._skeleton
        return len(skeleton) - skeleton.index.count(EMPTY_INDEX) + sum(
            one.outline.position is not None for one in self._aside)

    def holds(self, message_id: str) -> bool:
        """Return whether a message was read that is neither queued nor cancelled."""
        return self._timeline.place_of(message_id) is not None

    def add(self, page: Iterable[Timed], after: Keyset | None = None) -> None:
        """Add messages in the store's order.

        Args:
            page: Their parts.
            after: What the next page is asked for with.
        """
        for timed in page:
            outline = timed.outline
            if outline.queued_at is not None or (
                    outline.cancelled_at is not None and outline.hidden_at):
                self._aside.append(timed)
            else:
                self._skeleton.add(outline)
                self._timeline.add(*timed)
        if after is not None:
            self._pages.append((len(self._skeleton.message_ids), after))

    def drop_from(self, place: Keyset) -> Keyset | None:
        """Remove the pages from the one that has, or would have, a message.

        Args:
            place: ``(created_at, id)`` of the message.

        Returns:
            What to ask for the pages with that are to be read again.
        """
        page = 0
        for number, (_message, after) in enumerate(self._pages):
            if after is not None and isinstance(after[0], int) and after < place:
                page = number
        message, after = self._pages[page]
        del self._pages[page + 1:]
        self._skeleton.cut(message)
        self._timeline.drop_from(message)
        self._aside = [] if after is None else [
            one for one in self._aside if (one.outline.created_at, one.outline.message_id) <= after]
        return after

    def place_of(self, message_id: str) -> Keyset | None:
        """Return ``(created_at, id)`` of a message as it was read, None where it was not."""
        message = self._timeline.place_of(message_id)
        if message is not None:
            return self._skeleton.created[message], message_id
        return next(((one.outline.created_at, message_id) for one in self._aside
                     if one.outline.message_id == message_id), None)

    def take(self, lives: Lives | None = None) -> Recorded:
        """Return what was read, with its times settled; more can be added afterwards.

        Args:
            lives: Where messages and parts were, by the log; None without one.
        """
        odd = set(lives.odd()) if lives is not None else set()
        if lives is not None and odd:
            recorded = _Merging(self._skeleton, self._timeline, lives, odd).merged(self._aside)
        else:
            skeleton = self._skeleton.first_parts(len(self._skeleton))
            recorded = Recorded(skeleton, self._timeline.copy())
            for timed in self._aside:
                if timed.outline.cancelled_at is None or not timed.outline.hidden_at:
                    skeleton.add(timed.outline)
                    recorded.timeline.add(*timed)
        if lives is not None:
            _note(recorded.timeline, lives, odd)
        recorded.timeline.settle()
        return recorded


def _note(timeline: Timeline, lives: Lives, odd: set[str]) -> None:
    """Take the writes of messages and parts that were always in their place."""
    for message_id, of_message in lives.messages.items():
        message = timeline.place_of(message_id)
        if message is not None and message_id not in odd:
            timeline.note_message(
                message, _writes(of_message[0]), of_message[0].hidings)
    for of_part in lives.parts.values():
        event = of_part[-1].event
        if event.message_id not in odd:
            part = timeline.part_of(event.message_id, event.position or 0)
            if part is not None:
                timeline.note(part, _writes(of_part[-1]))


def _writes(life: Life, *, is_past: bool = False) -> Writes:
    return Writes(life.times, life.seqs, life.is_own, is_past)


class _Merging:
    """Merges the places that messages had, by the log, into the order of the store."""

    def __init__(
        self, skeleton: Skeleton, timeline: Timeline, lives: Lives, odd: set[str]
    ) -> None:
        """Take what the store has, and what the log knows.

        Args:
            skeleton: The messages of the store in order.
            timeline: Their times.
            lives: Where messages and parts were.
            odd: The messages that were not always where they are in the end.
        """
        self._of, self._times, self._lives, self._odd = skeleton, timeline, lives, odd
        stretches = sorted(
            (life for message_id in odd for life in lives.messages[message_id]
             if life.is_shown and life.begin < life.until),
            key=lambda life: (life.place, life.begin))
        self._waiting = [life for life in stretches if life.event.queued_at is not None]
        self._ordered = [life for life in stretches if life.event.queued_at is None]

    def merged(self, aside: list[Timed]) -> Recorded:
        """Return all messages, each at every place that it had; queued ones come last."""
        count = len(self._of.message_ids)
        places = range(count)
        first = bisect_left(places, self._ordered[0].place, key=self._place) \
            if self._ordered else count
        part = self._of.first[first] if first < count else len(self._of)
        self._skeleton, self._timeline = self._of.first_parts(part), self._times.copy()
        self._timeline.drop_from(first)
        message = first
        for life in self._ordered:
            while message < count and self._place(message) < life.place:
                self._copy(message)
                message += 1
            self._add(life)
        for left in range(message, count):
            self._copy(left)
        queued = [one for one in aside if one.outline.message_id not in self._odd
                  and (one.outline.cancelled_at is None or not one.outline.hidden_at)]
        for life in self._waiting:
            while queued and (
                    queued[0].outline.created_at, queued[0].outline.message_id) < life.place:
                self._add_queued(queued.pop(0))
            self._add(life)
        for timed in queued:
            self._add_queued(timed)
        return Recorded(self._skeleton, self._timeline)

    def _place(self, message: int) -> Keyset:
        return self._of.created[message], self._of.message_ids[message]

    def _add_queued(self, timed: Timed) -> None:
        self._skeleton.add(timed.outline)
        self._timeline.add(*timed)

    def _copy(self, message: int) -> None:
        if self._of.message_ids[message] not in self._odd:
            for part in self._of.parts_of(message):
                self._skeleton.add_from(self._of, part)
                self._timeline.add_from(self._times, part)

    def _add(self, life: Life) -> None:
        """Add a message at one of its places, with all parts that it had there."""
        event, begin, anew = life.event, life.begin, True
        known: list[tuple[int, int, int, Life | None]] = []
        for part_id in self._lives.parts_of.get(event.message_id, ()):
            for part in self._lives.parts[part_id]:
                since, until = max(begin, part.begin), min(life.until, part.until)
                if part.event.message_id == event.message_id and since < until:
                    known.append((part.event.position or 0, since, until, part))
        known.sort(key=itemgetter(0, 1))
        known = [(EMPTY_INDEX, since, until, None)
                 for since, until in _gaps(begin, life.until, known)] + known
        message_since = begin if life.since is not None or life.is_own else None
        for position, since, until, of_part in known:
            told = of_part.event if of_part is not None else None
            outline = Outline(
                event.message_id, event.role or "", event.created_at or 0,
                event.hidden_at or None, event.queued_at, event.cancelled_at, event.inherited,
                event.origin, position if told is not None else None, told and told.type,
                USUAL_SIZE if told is not None else 0, told and told.state)
            self._skeleton.add(outline, anew=anew)
            self._timeline.add(
                outline, (told.created_at or 0) if told else since,
                (told.updated_at or 0) if told else since,
                Stay(message_since, since, until), anew=anew)
            number = len(self._timeline) - 1
            if of_part is not None:
                is_past = min(life.until, of_part.until) < FOREVER
                self._timeline.note(number, _writes(of_part, is_past=is_past))
            if anew:
                message = len(self._skeleton.message_ids) - 1
                self._timeline.note_message(
                    message, _writes(life, is_past=life.until < FOREVER), life.hidings)
            anew = False


def _gaps(
    begin: int, end: int, known: list[tuple[int, int, int, Life | None]]
) -> list[tuple[int, int]]:
    """Return the times at which a message had no part.

    Args:
        begin: When it came.
        end: When it went.
        known: Its parts, with when each was there.
    """
    found, at = [], begin
    for since, until in sorted((since, until) for _position, since, until, _part in known):
        if since > at:
            found.append((at, since))
        at = max(at, until)
    return [*found, (at, end)] if at < end else found


class Lacking(NamedTuple):
    """What is not loaded of some parts.

    Attributes:
        spans: Rows of the store, for ``rows_of``.
        parts: Parts whose versions are wanted, by number, with their writes.
        messages: The same of messages.
    """

    spans: list[tuple[str, int, int]]
    parts: dict[int, Writes]
    messages: dict[int, Writes]

    def __bool__(self) -> bool:
        """Return whether anything is not loaded."""
        return bool(self.spans or self.parts or self.messages)


class ReplayDocument(Document):
    """A session as it was at a moment, which ``show_at`` changes.

    Attributes:
        recording: The session as far as it was read.
        at: The moment, epoch ms.
    """

    def __init__(self, recording: Recorded, setting: Setting) -> None:
        """Hold a session, at no moment yet."""
        super().__init__(setting)
        self.recording = recording
        self.at = 0
        self._whole = recording.skeleton
        self._lines = estimates(recording.skeleton, setting)
        self._cut, self._open = _NOTHING, frozenset[int]()
        self._prefix = 0
        self._numbers = array("i")
        """Numbers in the whole session, ascending, of the parts that follow the first ones."""
        self._measured: set[tuple[int, int]] = set()
        self._versions: WeightedCache[int, PartVersions] = WeightedCache(VERSION_BYTES, MOST_NEAR)
        self._message_versions: WeightedCache[int, MessageVersions] = WeightedCache(
            VERSION_BYTES, MOST_NEAR)
        self.complete = self.at_start = self.at_end = True
        self._rewinds = len(recording.timeline.rewinds)
        self._hide(0)

    @property
    def timeline(self) -> Timeline:
        """The times of the session."""
        return self.recording.timeline

    def number(self, part: int) -> int:
        """Return the number in the whole session of a part that is there."""
        return part if part < self._prefix else self._numbers[part - self._prefix]

    def part_here(self, number: int) -> int | None:
        """Return the part with a number in the whole session, None where it is not there."""
        if number < self._prefix:
            return number
        place = bisect_left(self._numbers, number)
        there = place < len(self._numbers) and self._numbers[place] == number
        return self._prefix + place if there else None

    # The moment

    def show_at(self, at: int) -> bool:
        """Hold what there was at a moment; return whether anything differs from before."""
        cut, before = self.timeline.cut(at), self._cut
        stamps = {key: self._stamp(key) for key in self._blocks}
        self.at = self.setting.now = at
        self.setting.running = at < self.timeline.finish
        if cut.hidden != before.hidden:
            self._hide(cut.hidden)
        if (cut.until, cut.beyond, cut.hidden, cut.lacking) != (
                before.until, before.beyond, before.hidden, before.lacking):
            self._take(cut)
        self._cut = cut
        self._mark_open(before)
        moved = [key for key in self._blocks if stamps.get(key) != self._stamp(key)]
        for key in moved:
            self._blocks.drop(key)
        return cut != before or bool(moved)

    def _stamp(self, key: Key) -> tuple[object, ...]:
        """Return what the layout of a part depends on beside its surroundings."""
        timeline, at = self.timeline, self.at
        number = timeline.part_of(*key, at)
        if number is None:
            return (None,)
        message = timeline.message_of(number)
        writes, of_message = timeline.writes(number), timeline.message_writes(message)
        is_open = number in self._open
        grows = is_open and (writes is None or at < writes.times[0])
        # The time that a call has run is shown, too.
        runs = self._whole.is_tool(number) and (
            is_open or self._whole.states[number] in (UNSETTLED, WAITING))
        return (
            number, bisect_right(writes.times, at) if writes is not None else 0,
            at if grows or runs else 0,
            bisect_right(of_message.times, at) if of_message is not None else 0,
            message in self._cut.answering, is_open)

    def _hide(self, rewinds: int) -> None:
        """Let the first of the rewinds and restorings have happened, and no other."""
        timeline, whole, moved = self.timeline, self._whole, set()
        low, high = sorted((rewinds, self._rewinds))
        for message in sorted({message for toggle in timeline.rewinds[low:high]
                               for message in toggle.messages}):
            at = timeline.hidden_by(message, rewinds)
            if whole.hidden_at[message] == at:
                continue
            moved.add(message)
            whole.hidden_at[message] = at
            if at:
                whole.flags[message] |= HIDDEN
            else:
                whole.flags[message] &= ~HIDDEN
        self._rewinds = rewinds
        for start, stop in stretches(sorted(moved)):
            parts = range(whole.first[start], whole.parts_of(stop).stop)
            self._lines.set_from(
                parts.start, [estimate(whole, part, self.setting) for part in parts])
        ids = {whole.message_ids[message] for message in moved}
        for key in [key for key in self._blocks if key[0] in ids]:
            self._blocks.drop(key)
        self._measured.clear()

    def _take(self, cut: Cut) -> None:
        """Hold the parts that are there at a cut."""
        edge = min(self._first_moved(cut), self._first_moved(self._cut))
        before = {key: self.around(part) for key, part in self._laid_out(edge).items()}
        prefix = cut.lacking[0] if cut.lacking else cut.until
        gone = set(cut.lacking)
        numbers = array("i", (n for n in range(prefix, cut.until) if n not in gone))
        numbers.extend(cut.beyond)
        known = len(self._numbers)
        goes_on = (prefix, cut.hidden) == (self._prefix, self._cut.hidden) and known and \
            numbers[:known] == self._numbers
        if not goes_on:
            self.skeleton, self.heights = self._whole.first_parts(prefix), self._lines.first(prefix)
            known = 0
        for part in numbers[known:]:
            self.skeleton.add_from(self._whole, part)
            self.heights.append(self._lines[part])
        self._cut, self._prefix, self._numbers = cut, prefix, numbers
        self.lacking.clear()
        self._find_runs()
        here = self._laid_out(edge)
        for key, around in before.items():
            if key not in here or self.around(here[key]) != around:
                self._blocks.drop(key)
        for run in self._runs:
            if run not in self._measured:
                self._measure_run(*run)
                self._measured.add(run)

    def _first_moved(self, cut: Cut) -> int:
        """Return the first message whose parts may look different beyond a cut."""
        count = len(self._whole)
        if not count:
            return 0
        part = min(cut.until, *cut.lacking[:1], count - 1)
        message = self._whole.message[part]
        newest = self._newest if self._newest >= 0 else message
        return max(0, min(message - 1, newest))

    def _laid_out(self, edge: int) -> dict[Key, int]:
        """Return the parts from a message on that are there and laid out, by key."""
        found: dict[Key, int] = {}
        for key in self._blocks:
            number = self.timeline.part_of(*key, self.at)
            if number is not None and self.timeline.message_of(number) >= edge:
                part = self.part_here(number)
                if part is not None and self.skeleton.key(part) == key:
                    found[key] = part
        return found

    def _mark_open(self, before: Cut) -> None:
        """Let calls that run look so in the skeleton; those of before are as they are again."""
        states, self._open = self.skeleton.states, frozenset(self._cut.open)
        for number in {*before.open, *self._cut.open}:
            part = self.part_here(number)
            if part is not None:
                states[part] = self._state_then(number)

    def _state_then(self, number: int) -> int:
        state, writes = self._whole.states[number], self.timeline.writes(number)
        if number not in self._open or not self._whole.is_tool(number) or (
                writes is not None and writes.is_past):
            return state
        return UNSETTLED

    # What a part was like

    def block(self, part: int) -> PartBlock | None:
        """Return a part's lines at the moment, None where its row is not loaded."""
        block = super().block(part)
        if block is not None:
            self._lines.set(self.number(part), len(block.lines))
        return block

    def row(self, part: int) -> PartRow | None:
        """Return a part's row as it was, None where it is not loaded."""
        number = self.number(part)
        writes = self.timeline.writes(number)
        if writes is not None and writes.differ_at(self.at):
            return self._version(number)
        row = super().row(part)
        return row if row is None else self.part_then(number, row)

    def is_open(self, part: int) -> bool:
        """Return whether a part that is there is not as it is in the end."""
        return self.number(part) in self._open

    def part_then(self, number: int, row: PartRow) -> PartRow:
        """Return a part as it was.

        Args:
            number: Its number in the whole session.
            row: Its row in the end.
        """
        if number not in self._open:
            return row
        return self._version(number) or part_before(
            row, self.timeline.share(number, self.at), self.at)

    def _version(self, number: int) -> PartRow | None:
        """Return a part as the log has it, None where that is not loaded."""
        versions = self._versions.get(number)
        found = versions.at(self.at) if versions and versions.covers(self.at) else None
        if found is None or not found[1]:
            return found and found[0]
        return part_before(found[0], self.timeline.share(number, self.at), self.at)

    def message_row(self, part: int) -> tuple[MessageRow, dict[str, Any]] | None:
        """Return the message of a part as it was, None where it is not loaded."""
        message = self.timeline.message_of(self.number(part))
        writes = self.timeline.message_writes(message)
        if writes is not None and writes.differ_at(self.at):
            then = self._message_version(message)
            return None if then is None else (then, as_dict(decode(then.metadata_json)))
        known = super().message_row(part)
        if known is None:
            return None
        row = self.message_then(message, known[0])
        return known if row is known[0] else (row, as_dict(decode(row.metadata_json)))

    def message_then(self, message: int, row: MessageRow) -> MessageRow:
        """Return a message as it was.

        Args:
            message: Its number in the whole session.
            row: Its row in the end.
        """
        writes = self.timeline.message_writes(message)
        if writes is None:
            return message_before(row) if message in self._cut.answering else row
        if writes.differ_at(self.at):
            return self._message_version(message) or message_before(row)
        return row

    def _message_version(self, message: int) -> MessageRow | None:
        """Return a message as the log has it, None where that is not loaded."""
        versions = self._message_versions.get(message)
        found = versions.at(self.at) if versions is not None else None
        if found is None or not found[1] or message not in self._cut.answering:
            return found and found[0]
        return message_before(found[0])

    # What is loaded

    def has(self, part: int) -> bool:
        """Return whether a part can be laid out from the rows that are loaded."""
        return self.collapsed(part) or not self.lacks([self.number(part)], self.at)

    def missing(self, parts: Iterable[int]) -> list[tuple[str, int, int]]:
        """Return the keys of rows that are not loaded, as spans for ``rows_of``."""
        return self.lacks([self.number(part) for part in parts if not self.has(part)],
                          self.at).spans

    def needed_at(self, at: int) -> list[int]:
        """Return the numbers of the parts that the end of what there is at a moment needs."""
        cut = self.timeline.cut(at)
        gone = set(cut.lacking)
        near = {*range(max(0, cut.until - NEAR - len(gone)), cut.until), *cut.beyond[-NEAR:],
                *cut.open[-OPEN:]}
        return sorted(near - gone)[-MOST_NEAR:]

    def lacks(self, numbers: Iterable[int], at: int) -> Lacking:
        """Return what is not loaded of some parts.

        Args:
            numbers: Their numbers in the whole session, ascending.
            at: The moment that they are wanted of.
        """
        found = Lacking([], {}, {})
        for number in numbers:
            message, (message_id, index) = self.timeline.message_of(number), self._whole.key(number)
            wants_row, wants_message = index != EMPTY_INDEX, True
            writes = self.timeline.writes(number)
            if writes is not None and writes.differ_at(at):
                wants_row = False
                versions = self._versions.get(number)
                if versions is None or not versions.covers(at):
                    found.parts[number] = writes
            writes = self.timeline.message_writes(message)
            if writes is not None and writes.differ_at(at):
                wants_message = False
                if message not in self._message_versions:
                    found.messages[message] = writes
            if (wants_row and (message_id, index) not in self._rows) or (
                    wants_message and message_id not in self._messages):
                spans = found.spans
                if spans and spans[-1][0] == message_id:
                    spans[-1] = (message_id, spans[-1][1], index)
                else:
                    spans.append((message_id, index, index))
        return found

    def put_versions(self, number: int, versions: PartVersions) -> None:
        """Take what a part was, write by write; by its number in the whole session."""
        self._versions.put(number, versions, versions.weight)

    def put_message_versions(self, message: int, versions: MessageVersions) -> None:
        """Take what a message was, write by write; by its number in the whole session."""
        self._message_versions.put(message, versions, versions.weight)

    def _measure_run(self, start: int, stop: int) -> None:
        super()._measure_run(start, stop)
        parts = self._parts_of_run(start, stop)
        if parts.stop <= self._prefix:
            self._lines.set_from(parts.start, [self.heights[part] for part in parts])
        else:
            for part in parts:
                self._lines.set(self.number(part), self.heights[part])


def stretches(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each stretch of successive ascending numbers."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found

