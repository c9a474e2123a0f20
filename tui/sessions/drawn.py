"""The lines of the session list as they are drawn: each once, until it changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from store.queries.listing import ListQuery, ListRow
from tui.kit.glyphs import glyphs
from tui.kit.guard import filtered
from tui.kit.theme import palette_of
from tui.sessions.empty import message
from tui.sessions.model import ListModel
from tui.sessions.painter import Entry, RowPainter, blank, row_height

CACHED_ROWS = 4_096
DRAWN_FOR_MS = 1_000
"""Ages on the screen are as old as this at most."""


class DrawnList(ScrollView, inherit_bindings=False):
    """Draws what it knows of a list; ``SessionList`` moves through it."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """Make an empty list.

        Args:
            clock: Returns the present as epoch ms.
        """
        super().__init__(id="session-list")
        self.model = ListModel()
        self.list_query = ListQuery()
        self.rows: OrderedDict[int, ListRow] = OrderedDict()
        self.marked: set[int] = set()
        self.cursor: int | None = None
        self.when_empty: list[str] = []
        self._clock = clock
        self._drawn: dict[tuple[int, int, int | None, Entry], tuple[ListRow, Strip]] = {}
        self._drawn_by: RowPainter | None = None

    @property
    def row_height(self) -> int:
        """Lines of a row in this size of the list."""
        return row_height(self.size.width, self.size.height)

    @property
    def selected(self) -> int | None:
        """The rowid of the selected session."""
        return None if self.cursor is None else self.model.rowids[self.cursor]

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines of the viewport; what was drawn before is taken from there.

        A key asks for every line beside the two that it changes, as other panes change too.
        """
        painter = self._painter()
        strips = [self._line(painter, y) for y in range(crop.y, crop.bottom)]
        strips = filtered(self, strips)
        if crop.x or crop.width != painter.width:
            strips = [strip.crop(crop.x, crop.right) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        """Draw a line of the viewport."""
        return self._line(self._painter(), y)

    def _painter(self) -> RowPainter:
        """Return the painter of this moment; what another one drew is forgotten."""
        moment = self._clock() // DRAWN_FOR_MS * DRAWN_FOR_MS
        painter = RowPainter(
            self.size.width, self.row_height, palette_of(self.app), glyphs(), self.list_query,
            self._has_focus(), moment,
        )
        if painter != self._drawn_by or len(self._drawn) > CACHED_ROWS:
            self._drawn_by = painter
            self._drawn.clear()
        return painter

    def _line(self, painter: RowPainter, y: int) -> Strip:
        line = y + self.scroll_offset.y
        width, ground = painter.width, painter.palette.panel
        if not len(self.model):
            return message(self.when_empty, y, width, painter.palette)
        if line >= self.model.lines(painter.height):
            return blank(width, ground)
        number, entry, part = self.model.at_line(line, painter.height)
        if entry is None:
            return painter.heading(self.model.groups[number], part)
        return self._paint(painter, entry, part)

    def _paint(self, painter: RowPainter, entry: int, part: int) -> Strip:
        model = self.model
        rowid = model.rowids[entry]
        known = Entry.of(
            model, entry, selected=entry == self.cursor, marked=rowid in self.marked)
        row = self.rows.get(rowid)
        if row is None:
            self._want([rowid])
            return painter.missing(known, part)
        key = (rowid, part, row.turns, known)
        drawn = self._drawn.get(key)
        if drawn is None or drawn[0] is not row:
            drawn = self._drawn[key] = (row, painter.session(row, known, part))
        return drawn[1]

    def _has_focus(self) -> bool:
        return self.has_focus or (isinstance(self.parent, Widget) and self.parent.has_focus_within)

    def _want(self, rowids: Iterable[int]) -> None:
        """Ask for rows that are to be drawn and are not there."""
        raise NotImplementedError
