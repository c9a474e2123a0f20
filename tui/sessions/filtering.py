"""The session list with its filter: it works while one types, and can always be broken off."""

from __future__ import annotations

import asyncio
from functools import partial

from textual import on
from textual.widgets import Input

from store.queries.listing_filter import narrows
from tui.sessions.header import FilterInput, ListHeader
from tui.sessions.live import LiveListPane

REPAINT_EVERY_S = 0.15
"""Pace at which a filter that still runs shows what it found."""


class FilteredPane(LiveListPane):
    """Shows what matches; each key typed breaks off the work of the one before."""

    def _apply_filter(self) -> None:
        self._work(partial(self._filter, self.filter_text), "keys")

    async def _filter(self, text: str) -> None:
        words = text.strip().casefold()
        if not words:
            self._matched = None
            await self._arrange(None)
            return
        narrowed = self._matched is not None and narrows(words, self._matched[0])
        candidates = self.keys.rowids
        if narrowed and self._matched is not None:
            kept = self._matched[1]
            candidates = type(candidates)("q", (r for r in candidates if r in kept))
        shown_at = 0.0
        matching: set[int] = set()
        clock = asyncio.get_running_loop().time
        async for looked_at, matching in self._loader.matches(candidates, words):
            if looked_at < len(candidates) and clock() - shown_at >= REPAINT_EVERY_S:
                shown_at = clock()
                await self._arrange(set(matching), None if narrowed else looked_at)
        self._matched = (words, matching)
        await self._arrange(matching)

    @on(Input.Changed, "#filter")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self.filter_text:
            self.filter_text = event.value
            self._apply_filter()

    @on(Input.Submitted, "#filter")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.close_filter()

    @property
    def filter_has_focus(self) -> bool:
        """Whether what is typed goes into the filter."""
        return self.query_one(FilterInput).has_focus

    def open_filter(self) -> None:
        """Take the keyboard for the filter, at once, so that no key typed next is lost."""
        self.filter_open = True
        self.screen.set_focus(self.query_one(FilterInput))
        self.query_one(ListHeader).refresh()

    def close_filter(self, *, clear: bool = False) -> None:
        """Give the keyboard back to the list."""
        self.filter_open = False
        if clear:
            self.clear_filter()
        self.screen.set_focus(self.view)

    def clear_filter(self) -> None:
        """Show all sessions again."""
        self.query_one(FilterInput).value = ""
        if self.filter_text:
            self.filter_text = ""
            self._apply_filter()

    def go_back(self) -> bool:
        """Leave the filter, or clear it; say whether there was anything to go back from."""
        if self.filter_open or self.filter_text:
            self.close_filter(clear=True)
            return True
        return False
