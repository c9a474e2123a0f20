"""The line above the chart: what the bars stand for, and their sum."""

from __future__ import annotations

from tui.details.chart import Chart
from tui.kit.figures import count_of, duration, tokens
from tui.kit.lines import Line, Run, cut, width_of

SHORT_NAMES = {"cache read": "read", "cache write": "write", "output": "out", "input": "in",
               "thinking": "think"}


def chart_line(chart: Chart, width: int) -> Line:
    """Return the measure, its colours, the highest bar, and the sum over all turns.

    Args:
        chart: What is shown.
        width: Cells; on few, the names are short and the sum is left out.
    """
    laid, turns = chart.columns, [turn for turn in chart.turns if turn.number and not turn.hidden]
    per = "" if laid.per == 1 else f", {laid.per} turns a bar"
    runs: list[Run] = [(f"{chart.measure.name}  ", "muted bold")]
    for name, look in chart.measure.legend:
        shown = name if width >= 110 else SHORT_NAMES.get(name, name)
        runs += [("■ ", look), (f"{shown}  ", "faint")]
    most = f"at most {chart.measure.told(laid.highest)}{per}"
    spent = sum(turn.spent.total for turn in chart.turns)
    took = sum(turn.milliseconds for turn in chart.turns)
    total = f"{count_of(len(turns), 'turn')}  {duration(took)}  {tokens(spent)}"
    right: tuple[Run, ...] = ((f"{most}   ", "faint"), (total, "muted"))
    if width_of(runs) + width_of(right) > width - 4:
        right = ((most, "faint"),)
    return Line(cut(runs, width), right)
