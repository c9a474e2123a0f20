"""What the statistics screen asks for: a range, and where to save its figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from store.stats.statistics import Figures
from tui.dialogs.ask import AskDialog
from tui.dialogs.choose import ChooseDialog, Option
from tui.dialogs.save import SaveScreen
from tui.stats.ranges import BadRange, Range, day_of, parse_range
from tui.stats.reading import Board
from tui.words.spending import figures_csv

if TYPE_CHECKING:
    from tui.host import Host
    from tui.stats.model import StatsModel


async def ask_range(host: Host, model: StatsModel) -> Range | None:
    """Return the range that the user types; None where it was left.

    Args:
        host: The app.
        model: Has the clock and the time zone.
    """
    zone, text = model.calendar.zone, ""
    note = "From a date, or from one to another: 2026-11-01 .. 2026-11-15, last month .., 3w"
    while True:
        typed = await host.push_screen_wait(AskDialog(
            "Range of the statistics", text, verb="show", note=note,
            placeholder="2026-11-01 .. 2026-11-15"))
        if typed is None or not typed.strip():
            return None
        try:
            return parse_range(typed, now=model.library.clock(), zone=zone)
        except BadRange as error:
            text, note = typed, str(error)


async def save_figures(host: Host, model: StatsModel) -> None:
    """Choose a table and a file, and save its figures as CSV.

    Args:
        host: The app.
        model: What is shown.
    """
    tables = dict(tables_of(model.board, model))
    options = [Option(name, name, f"{len(rows):,} rows") for name, rows in tables.items()]
    chosen = await host.push_screen_wait(ChooseDialog(
        "Save as CSV", options, about="figures of one table", verb="choose the file"))
    if chosen is not None:
        await host.push_screen_wait(
            SaveScreen(figures_csv(tables[chosen]), f"statistics-{chosen}", ".csv"))


NamedFigures = tuple[str, Figures]


def tables_of(board: Board, model: StatsModel) -> Iterator[tuple[str, list[NamedFigures]]]:
    """Yield the tables that can be saved, with their rows.

    Args:
        board: What was read.
        model: Has the time zone.
    """
    zone, times = model.calendar.zone, []
    for bucket in board.buckets:
        start = bucket.slot.start
        name = day_of(start, zone).isoformat()
        if board.bucket == "hour":
            name += f"T{bucket.slot.label.rpartition(' ')[2]}"
        times.append((name, bucket.figures))
    if times:
        yield f"by {board.bucket}", times
    for by, table in board.tables.items():
        rows = [(group.key, group.figures) for group in table.groups]
        if table.others is not None:
            rows.append(("(all others)", table.others))
        yield f"by {by}", rows
    if board.sessions:
        yield "busiest sessions", [(group.key, group.figures) for group in board.sessions]
