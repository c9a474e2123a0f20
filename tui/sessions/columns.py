"""The figures at the right of a session's row: each column is declared here, once."""

from __future__ import annotations

from collections.abc import Callable

from store.queries.list_options import Sort
from store.queries.listing import ListRow
from store.system.records import NamedTuple
from store.text import figures

ONE_LINE_FROM = 72
"""From this width of a list on a row has room for all its facts on one line."""


class Column(NamedTuple):
    """A column of figures.

    Attributes:
        field: The field of ``ListRow`` that it shows; a list sorted by it always shows it.
        text: Returns the figure of a session, empty where there is nothing to say.
        cells: Width in a row of two lines, and in one of one line.
        from_width: Width of a list from which there is room for it, for rows of two lines
            and of one; None where it is only shown in a list that is sorted by it.
        instead_of: The column whose place it takes in a list that is sorted by it and has no
            room for both; else it takes the place of the last one.
    """

    field: str
    text: Callable[[ListRow], str]
    cells: tuple[int, int]
    from_width: tuple[int, int] | None = (0, 0)
    instead_of: str | None = None


UNREAD = "…"
"""The figure of a session that is listed and not read yet."""


def _turns(row: ListRow) -> str:
    if row.outline:
        return UNREAD
    return "" if row.turns is None else figures.count_of(row.turns, "turn")


def _messages(row: ListRow) -> str:
    return UNREAD if row.outline else figures.count_of(row.messages, "msg")


def _cost(row: ListRow) -> str:
    if row.cost > 0:
        return figures.money(row.cost)
    dollars, is_estimate = row.own_cost or (0.0, False)
    if dollars <= 0:
        return ""
    return figures.estimate(dollars) if is_estimate else figures.money(dollars)


COLUMNS: tuple[Column, ...] = (
    Column("turns", _turns, (8, 11), (0, ONE_LINE_FROM)),
    Column("messages", _messages, (8, 11), None, "turns"),
    Column("tokens", lambda row: figures.tokens(row.tokens) if row.tokens else "", (6, 6)),
    Column("cost", _cost, (8, 8), (48, 100), "tokens"),
)
"""In the order in which they are drawn. To add a column, add one here; nothing else."""


def shown_columns(width: int, lines: int, sort: Sort) -> list[Column]:
    """Return the columns that a list shows.

    Args:
        width: Of the list, in cells.
        lines: Lines of a row, 1 or 2.
        sort: How the list is sorted; the column of that is among them.
    """
    at = 0 if lines == 2 else 1
    shown = [each for each in COLUMNS if each.from_width and width >= each.from_width[at]]
    wanted = next((each for each in COLUMNS if each.field == sort.field), None)
    if wanted is not None and wanted not in shown:
        names = [each.field for each in shown]
        shown[names.index(wanted.instead_of) if wanted.instead_of in names else -1] = wanted
    return shown


def figures_of(row: ListRow, columns: list[Column], lines: int) -> str:
    """Return the figures of a session, each at the right edge of its column.

    Args:
        row: The session.
        columns: As ``shown_columns`` returns them.
        lines: Lines of a row, 1 or 2.
    """
    at = 0 if lines == 2 else 1
    return "".join(f"{each.text(row):>{each.cells[at]}}" for each in columns)
