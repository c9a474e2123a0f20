"""A session as the transcript holds it: skeleton, a window of rows, laid-out parts, folds.

It knows nothing of widgets and never reads the store: it says what it lacks (``missing``)
and is given rows (``put``). Parts are named by their position in the skeleton.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from store.rows import MessageRow, PartRow
from tui.transcript.cache import WeightedCache
from tui.transcript.facts import same_day
from tui.transcript.heights import Heights
from tui.transcript.item import Item, Level, Setting
from tui.transcript.layout import lay_out
from tui.transcript.lines import Block
from tui.transcript.measures import estimate, hidden_runs, newest_message
from tui.transcript.plain import as_dict, decode
from tui.transcript.skeleton import EMPTY_INDEX, HIDDEN, INHERITED, QUEUED, SILENT, Skeleton

Key = tuple[str, int]
"""Message id and ``"index"`` of a part."""
ROW_BYTES = 6_000_000
LAID_LINES = 4_000
LEAST = 96
_ASIDES = frozenset({"meta", "notification"})
_EVENTS = frozenset({"data-event", "data-retry"})
_LOOK_AHEAD = 12


class Document:
    """What is known of one session, and how tall its parts are."""

    def __init__(self, setting: Setting) -> None:
        """Start with nothing, for a width and a set of modes."""
        self.setting = setting
        self.skeleton = Skeleton()
        self.heights = Heights()
        self.complete = False
        self.at_start = True
        self.folds: dict[Key, Level] = {}
        self.pages: dict[Key, int] = {}
        self.show_hidden = False
        self.turned_runs: set[str] = set()
        self._runs: list[tuple[int, int]] = []
        self._run_starts: list[int] = []
        self._newest = -1
        self._rows: WeightedCache[Key, PartRow] = WeightedCache(ROW_BYTES, LEAST)
        self._messages: WeightedCache[str, tuple[MessageRow, dict[str, Any]]] = WeightedCache(
            ROW_BYTES // 4, LEAST)
        self._blocks: WeightedCache[Key, Block] = WeightedCache(LAID_LINES, LEAST)

    def __len__(self) -> int:
        """Return how many parts are known."""
        return len(self.skeleton)

    # What comes in

    def put(self, messages: Iterable[MessageRow], parts: Iterable[PartRow]) -> None:
        """Take rows; a part that changed is laid out again when it is asked for."""
        for message in messages:
            known = self._messages.get(message.id)
            if known is None or known[0].metadata_json != message.metadata_json:
                metadata = as_dict(decode(message.metadata_json))
                self._messages.put(message.id, (message, metadata), len(message.metadata_json))
        for part in parts:
            key = (part.message_id, part.index)
            known_part = self._rows.get(key)
            if known_part is not None and known_part.data_json != part.data_json:
                self._blocks.drop(key)
            self._rows.put(key, part, len(part.data_json) + 300)

    def use(self, skeleton: Skeleton, heights: Heights, *, complete: bool, at_start: bool) -> None:
        """Replace the skeleton; rows and folds stay, as they are kept by key."""
        self.skeleton, self.heights = skeleton, heights
        self.complete, self.at_start = complete, at_start
        self._runs = hidden_runs(skeleton)
        self._run_starts = [start for start, _stop in self._runs]
        self._newest = newest_message(skeleton)
        self._blocks.clear()
        for start, stop in self._runs:
            self._measure_run(start, stop)

    def relayout(self) -> None:
        """Forget all layouts: the width, a mode or the theme of a code block changed."""
        self._blocks.clear()

    def forget(self, part: int) -> None:
        """Lay out a part again when it is asked for."""
        self._blocks.drop(self.skeleton.key(part))

    # Hidden runs

    def run_of(self, part: int) -> tuple[int, int] | None:
        """Return first and last message of the hidden run that a part is in."""
        message = self.skeleton.message[part]
        if not self.skeleton.flags[message] & HIDDEN:
            return None
        return self._runs[bisect_right(self._run_starts, message) - 1]

    def run_opened(self, run: tuple[int, int]) -> bool:
        """Say whether a hidden run is shown."""
        return self.show_hidden != (self.skeleton.message_ids[run[0]] in self.turned_runs)

    def turn_run(self, run: tuple[int, int]) -> None:
        """Show or hide one run."""
        self.turned_runs ^= {self.skeleton.message_ids[run[0]]}
        self._measure_run(*run)

    def set_show_hidden(self, shown: bool) -> None:
        """Show or hide all runs."""
        self.show_hidden = shown
        self.turned_runs.clear()
        for start, stop in self._runs:
            self._measure_run(start, stop)

    def _measure_run(self, start: int, stop: int) -> None:
        opened = self.run_opened((start, stop))
        first, last = self.skeleton.first[start], self.skeleton.parts_of(stop).stop
        for part in range(first, last):
            self._blocks.drop(self.skeleton.key(part))
            height = estimate(self.skeleton, part, self.setting) if opened else 0
            self.heights.set(part, height + 2 if part == first else height)

    def collapsed(self, part: int) -> bool:
        """Say whether a part takes no line because its run is closed."""
        run = self.run_of(part)
        if run is None or self.run_opened(run):
            return False
        return part != self.skeleton.first[run[0]]

    def shows(self, part: int) -> bool:
        """Say whether a part may take lines at all."""
        return self.skeleton.type_of(part) not in SILENT and not self.collapsed(part)

    # Layout

    def has(self, part: int) -> bool:
        """Say whether a part can be laid out from what is here."""
        if self.collapsed(part):
            return True
        message_id, index = self.skeleton.key(part)
        if message_id not in self._messages:
            return False
        return index == EMPTY_INDEX or (message_id, index) in self._rows

    def row(self, part: int) -> PartRow | None:
        """Return a part's row where it is here."""
        return self._rows.get(self.skeleton.key(part))

    def message_row(self, part: int) -> tuple[MessageRow, dict[str, Any]] | None:
        """Return the message of a part, and its decoded metadata, where it is here."""
        return self._messages.get(self.skeleton.key(part)[0])

    def block(self, part: int) -> Block | None:
        """Return a part's lines, or None where its row is missing."""
        key = self.skeleton.key(part)
        block = self._blocks.get(key)
        if block is not None:
            return block
        if not self.shows(part):
            self.heights.set(part, 0)
            return Block([])
        item = self.item(part)
        if item is None:
            return None
        block = lay_out(item, self.setting)
        self._blocks.put(key, block, len(block.lines) + 1)
        self.heights.set(part, len(block.lines))
        return block

    def height(self, part: int) -> int:
        """Return a part's lines: exact where its row is here, else the estimate."""
        block = self.block(part)
        return len(block.lines) if block is not None else self.heights[part]

    def missing(self, parts: range) -> list[tuple[str, int, int]]:
        """Return the keys of rows that are not here, as spans for ``rows_of``."""
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
        """Return a part with what surrounds it, or None where its row is missing."""
        skeleton = self.skeleton
        known = self.message_row(part)
        key = skeleton.key(part)
        row = self._rows.get(key)
        if known is None or (row is None and key[1] != EMPTY_INDEX):
            return None
        message = skeleton.message[part]
        parts = skeleton.parts_of(message)
        run = self.run_of(part)
        begins_run = run is not None and part == skeleton.first[run[0]]
        flags = skeleton.flags[message]
        return Item(
            row, known[0], as_dict(decode(row.data_json)) if row is not None else {}, known[1],
            flags=flags, heads=self._heads(part), gap=self._gap(part),
            new_day=part == parts.start and not flags & QUEUED and self._new_day(message),
            level=self.folds.get(key), pages=self.pages.get(key, 1),
            hidden=self._hidden_fact(run) if run is not None and begins_run else None,
            opened=run is not None and self.run_opened(run),
            first_inherited=bool(flags & INHERITED) and part == parts.start and (
                message == 0 and self.at_start
                or message > 0 and not skeleton.flags[message - 1] & INHERITED),
            last=part == parts.stop - 1, newest=message == self._newest,
        )

    def _hidden_fact(self, run: tuple[int, int]) -> tuple[int, int]:
        return run[1] - run[0] + 1, self.skeleton.hidden_at[run[0]]

    def _new_day(self, message: int) -> bool:
        created = self.skeleton.created
        if message == 0:
            return self.at_start
        return not same_day(created[message - 1], created[message])

    def _before(self, part: int) -> int | None:
        """Return the part that stands above, None where there is none."""
        part -= 1
        while part >= 0 and self.skeleton.type_of(part) in SILENT:
            part -= 1
        return part if part >= 0 else None

    def _heads(self, part: int) -> bool:
        skeleton, name = self.skeleton, self.skeleton.type_of(part)
        message = skeleton.message[part]
        before = self._before(part)
        begins = before is None or skeleton.message[before] != message
        if skeleton.roles[message] != "assistant":
            return begins
        if name == "text":
            return begins or before is None or skeleton.type_of(before) != "text"
        if name == "reasoning" and begins:
            following = skeleton.parts_of(message)[:_LOOK_AHEAD]
            return all(skeleton.type_of(other) != "text" for other in following)
        return False

    def _gap(self, part: int) -> bool:
        before = self._before(part)
        if before is None or self.run_of(before) != self.run_of(part):
            return True
        kind = self._kind(part)
        return kind == "" or kind != self._kind(before)

    def _kind(self, part: int) -> str:
        """Return the group within which parts stand close, "" for parts that stand apart."""
        skeleton = self.skeleton
        message = skeleton.message[part]
        if skeleton.flags[message] & QUEUED:
            return "queued"
        name = skeleton.type_of(part)
        if skeleton.is_tool(part) or name == "reasoning":
            return "work"
        if name in _EVENTS or (
            skeleton.origins[message] in _ASIDES and skeleton.roles[message] != "assistant"
        ):
            return "aside"
        if skeleton.is_prose(part) and part != skeleton.first[message]:
            before = self._before(part)
            if before is not None and skeleton.is_prose(before):
                return f"prose {message}" if skeleton.roles[message] != "assistant" else ""
        return f"prose {message}" if skeleton.roles[message] == "user" else ""
