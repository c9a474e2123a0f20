"""Screens, and other widgets, that leave nothing of what they have drawn when they go.

Textual keeps the drawing caches of the last thousand widgets (``StylesCache`` in Textual 8.2), so
that each closed screen would stay in memory with all its lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from textual.screen import Screen
from textual.widget import Widget

T = TypeVar("T")


class ClosingScreen(Screen[T]):
    """A screen that empties the drawing caches of its widgets when it closes."""

    _going: tuple[Widget, ...] = ()

    def on_screen_suspend(self) -> None:
        """Keep which widgets are about to go, as they go before the screen does."""
        if self not in self.app.screen_stack:
            self._going = tuple(
                each for widget in (self, *self.walk_children(Widget)) for each in _drawn(widget))

    def on_unmount(self) -> None:
        """Drop what they have drawn."""
        for widget in self._going:
            forget_drawn(widget)
        self._going = ()


def forget_drawn(widget: Widget) -> None:
    """Empty the drawing cache of a widget that has gone."""
    widget.refresh()


def _drawn(widget: Widget) -> Iterator[Widget]:
    """Yield a widget and its scroll bars, which are not among its children."""
    yield widget
    if widget.show_vertical_scrollbar:
        yield widget.vertical_scrollbar
    if widget.show_horizontal_scrollbar:
        yield widget.horizontal_scrollbar
