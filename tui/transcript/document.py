"""A session as the transcript holds it: skeleton, a window of rows, laid-out parts, folds.

It imports no widgets and never reads the store: ``missing`` returns what it lacks, and
``put`` takes rows. Parts are numbered by their position in the skeleton.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from store.conversation.readable import decode
from store.queries.transcript import Outline
from store.rows import MessageRow, PartRow
from store.text.stored_json import as_dict
from tui.kit.cache import WeightedCache
from tui.kit.masked import is_view_masked, shown, shown_value
from tui.transcript.heights import Heights
from tui.transcript.item import Item, Level, Setting
from tui.transcript.layout import PartBlock, lay_out
from tui.transcript.measures import estimate
from tui.transcript.skeleton import EMPTY_INDEX, SILENT, Skeleton, append
from tui.transcript.surroundings import Surroundings

Key = tuple[str, int]
"""Message id and ``"index"`` of a part."""
ROW_BYTES = 1_500_000
ROW_ITSELF = 300
"""Bytes, about, that a row takes beside its JSON."""
LAID_LINES = 1_200
LEAST = 96


class Document(Surroundings):
    """What is known of one session, and the heights of its parts.

    Attributes:
        complete: Whether the whole skeleton is known; else it is a window.
        lacking: Parts whose heights were asked for while their rows were missing.
        folds: How far single parts are open, by key; the user or a hit opened them.
        pages: How many pages of long parts are shown, by key.
    """

    def __init__(self, setting: Setting) -> None:
        """Start empty, with a width and modes."""
        self.setting = setting
        super().__init__()
        self.heights = Heights()
        self.complete = False
        self.lacking: set[int] = set()
        self.folds: dict[Key, Level] = {}
        self.pages: dict[Key, int] = {}
        self._rows: WeightedCache[Key, PartRow] = WeightedCache(ROW_BYTES, LEAST)
        self._messages: WeightedCache[str, tuple[MessageRow, dict[str, Any]]] = WeightedCache(
            ROW_BYTES // 4, LEAST)
        self._blocks: WeightedCache[Key, PartBlock] = WeightedCache(LAID_LINES, LEAST)

    def __len__(self) -> int:
        """Return how many parts are known."""
        return len(self.skeleton)

    # What comes in

    def put(self, messages: Iterable[MessageRow], parts: Iterable[PartRow]) -> None:
        """Take rows; a part that changed is laid out again when it is needed."""
        for message in messages:
            known = self._messages.get(message.id)
            if known is None or known[0] != message:
                if known is not None:
                    self._drop_blocks_of(message.id)
                metadata = as_dict(decode(message.metadata_json))
                self._messages.put(
                    message.id, (message, metadata), len(message.metadata_json) + ROW_ITSELF)
        for part in parts:
            key = (part.message_id, part.index)
            known_part = self._rows.get(key)
            if known_part is not None and known_part != part:
                self._blocks.drop(key)
            self._rows.put(key, part, len(part.data_json) + ROW_ITSELF)

    def use(
        self, skeleton: Skeleton, heights: Heights, *, complete: bool, at_start: bool = True,
        at_end: bool = True,
    ) -> None:
        """Replace the skeleton; rows and folds stay, since they are kept by key.

        Args:
            skeleton: What is known of the session.
            heights: The lines of its parts.
            complete: Whether that is the whole session; else it is a window.
            at_start: Whether the session begins with it.
            at_end: Whether the session ends with it.
        """
        self.skeleton, self.heights = skeleton, heights
        self.complete, self.at_start, self.at_end = complete, at_start, at_end
        self.lacking.clear()
        self._find_runs()
        self._blocks.clear()
        for start, stop in self._runs:
            self._measure_run(start, stop)

    def regrow(self, start: int, outlines: Iterable[Outline]) -> None:
        """Replace a message and all that follow; heights and layouts stay where nothing changed.

        Args:
            start: The first message that is replaced; no queued one may come before it.
            outlines: What the store has from there on, in its order.
        """
        skeleton = self.skeleton
        begin = skeleton.first[start] if start < len(skeleton.first) else len(skeleton)
        before = self._newest
        affected = max(0, begin - 1)
        known = {skeleton.key(part): (self.heights[part], skeleton.sizes[part],
                                      self.around(part))
                 for part in range(affected, len(skeleton))}
        was_newest = skeleton.message_ids[before] if before >= 0 else None
        skeleton.cut(start)
        self.heights.cut(begin)
        append(skeleton, outlines)
        self._find_runs()
        for part in range(begin, len(skeleton)):
            # A height of 0 may come from a closed run that the part is no longer in.
            height, size, _ = known.get(skeleton.key(part), (0, -1, None))
            self.heights.append(height if height and size == skeleton.sizes[part]
                                else estimate(skeleton, part, self.setting))
        for part in range(affected, len(skeleton)):
            key = skeleton.key(part)
            if key in self._blocks and (key not in known or known[key][2] != self.around(part)):
                self._blocks.drop(key)
        if was_newest is not None and 0 <= before < start and before != self._newest:
            self._drop_blocks_of(was_newest)
        for first, stop in self._runs:
            if stop >= start - 1:
                self._measure_run(first, stop)

    def _drop_blocks_of(self, message_id: str) -> None:
        for key in [key for key in self._blocks if key[0] == message_id]:
            self._blocks.drop(key)

    def forget_rows(self, message_ids: Collection[str], kept: Collection[Key]) -> None:
        """Drop the rows of messages that were written.

        Args:
            message_ids: The messages.
            kept: Keys of rows that are replaced at once.
        """
        for message_id in message_ids:
            if (message_id, EMPTY_INDEX) not in kept:
                self._messages.drop(message_id)
        for key in [key for key in self._rows if key[0] in message_ids and key not in kept]:
            self._rows.drop(key)
            self._blocks.drop(key)

    def keep_rows(self, kept: Collection[Key]) -> None:
        """Drop all rows but those that are replaced at once."""
        self.forget_rows({key[0] for key in self._rows} | set(self._messages), kept)

    def relayout(self) -> None:
        """Drop all layouts: the width, a mode or the theme of a code block changed."""
        self._blocks.clear()

    def forget(self, part: int) -> None:
        """Drop the layout of a part; it is laid out again when it is needed."""
        self._blocks.drop(self.skeleton.key(part))

    # Hidden runs

    def turn_run(self, run: tuple[int, int]) -> None:
        """Show or hide one run."""
        ids = self.skeleton.message_ids[run[0]: run[1] + 1]
        turned = run[0] in self._turned_starts
        self.turned_runs = self.turned_runs.difference(ids) if turned \
            else self.turned_runs.union(ids)
        self._turned_starts ^= {run[0]}
        self._measure_run(*run)

    def turn_like(self, other: Document) -> None:
        """Show and hide the same runs as another document of the session."""
        self.show_hidden, self.turned_runs = other.show_hidden, other.turned_runs
        self._find_turned()
        for start, stop in self._runs:
            self._measure_run(start, stop)

    @property
    def has_hidden(self) -> bool:
        """Whether rewinds have hidden messages of the session."""
        return bool(self._runs)

    def set_show_hidden(self, shown: bool) -> None:
        """Show or hide all runs."""
        self.show_hidden = shown
        self.turned_runs, self._turned_starts = set(), set()
        for start, stop in self._runs:
            self._measure_run(start, stop)

    def _measure_run(self, start: int, stop: int) -> None:
        parts, hidden = self._parts_of_run(start, stop), set(
            self.skeleton.message_ids[start: stop + 1])
        for key in [key for key in self._blocks if key[0] in hidden]:
            self._blocks.drop(key)
        heights = [0] * len(parts)
        if self.run_opened((start, stop)):
            heights = [estimate(self.skeleton, part, self.setting) for part in parts]
        heights[0] += 2
        self.heights.set_from(parts.start, heights)

    def _parts_of_run(self, start: int, stop: int) -> range:
        return range(self.skeleton.first[start], self.skeleton.parts_of(stop).stop)

    def collapsed(self, part: int) -> bool:
        """Return whether a part takes no line because its run is closed."""
        run = self.run_of(part)
        if run is None or self.run_opened(run):
            return False
        return part != self.skeleton.first[run[0]]

    def shows(self, part: int) -> bool:
        """Return whether a part may take lines at all."""
        return self.skeleton.type_of(part) not in SILENT and not self.collapsed(part)

    def last_shown(self) -> int:
        """Return the last part that may take lines, 0 where there is none."""
        part = len(self) - 1
        while part > 0 and not self.shows(part):
            run = self.run_of(part) if self.collapsed(part) else None
            part = part - 1 if run is None else self.skeleton.first[run[0]]
        return max(0, part)

    # Layout

    def has(self, part: int) -> bool:
        """Return whether a part can be laid out from the rows that are loaded."""
        if self.collapsed(part):
            return True
        message_id, index = self.skeleton.key(part)
        if message_id not in self._messages:
            return False
        return index == EMPTY_INDEX or (message_id, index) in self._rows

    def row(self, part: int) -> PartRow | None:
        """Return a part's row, None where it is not loaded."""
        return self._rows.get(self.skeleton.key(part))

    def message_row(self, part: int) -> tuple[MessageRow, dict[str, Any]] | None:
        """Return the message of a part with its decoded metadata, None where it is not loaded."""
        return self._messages.get(self.skeleton.key(part)[0])

    def block(self, part: int) -> PartBlock | None:
        """Return a part's lines, None where its row is not loaded."""
        key = self.skeleton.key(part)
        block = self._blocks.get(key)
        if block is not None:
            return block
        if not self.shows(part):
            self.heights.set(part, 0)
            return PartBlock([])
        item = self.item(part)
        if item is None:
            return None
        if is_view_masked():
            item = replace(
                item, data=shown_value(item.data), metadata=shown_value(item.metadata),
                row=item.row and replace(item.row, data_json=shown(item.row.data_json)))
        block = lay_out(item, self.setting)
        self._blocks.put(key, block, len(block.lines) + 1)
        self.heights.set(part, len(block.lines))
        return block

    def height(self, part: int) -> int:
        """Return how many lines a part takes: exact where its row is loaded, else an estimate."""
        block = self.block(part)
        if block is None:
            self.lacking.add(part)
            return self.heights[part]
        return len(block.lines)

    def missing(self, parts: Iterable[int]) -> list[tuple[str, int, int]]:
        """Return the keys of rows that are not loaded, as spans for ``rows_of``."""
        spans: list[tuple[str, int, int]] = []
        for part in parts:
            if self.has(part):
                continue
            message_id, index = self.skeleton.key(part)
            if spans and spans[-1][0] == message_id:
                spans[-1] = (message_id, spans[-1][1], index)
            else:
                spans.append((message_id, index, index))
        return spans

    def item(self, part: int) -> Item | None:
        """Return a part with its surroundings, None where its row is not loaded."""
        skeleton = self.skeleton
        known = self.message_row(part)
        key = skeleton.key(part)
        row = self.row(part)
        if known is None or (row is None and key[1] != EMPTY_INDEX):
            return None
        return Item(
            row, known[0], as_dict(decode(row.data_json)) if row is not None else {}, known[1],
            level=self.folds.get(key), pages=self.pages.get(key, 1), around=self.around(part),
        )
