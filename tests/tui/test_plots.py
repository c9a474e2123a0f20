"""Plots, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import pytest

from tui.kit import glyphs as glyphs_module
from tui.kit import plots
from tui.kit.glyphs import ASCII
from tui.kit.lines import Line, width_of
from tui.kit.plots import (
    BarRow,
    Series,
    TimeBar,
    bar_rows,
    bar_runs,
    calendar,
    curve,
    legend,
    level_limits,
    nice_step,
    stacked_bars,
)

TWO = [Series("claude", "tool"), Series("codex", "user")]


def drawn(lines: list[Line]) -> list[str]:
    return [line.text for line in lines]


def dollars(value: float) -> str:
    return f"${value:g}"


@pytest.fixture
def ascii_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plots, "glyphs", lambda: ASCII)
    glyphs_module.glyphs.cache_clear()
    yield
    glyphs_module.glyphs.cache_clear()


def bars(*amounts: tuple[float, float]) -> list[TimeBar]:
    return [TimeBar(pair, str(number + 1), number == 0) for number, pair in enumerate(amounts)]


def test_bars_over_time_have_an_axis_and_labels() -> None:
    plot = stacked_bars(bars((4, 4), (1, 0), (0, 0), (2, 1)), TWO, 21, 4, written=dollars)
    assert drawn(plot.lines) == [
        "  $8  ███            ",
        "      ███            ",
        "  $4  ███         ▄▄▄",
        "      ███ ▄▄▄     ███",
        "      1   2   3   4",
    ]
    assert plot.columns == [(6, 9), (10, 13), (14, 17), (18, 21)]
    assert plot.highest == 8
    assert [plot.bar_at(cell) for cell in (0, 6, 9, 10, 20, 99)] == [0, 0, 0, 1, 3, 3]


def test_two_series_share_a_cell_in_their_colours() -> None:
    plot = stacked_bars(bars((3, 5)), TWO, 10, 2, written=dollars)
    assert [line.runs[1] for line in plot.lines[:2]] == [
        ("████", "user"), ("▆▆▆▆", "tool on:user"),
    ]


def test_a_selected_bar_is_raised_and_its_label_goes_first() -> None:
    wide = [TimeBar((1.0, 0.0), f"{day} November", day == 1) for day in range(1, 6)]
    plot = stacked_bars(wide, TWO, 16, 2, written=dollars, selected=2)
    assert [ink for _text, ink in plot.lines[0].runs].count("tool on:focus") == 1
    assert [run for run in plot.lines[-1].runs if "user bold" in run[1]] == [
        ("3 November", "user bold")]


def test_what_is_not_known_is_no_zero() -> None:
    plot = stacked_bars([TimeBar((0.0, 0.0), unknown=True), TimeBar((1.0, 0.0))], TWO, 12, 2,
                        written=dollars)
    assert drawn(plot.lines)[1].strip().startswith("?")


def test_bars_without_room_are_left_out_at_the_left() -> None:
    plot = stacked_bars(bars(*[(1, 1)] * 9, (2, 2)), TWO, 10, 2, written=dollars)
    assert plot.columns == [(0, 0)] * 6 + [(6, 7), (7, 8), (8, 9), (9, 10)]
    assert drawn(plot.lines)[1] == "      ▄▄▄█"
    empty = stacked_bars([], TWO, 10, 2, written=dollars)
    assert empty.bar_at(3) is None and empty.highest == 0


def test_series_have_patterns_without_colours() -> None:
    plot = stacked_bars(bars((4, 4)), TWO, 10, 2, written=dollars, textured=True)
    assert [line.text.strip() for line in plot.lines[:2]] == ["$8  ▓▓▓▓", "████"]
    assert [text for text, _ in legend(TWO, textured=True)] == [
        "█ ", "claude  ", "▓ ", "codex  "]
    assert [text for text, _ in legend(TWO, textured=False, room=12)] == ["■ ", "claude  "]


def test_plots_in_ascii(ascii_terminal: None) -> None:
    plot = stacked_bars(bars((4, 4), (1, 0)), TWO, 10, 2, written=dollars, textured=True)
    shown = drawn(plot.lines)
    year = calendar({date(2026, 11, 28): 3.0}, date(2026, 11, 28), 40, written=dollars)
    shown += drawn(year.lines)
    shown += ["".join(t for t, _ in bar_runs((1, 2), 4, 9, ("tool", "user"), textured=True))]
    shown += [curve([0.1, 0.5, 1.0], 3)]
    assert all(text.isascii() for text in shown), shown
    assert shown[:3] == ["  $8  =  ", "      # .", "      1"]


@pytest.mark.parametrize(
    ("least", "step"), [(0, 1), (4.6, 5), (5, 5), (0.023, 0.025), (1001, 1200), (1, 1)]
)
def test_the_axis_has_round_values(least: float, step: float) -> None:
    assert nice_step(least) == pytest.approx(step)


def test_whole_numbers_have_no_fractions_on_the_axis() -> None:
    plot = stacked_bars(bars((1, 0), (0, 1)), TWO, 12, 8, written=dollars, whole=True)
    ticks = [line.text[:4].strip() for line in plot.lines if line.text[:4].strip()]
    assert ticks[:4] == ["$4", "$3", "$2", "$1"]


def test_a_horizontal_bar_ends_at_an_eighth() -> None:
    def text(*amounts: float, highest: float = 8.0, width: int = 8) -> str:
        runs = bar_runs(amounts, highest, width, ("tool", "user"))
        assert width_of(runs) == width
        return "".join(piece for piece, _ in runs)

    assert text(8.0) == "████████"
    assert text(4.5) == "████▌   "
    assert text(0.001) == "▏       "
    assert text(0.0) == "        "
    assert text(3.0, 3.25) == "██████▎ "
    assert text(1.0, highest=0.0) == "        "


def test_rows_with_bars_have_aligned_values() -> None:
    rows = [
        BarRow("opus", (96.0,), ("tool",), (("$96.00", "text"), ("96 %", "muted"))),
        BarRow("日本語のモデルの名前", (4.0,), ("tool",), (("≈ $4.00", "text"), ("4 %", "muted"))),
        BarRow("x", (0.0,), ("tool",), (("not known, 9 answers", "muted"),)),
    ]
    assert drawn(bar_rows(rows, 40)) == [
        "opus          ███████████   $96.00  96 %",
        "日本語のモ…   ▌            ≈ $4.00   4 %",
        "x                   not known, 9 answers",
    ]
    assert [width_of(line.runs) for line in bar_rows(rows, 40)] == [40, 40, 40]
    assert bar_rows([], 40) == []


def test_a_curve_fills_its_width() -> None:
    assert curve([0.0, 0.5, 1.0], 3, highest=1.0) == "▁▅█"
    assert curve([1.0, None], 4, highest=1.0) == "██  "
    assert curve([0.0, 1.0, 0.0, 1.0], 2, highest=1.0) == "▅▅"
    assert curve([], 3) == "   "


def test_the_calendar_has_weeks_as_columns_and_five_levels() -> None:
    last = date(2026, 11, 28)
    amounts = {last - timedelta(days=gone): float(gone) for gone in range(1, 9)}
    year = calendar(amounts, last, 80, written=dollars, selected=last)
    assert year.lines[0].text.split() == [
        "Dec", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov"]
    assert [line.text[:5] + line.text[-2:] for line in year.lines[1:8]] == [
        "Mon  ·▓", "     ·▒", "Wed  ·▒", "     ·░", "Fri  █░", "     █◆", "Sun  ▓ "]
    assert year.lines[8].text == "     · none   ░ from $1   ▒ from $3   ▓ from $5   █ from $7"
    assert year.lines[6].runs[-1] == ("◆", "user bold")
    row, cell = year.place_of(last)
    assert (row, year.day_at(row, cell)) == (6, last)
    assert year.day_at(0, cell) is None and year.day_at(row, cell + 99) is None
    assert year.weeks == 53 and year.day_at(1, 5) == date(2025, 11, 24)
    assert level_limits([1, 2, 3, 4, 5, 6, 7, 8, 0]) == [1, 3, 5, 7]


def test_a_narrow_calendar_keeps_the_newest_weeks() -> None:
    year = calendar({}, date(2026, 11, 28), 30, written=dollars)
    assert year.weeks == 25 and year.day_at(6, 5 + 24) == date(2026, 11, 28)
    assert "?" in calendar({}, date(2026, 11, 28), 30, written=dollars,
                           unknown=frozenset([date(2026, 11, 28)])).lines[6].text
