"""Plots drawn in cells: bars over time, horizontal bars, a year as a calendar, a curve in a row.

Each function is pure and returns ``Line`` objects in inks of the palette. Nothing depends on
colour alone: with ``textured`` (``NO_COLOR``, or a terminal without Unicode) each series has a
pattern of its own, which its legend shows; levels of a calendar always have one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import floor, log10
from typing import NamedTuple

from tui.kit.glyphs import ASCII, glyphs
from tui.kit.lines import Line, Run
from tui.kit.text import cells, fit

EIGHTHS = " ▁▂▃▄▅▆▇█"
_ASCII_EIGHTHS = " ..::==##"
_PARTS = " ▏▎▍▌▋▊▉█"
_TEXTURES = ("█", "▓", "▒", "░", "▚", "▞")
_ASCII_TEXTURES = ("#", "=", "+", "-", "%", "o")
_SHADES = ("·", "░", "▒", "▓", "█")
_ASCII_SHADES = (".", "-", "+", "=", "#")
LEVELS = len(_SHADES)
"""Levels of a calendar's days; the lowest is for nothing."""
WIDEST_BAR = 7
_NICE = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Series(NamedTuple):
    """One of the things that are stacked in the bars of a plot.

    Attributes:
        name: Its name in the legend, drawable.
        ink: Role of its colour.
    """

    name: str
    ink: str


class TimeBar(NamedTuple):
    """A bar of a plot over time.

    Attributes:
        amounts: One for each series, from the bottom.
        label: Below the bar where there is room.
        major: Whether its label goes before others, such as the first day of a month.
        unknown: Whether it stands for something whose amount is not known.
    """

    amounts: tuple[float, ...]
    label: str = ""
    major: bool = False
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot as lines, and where its parts are.

    Attributes:
        lines: From the top; the last one has the labels.
        columns: For each bar, its first cell and the cell after its last.
        highest: The largest sum of a bar.
    """

    lines: list[Line]
    columns: list[tuple[int, int]]
    highest: float

    def bar_at(self, cell: int) -> int | None:
        """Return the bar that covers a cell or is nearest to it; None without bars."""
        if not self.columns:
            return None
        return max(0, bisect_right([start for start, _ in self.columns], cell) - 1)


# What fills a cell


def is_ascii() -> bool:
    """Return whether this terminal has ASCII only."""
    return glyphs() is ASCII


def texture(number: int, *, textured: bool) -> str:
    """Return the character that fills the cells of a series.

    Args:
        number: The series, from 0.
        textured: Whether series have patterns of their own.
    """
    patterns = _ASCII_TEXTURES if is_ascii() else _TEXTURES
    return patterns[number % len(patterns) if textured else 0]


def legend(series: Sequence[Series], *, textured: bool, room: int | None = None) -> list[Run]:
    """Return the names of series, each after a piece of its bars.

    Args:
        series: The series.
        textured: As in ``stacked_bars``.
        room: Cells at most; names that do not fit are left out. None for any.
    """
    runs: list[Run] = []
    used = 0
    for number, one in enumerate(series):
        mark = texture(number, textured=True) if textured else "■"
        size = cells(one.name) + 4
        if room is not None and used + size > room:
            break
        used += size
        runs += [(f"{mark} ", one.ink), (f"{one.name}  ", one.ink)]
    return runs


def _cell(amounts: Sequence[float], top: float, row: int, rows: int) -> list[tuple[int, int]]:
    """Return which series fill one cell of a stacked bar, from the bottom, each with its eighths.

    Args:
        amounts: The bar's amounts, from the bottom.
        top: What fills all rows.
        row: From 0 at the bottom.
        rows: Rows of the plot.
    """
    low, high = row * 8, row * 8 + 8
    total, below, inside = 0.0, 0, []
    for number, amount in enumerate(amounts):
        total += amount
        edge = max(round(total / top * rows * 8), 1 if total > 0 else 0) if top > 0 else 0
        filled = min(edge, high) - max(below, low)
        if filled > 0:
            inside.append((number, filled))
        below = max(below, edge)
    return inside


# Bars over time


def nice_step(least: float) -> float:
    """Return the smallest round number that is not below a positive one."""
    if least <= 0:
        return 1.0
    scale = 10.0 ** floor(log10(least))
    return next(scale * each for each in _NICE if scale * each >= least * (1 - 1e-9))


def stacked_bars(
    bars: Sequence[TimeBar], series: Sequence[Series], width: int, rows: int, *,
    written: Callable[[float], str], textured: bool = False, selected: int | None = None,
    whole: bool = False,
) -> Plot:
    """Return bars over time with an axis of values at the left and labels below.

    Args:
        bars: In the order of time.
        series: What is stacked, from the bottom.
        width: Cells of a line, the axis among them; more bars than fit are left out at the left.
        rows: Rows of the bars.
        written: Writes a value of the axis in few cells.
        textured: Whether series have patterns of their own too.
        selected: The bar that is marked.
        whole: Whether values are whole numbers, so that no value of the axis is a fraction.
    """
    highest = max((sum(bar.amounts) for bar in bars), default=0.0)
    ticks = next((count for count in (4, 3, 2) if rows % count == 0 and rows // count >= 2), 1)
    step = nice_step(highest / ticks) if highest else 1.0 / ticks
    if whole and highest:
        step = max(1.0, nice_step(highest / ticks))
        step = step if step == int(step) else float(int(step) + 1)
    top = step * ticks
    values = {rows - 1 - at * rows // ticks: written(top - at * step) for at in range(ticks)}
    if not highest:
        values = {}
    axis = max([4, *(cells(words) for words in values.values())]) + 2
    size, gap, shown = _bar_size(len(bars), width - axis)
    left_out = len(bars) - shown
    places = [axis + at * (size + gap) for at in range(shown)]
    columns = [(0, 0)] * left_out + [(start, start + size) for start in places]
    lines = []
    for row in range(rows - 1, -1, -1):
        runs: list[Run] = [(values.get(row, "").rjust(axis - 2) + "  ", "faint")]
        for number in range(left_out, len(bars)):
            marked = number == selected
            runs.append(_bar_cell(bars[number], series, top, row, rows, size, textured, marked))
            if gap and number < len(bars) - 1:
                runs.append((" " * gap, "blank"))
        lines.append(Line(runs))
    lines.append(_label_line(bars, columns, width, left_out, selected))
    return Plot(lines, columns, highest)


def bars_that_fit(width: int) -> int:
    """Return how many bars a plot of a width has room for, whatever its values are."""
    return max(1, width - 11)


def _bar_size(count: int, width: int) -> tuple[int, int, int]:
    """Return the cells of a bar and of the gap after it, and how many bars fit."""
    shown = max(0, min(count, width))
    if not shown:
        return 1, 0, 0
    step = min(WIDEST_BAR + 1, (width + 1) // shown) or 1
    gap = 1 if step >= 2 else 0
    return step - gap, gap, shown


def _bar_cell(
    bar: TimeBar, series: Sequence[Series], top: float, row: int, rows: int, size: int,
    textured: bool, marked: bool,
) -> Run:
    inside = _cell(bar.amounts, top, row, rows)
    ground = " on:focus" if marked else ""
    if not inside:
        if row == 0 and bar.unknown:
            return "?".center(size), f"muted{ground}"
        return " " * size, f"blank{ground}"
    plain = textured or is_ascii()
    filled = sum(eighths for _, eighths in inside)
    if filled == 8 and len(inside) > 1 and not plain:
        (lower, eighths), (upper, _) = inside[:2]
        return EIGHTHS[eighths] * size, f"{series[lower].ink} on:{series[upper].ink}"
    # A cell has room for two colours, so its largest series stands for the others.
    number, _ = max(inside, key=lambda one: one[1])
    ink = series[number].ink
    if filled == 8:
        return texture(number, textured=textured) * size, f"{ink}{ground}"
    levels = _ASCII_EIGHTHS if is_ascii() else EIGHTHS
    return levels[filled] * size, f"{ink}{ground}"


def _label_line(
    bars: Sequence[TimeBar], columns: Sequence[tuple[int, int]], width: int, left_out: int,
    selected: int | None,
) -> Line:
    """Return the labels that fit below their bars; that of the selected bar goes first."""
    taken: list[tuple[int, int, str, str]] = []

    def place(number: int, ink: str) -> None:
        label, (start, _end) = bars[number].label, columns[number]
        start = max(0, min(start, width - cells(label)))
        end = start + cells(label)
        if label and all(end + 2 <= other or start >= other_end + 2
                         for other, other_end, _, _ in taken):
            taken.append((start, end, label, ink))

    shown = range(left_out, len(bars))
    if selected is not None and selected in shown:
        place(selected, "user bold")
    for number in shown:
        if bars[number].major:
            place(number, "muted")
    widest = max((cells(bar.label) for bar in bars), default=1)
    step = columns[left_out + 1][0] - columns[left_out][0] if len(shown) > 1 else 1
    stride = next((each for each in (1, 2, 3, 5, 6, 7, 10, 12, 14, 20, 24, 28)
                   if each * step >= widest + 3), max(1, -(-(widest + 3) // step)))
    for number in shown[::stride]:
        place(number, "faint")
    runs: list[Run] = []
    at = 0
    for start, end, label, ink in sorted(taken):
        runs += [(" " * (start - at), "blank"), (label, ink)]
        at = end
    return Line(runs)


# Horizontal bars


def bar_runs(
    amounts: Sequence[float], highest: float, width: int, inks: Sequence[str], *,
    textured: bool = False,
) -> list[Run]:
    """Return a horizontal bar of exactly ``width`` cells; its end is exact to an eighth.

    Args:
        amounts: What is stacked, from the left.
        highest: The amount that fills the width.
        width: Cells.
        inks: The role of each amount's colour.
        textured: Whether amounts have patterns of their own too.
    """
    runs: list[Run] = []
    if highest <= 0 or width <= 0:
        return [(" " * max(0, width), "blank")]
    total, drawn = 0.0, 0
    stacked = [number for number, amount in enumerate(amounts) if amount > 0]
    for number in stacked:
        total += amounts[number]
        last = number == stacked[-1]
        edge = min(total / highest, 1.0) * width
        whole = floor(edge + 1e-9) if last else round(edge)
        mark = texture(number, textured=textured)
        if whole > drawn:
            runs.append((mark * (whole - drawn), inks[number]))
            drawn = whole
        rest = round((edge - whole) * 8) if last else 0
        if last and not rest and not drawn:
            rest = 1
        if rest > 0 and drawn < width:
            plain = is_ascii() or textured
            piece = (mark if rest >= 4 or not drawn else " ") if plain else _PARTS[rest]
            runs.append((piece, inks[number]))
            drawn += 1
    if drawn < width:
        runs.append((" " * (width - drawn), "blank"))
    return runs


class BarRow(NamedTuple):
    """A row of a table with bars.

    Attributes:
        label: At the left, drawable.
        amounts: What its bar stacks.
        inks: The roles of these.
        values: Columns at the right edge, with their inks; a row with fewer than others has a
            sentence there, and no bar.
        label_ink: The ink of the label.
        draw: Returns what is drawn in a number of cells in place of a bar; None for a bar.
    """

    label: str
    amounts: tuple[float, ...]
    inks: tuple[str, ...]
    values: tuple[Run, ...]
    label_ink: str = "text"
    draw: Callable[[int], list[Run]] | None = None


def bar_rows(
    rows: Sequence[BarRow], width: int, *, label_cells: int | None = None,
    textured: bool = False, cut: Callable[[str, int], str] = fit,
) -> list[Line]:
    """Return rows of exactly ``width`` cells: label, bar, values in aligned columns.

    Args:
        rows: From the top; the longest bar fills its column.
        width: Cells.
        label_cells: Cells of the labels; None for a share of the width.
        textured: As in ``bar_runs``.
        cut: Shortens a label to a width.
    """
    columns = max((len(row.values) for row in rows), default=0)
    sizes = [
        max((cells(row.values[at][0]) for row in rows if len(row.values) == columns), default=0)
        for at in range(columns)
    ]
    right = sum(sizes) + 2 * columns
    wanted = max((cells(row.label) for row in rows), default=0)
    share = label_cells if label_cells is not None else min(wanted, max(10, width * 3 // 10))
    label = max(4, min(share, width - right - 2))
    bar = max(0, width - right - label - 2)
    highest = max((sum(row.amounts) for row in rows), default=0.0)
    lines = []
    for row in rows:
        shown = cut(row.label, label)
        runs: list[Run] = [(shown, row.label_ink), (" " * (label - cells(shown) + 2), "blank")]
        if len(row.values) == columns:
            runs += row.draw(bar) if row.draw is not None else bar_runs(
                row.amounts, highest, bar, row.inks, textured=textured)
            for size, (text, ink) in zip(sizes, row.values, strict=True):
                runs.append((" " * (size - cells(text) + 2) + text, ink))
        else:
            text = fit("  ".join(text for text, _ink in row.values), bar + right)
            runs += [(" " * (bar + right - cells(text)), "blank"),
                     (text, row.values[0][1] if row.values else "muted")]
        lines.append(Line(runs))
    return lines


# A curve in one row


def curve(values: Sequence[float | None], width: int, *, highest: float | None = None) -> str:
    """Return values as a row of blocks, exactly ``width`` cells wide.

    Args:
        values: In the order of time; None where there is none.
        width: Cells; more values are averaged, fewer are repeated.
        highest: What a full block stands for; the highest value where None.
    """
    if not values or width <= 0:
        return " " * max(0, width)
    levels = glyphs().levels[1:] if is_ascii() else EIGHTHS[1:]
    top = highest if highest is not None else max((v for v in values if v is not None), default=0)
    out = []
    for at in range(width):
        low = at * len(values) // width
        high = max(low + 1, (at + 1) * len(values) // width)
        known = [value for value in values[low:high] if value is not None]
        if not known:
            out.append(" ")
            continue
        share = sum(known) / len(known) / top if top > 0 else 0.0
        out.append(levels[max(0, min(len(levels) - 1, floor(share * len(levels))))])
    return "".join(out)


# A year


@dataclass(frozen=True, slots=True)
class Calendar:
    """A year as lines, and where its days are.

    Attributes:
        lines: Names of months, seven rows of days, and what the levels mean.
        first: The Monday of the first week.
        left: The first cell of the first week.
        step: Cells of a week.
        weeks: How many there are.
    """

    lines: list[Line]
    first: date
    left: int
    step: int
    weeks: int

    def day_at(self, row: int, cell: int) -> date | None:
        """Return the day at a row and a cell of the lines; None where there is none."""
        week = (cell - self.left) // self.step
        if not (1 <= row <= 7 and 0 <= week < self.weeks):
            return None
        return self.first + timedelta(days=week * 7 + row - 1)

    def place_of(self, day: date) -> tuple[int, int]:
        """Return the row and the first cell of a day."""
        gone = (day - self.first).days
        return 1 + gone % 7, self.left + gone // 7 * self.step


def level_limits(amounts: Sequence[float]) -> list[float]:
    """Return the least amounts of the levels above the lowest: the quarters of all days."""
    known = sorted(amount for amount in amounts if amount > 0)
    if not known:
        return []
    count = LEVELS - 1
    return [known[0], *(known[len(known) * at // count] for at in range(1, count))]


def calendar(
    amounts: Mapping[date, float], last: date, width: int, *, written: Callable[[float], str],
    ink: str = "ok", selected: date | None = None, unknown: frozenset[date] = frozenset(),
) -> Calendar:
    """Return the year up to a day: weeks as columns, weekdays as rows.

    Args:
        amounts: By day; a day that is missing has nothing.
        last: The last day.
        width: Cells of a line; weeks that do not fit are left out at the left.
        written: Writes an amount in few cells.
        ink: Role of the colour of days.
        selected: The day that is marked.
        unknown: Days with something whose amount is not known.
    """
    left = 5
    step = 2 if width >= left + 2 * 53 else 1
    monday = last - timedelta(days=last.weekday())
    weeks = max(1, min(53, (width - left) // step))
    first = monday - timedelta(days=7 * (weeks - 1))
    start = max(first, last - timedelta(days=52 * 7 + last.weekday()))
    shades = _ASCII_SHADES if is_ascii() else _SHADES
    limits = level_limits(list(amounts.values()))
    lines = [_month_line(first, weeks, left, step)]
    for weekday in range(7):
        name = _WEEKDAYS[weekday] if weekday % 2 == 0 else ""
        runs: list[Run] = [(name.ljust(left), "faint")]
        for week in range(weeks):
            day = first + timedelta(days=week * 7 + weekday)
            if not start <= day <= last:
                runs.append((" " * step, "blank"))
                continue
            amount = amounts.get(day, 0.0)
            level = bisect_right(limits, amount) if amount > 0 else 0
            level = min(level, LEVELS - 1)
            mark = shades[level] if level or day not in unknown else "?"
            look = ink if level else "muted" if day in unknown else "faint"
            if day == selected:
                mark, look = glyphs().label, "user bold"
            runs.append((mark + " " * (step - 1), look))
        lines.append(Line(_joined(runs)))
    lines.append(_level_line(limits, shades, ink, left, written))
    return Calendar(lines, first, left, step, weeks)


def _joined(runs: Sequence[Run]) -> list[Run]:
    """Return the runs with neighbours of one ink joined."""
    joined: list[Run] = []
    for text, ink in runs:
        if joined and joined[-1][1] == ink:
            joined[-1] = joined[-1][0] + text, ink
        else:
            joined.append((text, ink))
    return joined


def _month_line(first: date, weeks: int, left: int, step: int) -> Line:
    text = " " * left
    for week in range(weeks):
        sunday = first + timedelta(days=week * 7 + 6)
        at = left + week * step
        begins = sunday.day <= 7
        if begins and len(text) <= at:
            text = text.ljust(at) + sunday.strftime("%b") + " "
    return Line([(text.rstrip(), "faint")])


def _level_line(
    limits: Sequence[float], shades: Sequence[str], ink: str, left: int,
    written: Callable[[float], str],
) -> Line:
    runs: list[Run] = [(" " * left, "blank"), (f"{shades[0]} ", "faint"), ("none", "faint")]
    seen = -1.0
    for level, limit in enumerate(limits, 1):
        if limit > seen:
            runs += [("   ", "blank"), (f"{shades[level]} ", ink),
                     (f"from {written(limit)}", "faint")]
        seen = limit
    return Line(runs)
