"""The widget that draws the session list: a window of rows over an array of keys."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from store.queries.listing import ListQuery, ListRow
from store.system.records import NamedTuple
from tui.kit.glyphs import glyphs
from tui.kit.guard import filtered
from tui.kit.jumping import coded
from tui.kit.lines import Line
from tui.kit.masked import is_view_masked
from tui.kit.paint import Paint, blank, paint_of, strip_of
from tui.kit.scrollbar import ThinScrollBar
from tui.sessions.empty import message
from tui.sessions.facts import Variety
from tui.sessions.first_page import FirstPage
from tui.sessions.model import HEADING_LINES, ListModel
from tui.sessions.painter import Entry, RowPainter, row_height

CACHED_ROWS = 4_096
DRAWN_LINES = 400
"""Lines that are kept drawn: some 10 kB each."""
MOMENT_MS = 1_000
"""How exact ages are: their lines are made again no more often than this."""
PREFETCH = 48
"""Entries around what is seen whose rows are read ahead."""


class _Drawn(NamedTuple):
    """A line of the list that was drawn, and what it was drawn from."""

    row: ListRow | None
    figures: tuple[object, ...]
    line: Line
    strip: Strip


class SessionList(ScrollView, can_focus=True, inherit_bindings=False):
    """Draws a ``ListModel`` and moves through it; the cursor is an entry of the model.

    Attributes:
        model: The entries, in order.
        list_query: What the entries are sorted and grouped by.
        rows: What is known of sessions, by rowid; those that were read last come last.
        marked: Rowids of marked sessions.
        cursor: The selected entry; None in an empty list.
        when_empty: What an empty list says.
    """

    DEFAULT_CSS = """
    SessionList {
        height: 1fr; background: $surface; overflow-x: hidden; overflow-y: auto;
        scrollbar-size-vertical: 1;
    }
    """

    class RowsWanted(Message):
        """Rows that are seen, or soon will be, are not there.

        Attributes:
            rowids: Which.
        """

        def __init__(self, rowids: list[int]) -> None:
            """Make the message."""
            super().__init__()
            self.rowids = rowids

    class Moved(Message):
        """The selection moved.

        Attributes:
            rowid: To which session; None when the list is empty.
        """

        def __init__(self, rowid: int | None) -> None:
            """Make the message."""
            super().__init__()
            self.rowid = rowid

    class Scrolled(Message):
        """Other sessions are seen."""

    class Chosen(Message):
        """A session was clicked that was selected before, or double-clicked."""

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
        self._drawn: dict[tuple[int, int, Entry | None], _Drawn] = {}
        self._drawn_by: tuple[RowPainter, Paint] | None = None
        self._on_screen: dict[int, Strip] = {}
        self._requested: set[int] = set()
        self._variety, self._variety_of = Variety(), self._list_asked_for()
        self._codes: Mapping[int, str] = {}

    def take_first_page(self, page: FirstPage) -> None:
        """Take what was read before the first paint."""
        self.model, self.list_query, self.cursor = page.model, page.query, page.cursor
        self.rows.update(page.rows)
        self._variety_of = self._list_asked_for()
        self._variety.add(page.rows.values())

    def _list_asked_for(self) -> tuple[ListQuery, int | None]:
        """Return what decides which sessions are listed: the query, and what a filter leaves."""
        model = self.model
        return self.list_query, model.matched if model.matched < model.total else None

    def _see(self) -> None:
        """Note by which facts the sessions around those on the screen differ."""
        asked_for = self._list_asked_for()
        if asked_for != self._variety_of:
            self._variety, self._variety_of = Variety(), asked_for
        seen = (self.rows.get(rowid) for rowid in self.seen_rowids(PREFETCH))
        self._variety.add(row for row in seen if row is not None)

    def show(self, model: ListModel, query: ListQuery, selected: int | None) -> None:
        """Show another arrangement, with the selection on the same session.

        The selected row keeps its line on the screen as far as the list allows.

        Args:
            model: The arrangement.
            query: What it is sorted and grouped by.
            selected: The rowid of the selected session; None for the first one.
        """
        was = self._line_on_screen()
        before = self.selected
        self.model, self.list_query = model, query
        self.cursor = model.find_shown(selected) if selected is not None else None
        if self.cursor is None and len(model):
            self.cursor = 0
        self._measure()
        self._restore_line(was)
        self._read_ahead()
        self._see()
        self.refresh_changed()
        if self.selected != before:
            self.post_message(self.Moved(self.selected))

    def add_rows(self, rows: Iterable[ListRow]) -> None:
        """Take rows that were read."""
        changed = False
        for row in rows:
            changed = changed or self.rows.get(row.rowid) != row
            self.rows[row.rowid] = row
            self.rows.move_to_end(row.rowid)
            self._requested.discard(row.rowid)
        while len(self.rows) > CACHED_ROWS:
            self.rows.popitem(last=False)
        if changed:
            self._see()
            self.refresh_changed()

    def rows_changed(self, rowids: Iterable[int]) -> None:
        """Draw sessions again whose rows were changed in place."""
        changed = set(rowids)
        if not changed:
            return
        first = self._entry_near(round(self.scroll_y)) if len(self.model) else 0
        height, lines = self.row_height, list[int]()
        for entry, rowid in enumerate(self.seen_rowids(), start=first):
            if rowid in changed:
                top = self.model.top(entry, height) - self.scroll_offset.y
                lines += range(top, top + height)
        self._refresh_changed(lines)

    def refresh_changed(self) -> None:
        """Draw the lines again that look different now.

        While sessions grow most lines stay as they are, and to draw any has the screen put
        together anew.
        """
        self._refresh_changed(range(self.size.height))

    def _refresh_changed(self, lines: Iterable[int]) -> None:
        """Draw those of some lines again that look different now.

        Args:
            lines: Of the viewport, or beyond it.
        """
        painter, top, height = self._painter(), self.scroll_offset.y, self.size.height
        for y in lines:
            if 0 <= y < height and self._line(painter, top, y) != self._on_screen.get(y):
                self.refresh_lines(top + y)

    def forget_rows(self) -> None:
        """Read again what is seen; the old rows stay until the new ones are read."""
        self._requested.clear()
        seen = self.seen_rowids(PREFETCH)
        self.rows = OrderedDict((r, self.rows[r]) for r in seen if r in self.rows)
        self._want(seen)

    def keep_rows(self, rowids: Iterable[int]) -> None:
        """Forget all rows but these; the others are read again when they are seen."""
        self._requested.clear()
        self.rows = OrderedDict((r, self.rows[r]) for r in rowids if r in self.rows)

    def seen_rowids(self, margin: int = 0) -> list[int]:
        """Return the sessions that are on the screen, with a margin of entries."""
        if not len(self.model):
            return []
        first = self._entry_near(round(self.scroll_y))
        count = self.size.height // self.row_height + 1
        return list(self.model.rowids[max(0, first - margin):first + count + margin])

    def select(self, entry: int, *, centred: bool = False) -> None:
        """Move the selection to an entry and scroll to it."""
        if not len(self.model):
            return
        entry = max(0, min(entry, len(self.model) - 1))
        old, self.cursor = self.cursor, entry
        if old is not None and old != entry:
            self._refresh_entry(old)
        self._refresh_entry(entry)
        self._scroll_to_cursor(centred)
        self._read_ahead()
        if old != entry:
            self.post_message(self.Moved(self.selected))

    # The keys

    def move(self, by: int) -> None:
        """Move the selection by so many sessions."""
        self.select((self.cursor or 0) + by)

    def move_page(self, by: int) -> None:
        """Move the selection by so many pages."""
        self.move(by * self.page())

    def move_half_page(self, by: int) -> None:
        """Move the selection by so many halves of a page."""
        self.move(by * max(1, self.page() // 2))

    def select_last(self) -> None:
        """Select the last session."""
        self.select(len(self.model) - 1)

    def select_group(self, by: int) -> bool:
        """Select the first session of another group; backwards, of this one first.

        Returns:
            Whether there was one to go to.
        """
        model, cursor = self.model, self.cursor
        if cursor is None:
            return False
        number = model.group_of(cursor)
        if by > 0 or model.groups[number].start == cursor:
            number = max(0, min(number + by, len(model.groups) - 1))
        self.select(model.groups[number].start)
        return self.cursor != cursor

    def select_rowid(self, rowid: int) -> None:
        """Select a session or, where that is folded away, its ancestor; centred."""
        entry = self.model.find_shown(rowid)
        if entry is not None and entry != self.cursor:
            self.select(entry, centred=True)

    def page(self) -> int:
        """Return how many entries a page key moves."""
        return max(1, self.size.height // self.row_height - 1)

    # The place on the screen

    def _measure(self) -> None:
        self.virtual_size = Size(0, self.model.lines(self.row_height))

    def expect_size(self, width: int, height: int) -> None:
        """Have the scroll bar in the first layout; Textual adds it in a second one.

        Args:
            width: Columns that the list will have, with its scroll bar.
            height: Its lines.
        """
        bar = self.styles.scrollbar_size_vertical
        self.virtual_size = Size(0, self.model.lines(row_height(width - bar, height)))
        self.show_vertical_scrollbar = self.virtual_size.height > height

    def _line_on_screen(self) -> int | None:
        if self.cursor is None:
            return None
        return self.model.top(self.cursor, self.row_height) - round(self.scroll_y)

    def _restore_line(self, line: int | None) -> None:
        if self.cursor is None or line is None or not self.size.height:
            return
        line = max(0, min(line, self.size.height - self.row_height))
        self._jump(self.model.top(self.cursor, self.row_height) - line)
        self._scroll_to_cursor(False)

    def _jump(self, y: float) -> None:
        most = max(0, self.virtual_size.height - self.size.height)
        self.scroll_to(y=max(0, min(y, most)), animate=False, force=True, immediate=True)
        # With this frame, not with the next one.
        self.vertical_scrollbar.position = self.scroll_offset.y

    def scroll_as_at_start(self) -> None:
        """Scroll to where a start would: as far down as the selection needs."""
        self._jump(0)
        self._scroll_to_cursor(False)

    def _scroll_to_cursor(self, centred: bool) -> None:
        if self.cursor is None:
            return
        height, row = self.size.height, self.row_height
        top = self.model.top(self.cursor, row)
        head = top
        if self.model.headed and self.model.groups[self.model.group_of(self.cursor)].start \
                == self.cursor:
            head = top - HEADING_LINES
        at = round(self.scroll_y)
        if centred and not at <= top <= at + height - row:
            self._jump(top - height // 2)
        elif head < at:
            self._jump(head)
        elif top + row > at + height:
            self._jump(top + row - height)

    def _refresh_entry(self, entry: int) -> None:
        self.refresh_lines(self.model.top(entry, self.row_height), self.row_height)

    def _entry_near(self, line: int) -> int:
        line = max(0, min(line, self.model.lines(self.row_height) - 1))
        number, entry, _ = self.model.at_line(line, self.row_height)
        return self.model.groups[number].start if entry is None else entry

    def _read_ahead(self) -> None:
        if any(rowid not in self.rows for rowid in self.seen_rowids(PREFETCH // 3)):
            self._want(self.seen_rowids(PREFETCH))

    def _want(self, rowids: Iterable[int]) -> None:
        missing = [r for r in rowids if r not in self.rows and r not in self._requested]
        if missing:
            self._requested.update(missing)
            self.post_message(self.RowsWanted(missing))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Read ahead where the list is scrolled to."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._read_ahead()
            self.post_message(self.Scrolled())

    def on_mount(self) -> None:
        """Take the thin scrollbar."""
        self.vertical_scrollbar.renderer = ThinScrollBar  # type: ignore[misc]

    def on_resize(self) -> None:
        """Measure again, and scroll to the selection."""
        self._measure()
        if self.cursor is not None and self.model.top(self.cursor, self.row_height) \
                + self.row_height <= self.size.height:
            self._jump(0)
        self._scroll_to_cursor(False)
        self._read_ahead()

    def on_focus(self) -> None:
        """Draw the selection in the colour of the focused pane."""
        self.refresh()

    def on_blur(self) -> None:
        """Draw the selection in the colour of a pane without focus."""
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Select what was clicked; a second click opens it."""
        if not len(self.model):
            return
        line = event.y + self.scroll_offset.y
        if line >= self.model.lines(self.row_height):
            return
        _, entry, _ = self.model.at_line(line, self.row_height)
        if entry is None:
            return
        again = entry == self.cursor
        self.select(entry)
        if again or event.chain > 1:
            self.post_message(self.Chosen())

    # Jumping

    def jump_stops(self) -> list[int]:
        """Return the rowids of the sessions whose first line is on the screen."""
        found, top, height = [], round(self.scroll_y), self.row_height
        for line in range(top, min(top + self.size.height, self.model.lines(height))):
            _, entry, part = self.model.at_line(line, height)
            if entry is not None and part == 0:
                found.append(self.model.rowids[entry])
        return found

    def show_codes(self, codes: Mapping[int, str]) -> None:
        """Draw letters beside sessions, by their rowids."""
        self._codes = codes
        self.refresh()

    # Drawing

    @property
    def row_height(self) -> int:
        """Lines of a row in this size of the list."""
        return row_height(self.size.width, self.size.height)

    @property
    def selected(self) -> int | None:
        """The rowid of the selected session."""
        return None if self.cursor is None else self.model.rowids[self.cursor]

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw lines of the viewport; lines that have not changed come from a cache.

        Each key redraws every line, not just the two that change, as other panes change too.
        """
        painter = self._painter()
        top = self.scroll_offset.y
        strips = [self._line(painter, top, y) for y in range(crop.y, crop.bottom)]
        self._on_screen.update(zip(range(crop.y, crop.bottom), strips, strict=True))
        strips = filtered(self, strips)
        if crop.x or crop.width != painter.width:
            strips = [strip.crop(crop.x, crop.right) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        """Draw a line of the viewport."""
        return self._line(self._painter(), self.scroll_offset.y, y)

    def _painter(self) -> RowPainter:
        """Return the painter of this moment; the cache of another one is dropped."""
        moment = self._clock() // MOMENT_MS * MOMENT_MS
        painter = RowPainter(
            self.size.width, self.row_height, glyphs(), self.list_query,
            self._has_focus(), moment, self._variety.differing, is_view_masked(),
        )
        drawn_by = painter._replace(now=0), paint_of(self.app)
        if drawn_by != self._drawn_by or len(self._drawn) > DRAWN_LINES:
            self._drawn_by = drawn_by
            self._drawn.clear()
        return painter

    def _strip(self, line: Line, width: int) -> Strip:
        return strip_of(line, width, paint_of(self.app), ground=line.ground)

    def _line(self, painter: RowPainter, top: int, y: int) -> Strip:
        """Return a line of the viewport.

        Args:
            painter: Draws it.
            top: The line of the list that is the first one of the viewport.
            y: Which one.
        """
        line = top + y
        width = painter.width
        if not len(self.model):
            return message(self.when_empty, y, width, paint_of(self.app))
        if line >= self.model.lines(painter.height):
            return blank(width, paint_of(self.app), "panel")
        number, entry, part = self.model.at_line(line, painter.height)
        if entry is None:
            group, whole = self.model.groups[number], self.model.whole
            heading = painter.heading(group, part, counted=whole)
            return self._kept((~number, part, None), None, (), heading, width)
        strip = self._session(painter, entry, part)
        code = self._codes.get(self.model.rowids[entry]) if part == 0 else None
        return strip if code is None else coded(strip, code, paint_of(self.app))

    def _session(self, painter: RowPainter, entry: int, part: int) -> Strip:
        model = self.model
        rowid = model.rowids[entry]
        known = Entry.of(
            model, entry, selected=entry == self.cursor, marked=rowid in self.marked)
        row = self.rows.get(rowid)
        if row is None:
            self._want([rowid])
            return self._strip(painter.missing(known, part), painter.width)
        key, figures = (rowid, part, known), (row.turns, row.messages, row.own_cost, painter.now)
        drawn = self._drawn.get(key)
        if drawn is not None and drawn.row is row and drawn.figures == figures:
            return drawn.strip
        return self._kept(key, row, figures, painter.session(row, known, part), painter.width)

    def _kept(
        self, key: tuple[int, int, Entry | None], row: ListRow | None,
        figures: tuple[object, ...], line: Line, width: int,
    ) -> Strip:
        """Return a line painted; as it was painted before, where it is the same.

        Args:
            key: Of the line.
            row: Of its session.
            figures: What else of its session and of the moment it tells.
            line: The line.
            width: In cells.
        """
        drawn = self._drawn.get(key)
        if drawn is not None and drawn.line == line:
            strip = drawn.strip
        else:
            strip = self._strip(line, width)
        self._drawn[key] = _Drawn(row, figures, line, strip)
        return strip

    def _has_focus(self) -> bool:
        return self.has_focus or (isinstance(self.parent, Widget) and self.parent.has_focus_within)
