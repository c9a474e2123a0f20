"""The first frame: the first rows of the list, as the main screen will draw them.

It is on the screen before Textual is imported, which takes four times as long as all of this.
So nothing is imported here that the rows do not need; ``tests/tui/test_first_frame.py`` says
which modules that are. What the rows look like is declared where the main screen takes it from.
"""

from __future__ import annotations

from collections.abc import Iterator

from store.system.records import NamedTuple
from store.system.streams import Painted
from tui.kit.ansi import AnsiPaint
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line, arrange
from tui.kit.text import cells, fit
from tui.kit.thumb import thumb_of
from tui.main.outline import BOTTOM, TOP, opening_line, store_runs
from tui.sessions.facts import Variety
from tui.sessions.first_page import FirstPage
from tui.sessions.header_lines import ORDER_CELLS, SLASH, Tally, order_line, title_line
from tui.sessions.painter import BLANK_ROW, Entry, RowPainter, row_height
from tui.state.last_screen import LastScreen
from tui.state.layout import BORDER, LayoutState
from tui.state.layout import arrange as arrange_panes
from tui.words.sessions import FILTER_WORDS, title_of

HEADER = 2
"""Lines of the list's header."""
LEAST_WIDTH, LEAST_HEIGHT = 24, TOP + HEADER + BOTTOM + 1


class Screen(NamedTuple):
    """What the frame is drawn on."""

    width: int
    height: int
    paint: AnsiPaint


class FirstFrame(NamedTuple):
    """The main screen while it has only the first page of the list.

    Attributes:
        store: The store's name.
        read_only: Whether nothing can be written to it.
        page: At least one session.
        layout: Which panes are seen.
        now: Epoch ms.
    """

    store: str
    read_only: bool
    page: FirstPage
    layout: LayoutState
    now: int

    def rows(self, screen: Screen, last: LastScreen | None = None) -> Iterator[list[Painted]]:
        """Yield the rows of the screen, each as pieces of together its width.

        Args:
            screen: What it is drawn on.
            last: The picture of the last screen, for all but the list.
        """
        width, _height, paint = screen
        if last is not None:
            yield last.rows[0]
            for y, row in enumerate(self._list_rows(screen, last.columns), start=TOP):
                yield row + last.beside[y]
            yield last.rows[-1]
            return
        own, *others = widths_of(self.layout, width)
        runs = store_runs(self.store, read_only=self.read_only)
        yield paint.line(Line(runs), width, "raised")
        beside = [self._beside(paint, y, *others) for y in range(HEADER + 1)]
        for y, row in enumerate(self._list_rows(screen, own)):
            yield row + beside[min(y, HEADER)]
        yield paint.line(Line(), width, "raised")

    def _beside(
        self, paint: AnsiPaint, y: int, transcript: int, inspector: int
    ) -> list[Painted]:
        """Return what is right of a line of the list: the places of the other panes.

        Args:
            paint: Of the terminal.
            y: The line.
            transcript: Columns.
            inspector: Columns.
        """
        if not transcript:
            return []
        row = self.page.rows.get(self.page.model.rowids[self.page.cursor or 0])
        name = None if row is None else title_of(row.title)
        border = BORDER if inspector else 0
        line = opening_line(name, y)
        if line.runs:
            pieces = [
                *paint.line(Line(), BORDER, "background"),
                *paint.line(line, transcript, "background"),
                *paint.line(Line(), border, "background"),
            ]
        else:
            pieces = paint.line(line, BORDER + transcript + border, "background")
        return pieces + paint.line(Line(), inspector)

    def _list_rows(self, screen: Screen, width: int) -> Iterator[list[Painted]]:
        """Yield the lines of the list with its header."""
        query, model, paint = self.page.query, self.page.model, screen.paint
        tally = Tally(model.matched if model.whole else None, model.total)
        yield paint.line(title_line(query, tally, width), width)
        words = fit(FILTER_WORDS, width - cells(SLASH) - ORDER_CELLS)
        left = cells(SLASH + words)
        yield [
            *paint.line(Line(((SLASH, "faint"),)), cells(SLASH)), paint.placeholder(words),
            *paint.line(order_line(query, width - left), width - left),
        ]
        height = lines_of_list(screen.height)
        variety = Variety()
        variety.add(self.page.rows.values())
        painter = RowPainter(
            width, row_height(width, height), glyphs(), query, focused=True, now=self.now,
            differing=variety.differing)
        cursor, tall, lines = self.page.cursor or 0, painter.height, model.lines(painter.height)
        # As far down as the selection needs.
        first = max(0, model.top(cursor, tall) + tall - height)
        thumb = thumb_of(height, lines, height, first)
        for y in range(height):
            line = self._list_line(painter, first + y)
            bar = list[Painted]()
            if thumb is not None:
                line = _without_last(line, width)
                seen = thumb.start <= y < thumb.start + thumb.length
                bar = paint.line(Line(((glyphs().right_half if seen else " ", "focus"),)), 1)
            yield paint.line(line, width - len(bar)) + bar

    def _list_line(self, painter: RowPainter, line: int) -> Line:
        """Return a line of the list itself."""
        model = self.page.model
        if line >= model.lines(painter.height):
            return BLANK_ROW
        number, at, part = model.at_line(line, painter.height)
        if at is None:
            return painter.heading(model.groups[number], part, counted=model.whole)
        known = Entry.of(model, at, selected=at == self.page.cursor, marked=False)
        row = self.page.rows.get(model.rowids[at])
        return painter.missing(known, part) if row is None else painter.session(row, known, part)


def lines_of_list(height: int) -> int:
    """Return how many lines the list has on a screen of a height."""
    return height - TOP - HEADER - BOTTOM


def widths_of(layout: LayoutState, width: int) -> tuple[int, int, int]:
    """Return the columns of list, transcript and inspector; 0 for a pane that is not seen.

    Args:
        layout: What is remembered.
        width: Columns of the screen.
    """
    # The list gets the focus at the start.
    panes = arrange_panes(layout.with_focus("sessions"), width)
    if not panes.shows("transcript"):
        return width, 0, 0
    sessions, inspector = (panes.widths.get(name, 0) for name in ("sessions", "inspector"))
    return sessions, width - sessions - inspector - BORDER * len(panes.sides), inspector


def most_sessions(layout: LayoutState, width: int, height: int) -> int:
    """Return how many sessions a screen has room for at most.

    Args:
        layout: What is remembered.
        width: Columns of the screen.
        height: Its lines.
    """
    lines = lines_of_list(height)
    return lines // row_height(widths_of(layout, width)[0], lines) + 1


def _without_last(line: Line, width: int) -> Line:
    """Return a line of a width without its last column, which the scroll bar takes."""
    *runs, (text, ink) = arrange(line, width)
    return Line((*runs, (text[:-1] + " " * (cells(text[-1:]) - 1), ink)), ground=line.ground)
