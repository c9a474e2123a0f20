"""The columns of the timeline: their turns and their heights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from store.queries.details import Turn
from tui.details.measures import Measure, Stacked

WIDEST_BAR = 7


@dataclass(frozen=True, slots=True)
class Columns:
    """The whole session in a number of cells.

    Attributes:
        per: Turns in a column; more than one where they outnumber the cells.
        bar: Cells of a column's bar.
        gap: Empty cells after it.
        amounts: What each column stacks, summed over its turns.
        highest: The largest sum of a column.
    """

    per: int
    bar: int
    gap: int
    amounts: tuple[Stacked, ...]
    highest: float

    @property
    def step(self) -> int:
        """Cells from one column to the next."""
        return self.bar + self.gap

    def column_of(self, turn: int) -> int:
        """Return the column of a turn, both from 0."""
        return turn // self.per

    def turn_at(self, cell: int) -> int:
        """Return the first turn of the column that covers a cell."""
        return max(0, min(cell // self.step, len(self.amounts) - 1)) * self.per


def columns(turns: Sequence[Turn], width: int, measure: Measure) -> Columns:
    """Lay all turns out in a width, several to a column where they are many.

    Args:
        turns: The turns.
        width: In cells.
        measure: What the columns show.
    """
    count = max(1, len(turns))
    per = -(-count // max(1, width))
    shown = -(-count // per)
    step = min(WIDEST_BAR + 1, width // shown) or 1
    gap = 1 if step >= 2 else 0
    amounts = tuple(
        _summed(turns[start : start + per], measure) for start in range(0, len(turns), per)
    )
    highest = max((sum(amount for amount, _ in stack) for stack in amounts), default=0.0)
    return Columns(per, step - gap, gap, amounts, highest)


def _summed(turns: Sequence[Turn], measure: Measure) -> Stacked:
    stacks = [measure.of(turn) for turn in turns]
    return tuple(
        (sum(stack[at][0] for stack in stacks), look) for at, (_, look) in enumerate(stacks[0])
    )


def cell_of(stack: Stacked, highest: float, row: int, rows: int) -> tuple[int, str, str | None]:
    """Return how one cell of a column is filled.

    Args:
        stack: The column's amounts.
        highest: What fills all rows.
        row: From 0 at the bottom.
        rows: Rows of the chart.

    Returns:
        Eighths that the lower colour fills (0 to 8), that colour, and the colour above it
        (None for the background).
    """
    if highest <= 0:
        return 0, "rule", None
    scale = rows * 8 / highest
    edges: list[tuple[int, str]] = []
    total = 0.0
    for amount, look in stack:
        total += amount
        edges.append((max(round(total * scale), 1 if total > 0 else 0), look))
    low, high = row * 8, row * 8 + 8
    inside = [(edge, look) for edge, look in edges if edge > low]
    if not inside:
        return 0, "rule", None
    edge, look = inside[0]
    if edge >= high:
        return 8, look, None
    above = next((upper for upper_edge, upper in inside[1:] if upper_edge > edge), None)
    return edge - low, look, above


def horizontal(stack: Stacked, highest: float, cells: int) -> list[tuple[int, str]]:
    """Return a stacked bar: cells and colour of each piece.

    Args:
        stack: The amounts.
        highest: The amount that fills all cells.
        cells: The length of that.
    """
    if highest <= 0:
        return []
    pieces: list[tuple[int, str]] = []
    total, drawn = 0.0, 0
    for amount, look in stack:
        total += amount
        edge = round(total / highest * cells)
        if edge > drawn:
            pieces.append((edge - drawn, look))
            drawn = edge
    if not drawn and total > 0:
        pieces.append((1, max(stack)[1]))
    return pieces
