"""The facets as one line, for screens that have no room for their column."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.lines import Line, Link, Run, slice_runs
from tui.kit.paint import follow_theme, paint_of, strip_of
from tui.kit.text import cells

GAP = 2


class FacetChips(Widget, can_focus=True):
    """Values with their counts, one of which the cursor is on.

    Attributes:
        at: The number of the value under the cursor.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = "FacetChips { height: 1; width: 1fr; background: $background; display: none; }"

    class Chosen(Message):
        """A value was clicked."""

        def __init__(self, link: Link) -> None:
            """Take what it narrows to."""
            super().__init__()
            self.link = link

    def __init__(self) -> None:
        """Make an empty line."""
        super().__init__(id="search-chips")
        self._chips: list[tuple[Run, Link | None]] = []
        self.at = 0

    def show(self, chips: list[tuple[Run, Link | None]]) -> None:
        """Show values, and names between them, from the left."""
        link = self.link
        self._chips = chips
        places = self._places()
        found = next((number for number, place in enumerate(places) if place[2] == link), self.at)
        self.at = max(0, min(found, len(places) - 1))
        self.refresh()

    def _places(self) -> list[tuple[int, int, Link]]:
        """Return the first cell and the last of each value, and what it narrows to."""
        found, column = [], 1
        for (text, _ink), link in self._chips:
            size = cells(text)
            if link is not None:
                found.append((column, column + size, link))
            column += size + (GAP if link is not None else 0)
        return found

    @property
    def link(self) -> Link | None:
        """What the value under the cursor narrows to."""
        places = self._places()
        return places[self.at][2] if self.at < len(places) else None

    def move(self, by: int) -> None:
        """Go some values to the right, or left where it is negative."""
        self.at = max(0, min(self.at + by, len(self._places()) - 1))
        self.refresh()

    def _start(self) -> int:
        """Return the first cell of the line that is shown, so that the cursor can be seen."""
        places = self._places()
        if not self.has_focus or self.at >= len(places):
            return 0
        return max(0, places[self.at][1] + 1 - self.size.width)

    def render_line(self, y: int) -> Strip:
        """Paint the line."""
        runs: list[Run] = [(" ", "blank")]
        number = 0
        for (text, ink), link in self._chips:
            chosen = link is not None and number == self.at and self.has_focus
            runs.append((text, f"{ink} reverse" if chosen else ink))
            if link is not None:
                runs.append((" " * GAP, "blank"))
                number += 1
        start, whole = self._start(), sum(len(text) for text, _ink in runs)
        line = Line(slice_runs(runs, start, whole))
        return strip_of(line, self.size.width, paint_of(self.app), ground="background")

    def on_mount(self) -> None:
        """Repaint with the colours of a new theme."""
        follow_theme(self, FacetChips.refresh)

    def on_focus(self) -> None:
        """Show the cursor."""
        self.refresh()

    def on_blur(self) -> None:
        """Hide the cursor."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Choose the value under the mouse."""
        at = event.x + self._start()
        for number, (first, last, link) in enumerate(self._places()):
            if first <= at < last:
                self.at = number
                self.post_message(self.Chosen(link))
                return
