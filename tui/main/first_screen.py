"""What is on the screen while the main screen is loaded: the first rows of the list."""

from __future__ import annotations

from textual.screen import Screen
from textual.strip import Strip

from store.queries.list_options import GROUPS, SHELVES, SORTS
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, Run
from tui.kit.paint import blank, paint_of, strip_of
from tui.kit.text import cells
from tui.sessions.facts import Variety
from tui.sessions.first_page import FirstPage
from tui.sessions.painter import Entry, RowPainter, row_height
from tui.state.layout import arrange
from tui.state.library import Library
from tui.state.view_state import ViewState
from tui.words.sessions import FILTER_WORDS

ABOVE = 3
"""Lines above the list: the top line and the list's header."""
BELOW = 1


class FirstScreen(Screen[None]):
    """Draws sessions where the main screen will, in one go and without a widget.

    It answers no key; the app keeps what is typed for the main screen.
    """

    AUTO_FOCUS = ""

    def __init__(self, library: Library, state: ViewState, page: FirstPage) -> None:
        """Make the screen.

        Args:
            library: The store.
            state: What was remembered.
            page: The sessions to draw, at least one.
        """
        super().__init__(id="first")
        self._library = library
        self._state = state
        self._page = page
        variety = Variety()
        variety.add(page.rows.values())
        self._differing = variety.differing
        self._now = library.clock()

    def render_line(self, y: int) -> Strip:
        """Draw a line of the screen."""
        paint, (width, height) = paint_of(self.app), self.size
        if y == 0:
            return self._top_line(width)
        if y >= height - BELOW:
            return blank(width, paint, "raised")
        own = self._list_width(width)
        drawn = self._header(own, y) if y < ABOVE else self._list_line(y - ABOVE, own)
        return Strip.join([drawn.crop(0, own), blank(width - own, paint, "background")])

    def _list_width(self, width: int) -> int:
        layout = self._state.layout
        layout = layout._replace(focused="sessions", hidden=layout.hidden - {"sessions"})
        return arrange(layout, width).widths["sessions"] or width

    def _top_line(self, width: int) -> Strip:
        runs: list[Run] = [(" backscroll", "text bold"), (f"  {self._library.name}", "text")]
        if self._library.no_change is not None:
            runs.append(("  read only", "tool"))
        return strip_of(Line(runs), width, paint_of(self.app), ground="raised")

    def _header(self, width: int, y: int) -> Strip:
        """Draw a line of the list's header, without what is still to be counted."""
        query = self._page.query
        if y == 1:
            left, right = SHELVES[query.shelf].label, GROUPS[query.group].label
            ink = "text bold"
        else:
            left, right = f"/ {FILTER_WORDS}", f"{SORTS[query.sort].label} {glyphs().down}"
            ink = "faint"
        gap = " " * max(1, width - cells(left) - cells(right) - 2)
        line = Line(((f" {left}", ink), (f"{gap}{right} ", "faint")))
        return strip_of(line, width, paint_of(self.app))

    def _list_line(self, y: int, width: int) -> Strip:
        page, height = self._page, self.size.height - ABOVE - BELOW
        tall = row_height(width, height)
        painter = RowPainter(
            width, tall, paint_of(self.app), glyphs(), page.query, focused=True, now=self._now,
            differing=self._differing)
        # As far down as the selection needs.
        cursor = page.cursor or 0
        line = y + max(0, page.model.top(cursor, tall) + tall - height)
        if line >= page.model.lines(tall):
            return blank(width, painter.paint, "panel")
        number, at, part = page.model.at_line(line, tall)
        if at is None:
            return painter.heading(page.model.groups[number], part)
        known = Entry.of(page.model, at, selected=at == cursor, marked=False)
        row = page.rows.get(page.model.rowids[at])
        return painter.missing(known, part) if row is None else painter.session(row, known, part)
