"""The tabs Files and Commands: reading, sorting, filtering, and the edits of a file."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from store.queries import touches
from store.queries.touches import CommandUse, FileRow, Touches
from store.text.figures import count_of
from tui.details.edits import PREVIEW_LINES, Edits, diff_text, edit_blocks
from tui.details.touched_tables import (
    COMMAND_ORDERS,
    FILE_ORDERS,
    CommandTable,
    FileTable,
    command_text,
    file_text,
)
from tui.files.reading import standings
from tui.kit.blocks import Block, Text, plain
from tui.kit.lines import Line, Run, cut, width_of
from tui.kit.text import one_line
from tui.words.touched import commands_words, files_words

if TYPE_CHECKING:
    from store.files.disk import Standing
    from store.store import Store

FILES, COMMANDS = "Files", "Commands"
SHOWN_EVERY_S = 0.2
"""While a long session is read, how often what was read so far is shown."""

MOST_COMPARED = 1_000
"""Changed files that are compared with the disk without being asked for."""
COMPARED_AT_ONCE = 100

SHARE = 5
"""Showing takes at most one part in so many of the time of reading."""

Item = TypeVar("Item", FileRow, CommandUse)


class TouchedLists:
    """What the two tabs show, without a screen.

    Attributes:
        found: What was read so far; None before the reading began.
        standings: How changed files on disk are to what the session left of them, by path.
        diff: The file whose edits fill the view, with them; None while the list is shown.
    """

    def __init__(self, store: Store, session_id: str) -> None:
        """Take the session; nothing is read before ``read``."""
        self._store, self._session_id = store, session_id
        self.found: Touches | None = None
        self.diff: tuple[FileRow, Edits] | None = None
        self.standings: dict[str, Standing] = {}
        self._filters = {FILES: "", COMMANDS: ""}
        self._orders = {FILES: 0, COMMANDS: 0}
        self._shown: list[FileRow] | list[CommandUse] = []
        self._texts: dict[int, str] = {}

    # Reading

    async def read(self, show: Callable[[], object]) -> None:
        """Read the session, and show what is there now and then.

        Args:
            show: Called with what was read so far, and at the end.
        """
        places = await self._store.read(touches.places, self._session_id)
        self.found = found = Touches(places)
        wait = 0.0
        shown_at = time.monotonic()
        while not found.is_whole:
            found.add(await self._store.read(touches.read, places, *found.next_batch))
            self._texts.clear()
            began = time.monotonic()
            if began - shown_at >= wait:
                show()
                shown_at = time.monotonic()
                wait = max(SHOWN_EVERY_S, SHARE * (shown_at - began))
        show()

    async def compare_with_disk(self, show: Callable[[], object]) -> None:
        """Find how changed files on disk are to what the session left of them.

        Args:
            show: Called with those that were compared so far.
        """
        found = self.found
        if found is None:
            return
        keys = [row.key for row in found.files.values() if row.changes][:MOST_COMPARED]
        for start in range(0, len(keys), COMPARED_AT_ONCE):
            batch = keys[start : start + COMPARED_AT_ONCE]
            self.standings |= await self._store.read(standings, self._session_id, found, batch)
            show()

    async def edits_of(self, row: FileRow) -> Edits:
        """Return the changes of a file with their lines, oldest first."""
        prose = self.found is not None and self.found.places.prose
        return await self._store.read(touches.diffs, row.uses, prose=prose)

    async def command_of(self, use: CommandUse) -> str:
        """Return all of a command, also of one whose list holds only the start."""
        if self.found is None:
            return use.text
        return await self._store.read(touches.command_text, use, self.found.places)

    # What is shown

    def count(self, tab: str) -> int:
        """Return how many files or commands were found so far, whatever the filter."""
        return len(self.found.files if tab == FILES else self.found.commands) if self.found else 0

    def filter_of(self, tab: str) -> str:
        """Return the filter of a tab."""
        return self._filters.get(tab, "")

    def set_filter(self, tab: str, text: str) -> None:
        """Filter a tab: lines that hold each of the words."""
        self._filters[tab] = text

    def next_order(self, tab: str) -> None:
        """Sort a tab in the next way."""
        self._orders[tab] = (self._orders[tab] + 1) % len(_orders(tab))

    def item_at(self, number: int) -> FileRow | CommandUse | None:
        """Return the file or command on a line; None beyond the end."""
        return self._shown[number] if 0 <= number < len(self._shown) else None

    def place_of(self, item: FileRow | CommandUse | None) -> int:
        """Return the line of a file or command, 0 where it is not shown."""
        return next((at for at, shown in enumerate(self._shown) if shown is item), 0)

    def blocks(self, tab: str) -> list[Block]:
        """Return the list of a tab, or the edits of the chosen file."""
        if self.found is None:
            return [_told("reading the calls…")]
        if tab == FILES and self.diff is not None:
            return edit_blocks(self._session_id, *self.diff)
        if tab == FILES:
            files = sorted(self.found.files.values(), key=FILE_ORDERS[self._orders[tab]].key)
            self._shown = files = self._kept(tab, files, file_text)
            table = FileTable(self._session_id, files, self.standings)
            return [table] if files else [self._nothing(tab)]
        order = COMMAND_ORDERS[self._orders[tab]]
        commands = sorted(reversed(self.found.commands), key=order.key)
        self._shown = commands = self._kept(tab, commands, command_text)
        root = self.found.places.root
        return [CommandTable(self._session_id, commands, root)] if commands else [
            self._nothing(tab)
        ]

    def _kept(self, tab: str, items: list[Item], text: Callable[[Item], str]) -> list[Item]:
        """Return the items that hold each word of the tab's filter."""
        words = self._filters[tab].casefold().split()
        if not words:
            return items
        known = self._texts
        for item in items:
            if id(item) not in known:
                known[id(item)] = text(item)
        return [item for item in items if _holds(known[id(item)], words)]

    def _nothing(self, tab: str) -> Block:
        found = self.found
        if found is not None and not found.is_whole:
            return _told("reading the calls…")
        if self._filters[tab]:
            return _told(f"No {tab.lower()} match “{one_line(self._filters[tab], 60)}”. "
                         "Press escape to show all.")
        if tab == FILES:
            return _told("No call of this session names a file. "
                         "Files that shell commands use are not known.")
        return _told("This session ran no commands.")

    def preview(self, row: FileRow, edits: Edits) -> list[Block]:
        """Return the start of a file's edits, for beside the list."""
        return edit_blocks(self._session_id, row, edits, PREVIEW_LINES)

    def diff_text(self) -> str:
        """Return the edits that fill the view as text; empty while the list is shown."""
        return diff_text(*self.diff) if self.diff is not None else ""

    def head(self, tab: str, width: int) -> Line:
        """Return the line above a list: counts at the left, sort and filter at the right.

        Args:
            tab: The tab.
            width: Cells.
        """
        found = self.found
        if found is None:
            return Line()
        shown = self._shown
        told = files_words([row for row in shown if isinstance(row, FileRow)]) if (
            tab == FILES) else commands_words(
            [use.call for use in shown if isinstance(use, CommandUse)])
        whole = self.count(tab)
        right: list[Run] = []
        if not found.is_whole:
            right.append((f"{found.done * 100 // len(found.places.messages)} % read  ", "tool"))
        if self._filters[tab]:
            right.append((f"filter “{one_line(self._filters[tab], 24)}”  ", "user"))
        right.append((f"by {_orders(tab)[self._orders[tab]]}", "faint"))
        runs: list[Run] = [(told[0], "text bold")]
        if self._filters[tab]:
            runs.append((f" of {whole:,}", "muted"))
        runs.append((f"  {told[1]}", "muted"))
        if found.places.subagents:
            runs.append((f"  without {count_of(found.places.subagents, 'subagent')}", "faint"))
        return Line(cut(runs, max(8, width - width_of(right) - 2)), right)


def _orders(tab: str) -> list[str]:
    """Return the names of the ways to sort a tab."""
    return [order.name for order in (FILE_ORDERS if tab == FILES else COMMAND_ORDERS)]


def _holds(text: str, words: list[str]) -> bool:
    return all(word in text for word in words)


def _told(text: str) -> Block:
    return Text(text, words=True, paint=plain("faint"))
