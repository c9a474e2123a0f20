"""Finds text in the inspector: the matches in the view, and how many there are."""

from __future__ import annotations

from collections.abc import Callable

from tui.keys.find_bar import FindBar
from tui.kit.line_view import LineView
from tui.kit.lines import Run
from tui.kit.text import fit, one_line


class Finder:
    """Searches a view for what is typed into a bar."""

    def __init__(self, view: LineView, bar: FindBar, where: Callable[[], str]) -> None:
        """Take view and bar.

        Args:
            view: What is searched.
            bar: Where the text is typed.
            where: Returns the name of what the view shows.
        """
        self._view, self._bar, self._where = view, bar, where

    @property
    def needle(self) -> str:
        """What is searched for; empty without a search."""
        return self._view.needle

    @property
    def is_open(self) -> bool:
        """Whether there is a search, or a text for one is being typed."""
        return bool(self.needle) or self._bar.is_open

    def open(self) -> None:
        """Let a text be typed."""
        self._bar.open()

    def accept(self) -> None:
        """Hide the bar; the matches stay marked."""
        self._bar.remove_class("open")
        self._view.focus()

    def find(self, text: str) -> None:
        """Mark the matches of a text."""
        self._view.find(text)
        self._view.post_message(self._view.CursorMoved())

    def close(self) -> None:
        """End the search."""
        self._bar.close()
        self.find("")
        self._view.focus()

    def step(self, by: int) -> None:
        """Go to the next match (1) or the previous one (-1)."""
        if not self._view.found[1]:
            self._view.app.notify(
                f"“{self.needle}” is not in {self._where()}", severity="warning", markup=False)
        self._view.next_hit(by)

    def show_count(self) -> None:
        """Show in the bar which match the cursor is on."""
        at, hits = self._view.found
        count = f"{at:,} of {hits:,}" if hits else "no match"
        self._bar.tell(count if self.needle else "")

    @property
    def words(self) -> Run:
        """Which match the cursor is on, or what was not found, and where."""
        at, hits = self._view.found
        if hits:
            return f"match {at:,} of {hits:,}", "faint"
        where = self._where()
        room = self._view.cells - len(f"“” is not in {where}") - 20
        return f"“{fit(one_line(self.needle), max(6, room))}” is not in {where}", "tool"
