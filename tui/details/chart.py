"""The timeline of a session: a bar a turn, the whole session in the width of the screen."""

from __future__ import annotations

from dataclasses import dataclass

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from store.queries.details import Turn
from store.text.figures import count_of, duration, tokens
from tui.details.columns import Columns, cell_of, columns
from tui.details.measures import MEASURES
from tui.kit.glyphs import ASCII, glyphs
from tui.kit.lines import Line, Run, cut, width_of
from tui.kit.paint import MARGIN, Paint, follow_theme, paint_of

EIGHTHS = " ▁▂▃▄▅▆▇█"
ASCII_EIGHTHS = " ..::==##"


class Chart(Widget, can_focus=False):
    """Draws the turns as columns; a click selects one."""

    DEFAULT_CSS = "Chart { height: 7; }"

    @dataclass
    class Chosen(Message):
        """A column was clicked; ``turn`` counts from 0."""

        turn: int

    def __init__(self) -> None:
        """Make an empty chart."""
        super().__init__()
        self.turns: list[Turn] = []
        self.selected = 0
        self.measure = MEASURES[0]
        self._columns: tuple[int, Columns] | None = None

    def show(self, turns: list[Turn]) -> None:
        """Show other turns, or the same ones with more details."""
        self.turns = turns
        self._columns = None
        self.refresh()

    def select(self, turn: int) -> None:
        """Mark a turn, counted from 0."""
        self.selected = turn
        self.refresh()

    def next_measure(self) -> None:
        """Show the next measure."""
        at = MEASURES.index(self.measure)
        self.measure = MEASURES[(at + 1) % len(MEASURES)]
        self._columns = None
        self.refresh()

    @property
    def columns(self) -> Columns:
        """The columns at this width."""
        width = max(1, self.size.width - 2 * MARGIN)
        if self._columns is None or self._columns[0] != width:
            self._columns = width, columns(self.turns, width, self.measure)
        return self._columns[1]

    def on_mount(self) -> None:
        """Repaint with the colours of a new theme."""
        follow_theme(self, Chart.refresh)

    def render_line(self, y: int) -> Strip:
        """Paint one row; the last one marks the selected column."""
        paint = paint_of(self.app)
        base = paint.style("blank", "background")
        segments = [Segment(" " * MARGIN, base)]
        laid = self.columns
        marked = laid.column_of(self.selected)
        rows = self.size.height - 1
        for number in range(len(laid.amounts)):
            if y >= rows:
                mark = ("^" if glyphs() is ASCII else "▔") * laid.bar
                text = mark if number == marked else " " * laid.bar
                segments.append(Segment(text, paint.style("user bold", "background")))
            else:
                segments.append(self._cell(laid, number, rows - 1 - y, rows, paint))
            if laid.gap:
                segments.append(Segment(" " * laid.gap, base))
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def _cell(self, laid: Columns, number: int, row: int, rows: int, paint: Paint) -> Segment:
        stack = laid.amounts[number]
        eighths, look, above = cell_of(stack, laid.highest, row, rows)
        chosen = number == laid.column_of(self.selected)
        ground = "focus" if chosen else "background"
        turn = self.turns[number * laid.per]
        dim = (turn.hidden or turn.copied) and not chosen
        ink = "muted" if dim and look != "rule" else look
        upper = ("muted" if dim else above) if above else ground
        levels = ASCII_EIGHTHS if glyphs() is ASCII else EIGHTHS
        return Segment(levels[eighths] * laid.bar, paint.style(ink, upper))

    def on_click(self, event: events.Click) -> None:
        """Choose the column under the mouse."""
        if self.turns:
            self.post_message(self.Chosen(self.columns.turn_at(event.x - MARGIN)))


def chart_line(chart: Chart, width: int) -> Line:
    """Return the measure, its colours, the highest bar, and the sum over all turns.

    Args:
        chart: What is shown.
        width: Cells; on few, the names are short and the sum is left out.
    """
    laid, turns = chart.columns, [turn for turn in chart.turns if turn.number and not turn.hidden]
    per = "" if laid.per == 1 else f", {laid.per} turns a bar"
    runs: list[Run] = [(f"{chart.measure.name}  ", "muted bold")]
    for entry in chart.measure.legend:
        shown = entry.name if width >= 110 else entry.short or entry.name
        runs += [("■ ", entry.look), (f"{shown}  ", "faint")]
    most = f"at most {chart.measure.written(laid.highest)}{per}"
    spent = sum(turn.spent.total for turn in chart.turns)
    took = sum(turn.milliseconds for turn in chart.turns)
    total = f"{count_of(len(turns), 'turn')}  {duration(took)}  {tokens(spent)}"
    right: tuple[Run, ...] = ((f"{most}   ", "faint"), (total, "muted"))
    if width_of(runs) + width_of(right) > width - 4:
        right = ((most, "faint"),)
    return Line(cut(runs, width), right)
