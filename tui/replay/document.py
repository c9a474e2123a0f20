"""The transcript's document, cut at a moment: what came later is not in it.

Skeleton and heights of the whole session are kept; what is there at a moment is a copy of their
beginning, which takes no longer in the middle of a long session than at its start. Layouts stay
but where the cut changed what they depend on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from store.conversation.readable import decode
from store.queries.transcript import Keyset
from store.replay.log import Change, Hiding, PartVersions
from store.replay.reading import Timed
from store.replay.timeline import Cut, Logged, Timeline
from store.replay.versions import message_before, part_before
from store.rows import MessageRow, PartRow
from store.text.stored_json import as_dict
from tui.kit.cache import WeightedCache
from tui.transcript.document import Document, Key
from tui.transcript.item import Item, Setting
from tui.transcript.layout import PartBlock
from tui.transcript.measures import estimate, estimates
from tui.transcript.skeleton import EMPTY_INDEX, HIDDEN, UNSETTLED, Skeleton

NEAR = 60
"""Parts at the end whose rows are read before a moment is shown."""
VERSIONS = 32
"""Parts whose versions are kept."""
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

    def drop_from(self, places: Iterable[Keyset]) -> Keyset | None:
        """Remove the pages from the one that has, or would have, the first of some messages.

        Args:
            places: ``(created_at, id)`` of the messages.

        Returns:
            What to ask for the pages with that are to be read again.
        """
        first, page = min(places), 0
        for number, (_message, after) in enumerate(self._pages):
            if after is not None and isinstance(after[0], int) and after < first:
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

    def take(self, changes: Iterable[Change] = (), hidings: Iterable[Hiding] = ()) -> Recorded:
        """Return what was read, with its times settled; more can be added afterwards.

        Args:
            changes: When parts were written, by the log.
            hidings: Whether messages were hidden, by the log.
        """
        skeleton, timeline = self._skeleton.first_parts(len(self._skeleton)), self._timeline.copy()
        for timed in self._aside:
            if timed.outline.cancelled_at is None or not timed.outline.hidden_at:
                skeleton.add(timed.outline)
                timeline.add(*timed)
        for change in changes:
            timeline.note(change)
        for hiding in hidings:
            timeline.note_hiding(hiding)
        return Recorded(skeleton, timeline.settle())


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
        self._cut = _NOTHING
        self._numbers: tuple[int, ...] = ()
        """Numbers in the whole session of the parts behind ``self._cut.until``."""
        self._measured: set[tuple[int, int]] = set()
        self._versions: WeightedCache[int, PartVersions] = WeightedCache(VERSIONS)
        self.complete = self.at_start = self.at_end = True
        self._rewinds = len(recording.timeline.rewinds)
        self._hide(0)

    @property
    def timeline(self) -> Timeline:
        """The times of the session."""
        return self.recording.timeline

    def number(self, part: int) -> int:
        """Return the number in the whole session of a part that is there."""
        until = self._cut.until
        return part if part < until else self._numbers[part - until]

    # The moment

    def show_at(self, at: int) -> bool:
        """Hold what there was at a moment; return whether anything differs from before."""
        cut, before = self.timeline.cut(at), self._cut
        self.at = self.setting.now = at
        self.setting.running = at < self.timeline.finish
        if cut.hidden != before.hidden:
            self._hide(cut.hidden)
        if (cut.until, cut.beyond, cut.hidden) != (before.until, before.beyond, before.hidden):
            self._take(cut)
        self._cut = cut
        self._mark_open(before)
        self._drop_open(before)
        return cut != before or bool(cut.open)

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
        skeleton, lines = self._whole.first_parts(cut.until), self._lines.first(cut.until)
        for part in cut.beyond:
            skeleton.add_from(self._whole, part)
            lines.append(self._lines[part])
        self.skeleton, self.heights = skeleton, lines
        self._cut, self._numbers = cut, cut.beyond
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
        message = self._whole.message[min(cut.until, count - 1)]
        newest = self._newest if self._newest >= 0 else message
        return max(0, min(message - 1, newest))

    def _laid_out(self, edge: int) -> dict[Key, int]:
        """Return the parts from a message on that are there and laid out, by key."""
        found: dict[Key, int] = {}
        for key in list(self._blocks):
            if (self.timeline.place_of(key[0]) or 0) < edge:
                continue
            message = self._message_of(key[0])
            for part in self.skeleton.parts_of(message) if message is not None else ():
                if self.skeleton.index[part] == key[1]:
                    found[key] = part
                    break
        return found

    def _message_of(self, message_id: str) -> int | None:
        """Return the number of a message that is there; its number in the whole may be larger."""
        place = self.timeline.place_of(message_id)
        ids = self.skeleton.message_ids
        if place is None or not ids:
            return None
        if place < len(ids) and ids[place] == message_id:
            return place
        low = self.skeleton.message[self._cut.until - 1] if self._cut.until else 0
        return next((n for n in range(low, len(ids)) if ids[n] == message_id), None)

    def _mark_open(self, before: Cut) -> None:
        """Let calls that run look so in the skeleton; those of before are as they are again."""
        states = self.skeleton.states
        until = self._cut.until
        places = {number: until + n for n, number in enumerate(self._numbers)}
        for number in {*before.open, *self._cut.open}:
            place = number if number < until else places.get(number)
            if place is not None:
                is_open = number in self._cut.open and self._whole.is_tool(number)
                states[place] = UNSETTLED if is_open else self._whole.states[number]

    def _drop_open(self, before: Cut) -> None:
        """Drop the layouts of what was not complete before, or is not now."""
        for number in {*before.open, *self._cut.open}:
            self._blocks.drop(self._whole.key(number))
        for message in set(before.answering) ^ set(self._cut.answering):
            self._drop_blocks_of(self._whole.message_ids[message])

    # What a part was like

    def block(self, part: int) -> PartBlock | None:
        """Return a part's lines at the moment, None where its row is not loaded."""
        block = super().block(part)
        if block is not None:
            self._lines.set(self.number(part), len(block.lines))
        return block

    def item(self, part: int) -> Item | None:
        """Return a part as it was, with its surroundings."""
        item = super().item(part)
        if item is None or item.row is None:
            return item
        row = self.row(part)
        if row is not None and row is not item.row:
            item.row, item.data = row, as_dict(decode(row.data_json))
        return item

    def row(self, part: int) -> PartRow | None:
        """Return a part's row as it was, None where it is not loaded."""
        row = super().row(part)
        return row if row is None else self.part_then(self.number(part), row)

    def is_open(self, part: int) -> bool:
        """Return whether a part that is there is not as it is in the end."""
        return self.number(part) in self._cut.open

    def part_then(self, number: int, row: PartRow) -> PartRow:
        """Return a part as it was.

        Args:
            number: Its number in the whole session.
            row: Its row in the end.
        """
        if number not in self._cut.open:
            return row
        versions = self._versions.get(number)
        if versions is not None:
            return versions.at(self.at)
        return part_before(row, self.timeline.share(number, self.at), self.at)

    def missing_at(self, at: int) -> list[tuple[str, int, int]]:
        """Return the rows that the end of what there is at a moment needs, for ``rows_of``."""
        cut = self.timeline.cut(at)
        parts = {*range(max(0, cut.until - NEAR), cut.until), *cut.beyond[-NEAR:],
                 *cut.open[-VERSIONS:]}
        spans: list[tuple[str, int, int]] = []
        for message_id, index in map(self._whole.key, sorted(parts)):
            known = index == EMPTY_INDEX or (message_id, index) in self._rows
            if known and message_id in self._messages:
                continue
            if spans and spans[-1][0] == message_id:
                spans[-1] = (message_id, spans[-1][1], index)
            else:
                spans.append((message_id, index, index))
        return spans

    def missing_versions(self, at: int) -> list[tuple[int, PartRow, Logged]]:
        """Return the parts whose versions in the log are needed at a moment, with their rows."""
        found = []
        for number in self.timeline.cut(at).open[-VERSIONS // 2:]:
            logged, row = self.timeline.logged(number), self._rows.get(self._whole.key(number))
            if number not in self._versions and logged is not None and row is not None:
                found.append((number, row, logged))
        return found

    def put_versions(self, number: int, versions: PartVersions) -> None:
        """Take what a part was, event by event; by its number in the whole session."""
        self._versions.put(number, versions, 1)

    def message_row(self, part: int) -> tuple[MessageRow, dict[str, Any]] | None:
        """Return the message of a part as it was, None where it is not loaded."""
        known = super().message_row(part)
        if known is None:
            return None
        row = self.message_then(known[0])
        return known if row is known[0] else (row, as_dict(decode(row.metadata_json)))

    def message_then(self, row: MessageRow) -> MessageRow:
        """Return a message as it was; ``row`` is what it became."""
        place = self.timeline.place_of(row.id)
        return message_before(row) if place in self._cut.answering else row

    def _measure_run(self, start: int, stop: int) -> None:
        super()._measure_run(start, stop)
        parts = self._parts_of_run(start, stop)
        if parts.stop <= self._cut.until:
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

