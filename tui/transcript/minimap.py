"""A strip of a few cells that shows where the long parts, errors and hits are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from tui.kit.glyphs import glyphs
from tui.kit.lines import Run
from tui.transcript.heights import Heights


def minimap(
    heights: Heights, cells: int, here: int, errors: Sequence[int], hits: Sequence[int]
) -> list[Run]:
    """Return one run a cell.

    Args:
        heights: Lines by part.
        cells: How many cells; each stands for as many parts.
        here: The part at the top of the screen.
        errors: Parts with errors, in order.
        hits: Parts with hits, in order.
    """
    count = len(heights)
    cells = min(cells, count)
    if cells <= 0:
        return []
    edges = [count * cell // cells for cell in range(cells + 1)]
    above = [heights.above(edge) for edge in edges]
    sizes = [(above[n + 1] - above[n]) / (edges[n + 1] - edges[n]) for n in range(cells)]
    most = max(max(sizes), 1)
    levels = glyphs().levels[1:]
    runs: list[Run] = []
    for cell, size in enumerate(sizes):
        low, high = edges[cell], edges[cell + 1]
        level = levels[min(len(levels) - 1, int(size / most * len(levels)))]
        ink = "faint"
        if _within(errors, low, high):
            ink = "error"
        if _within(hits, low, high):
            ink = "tool"
        if low <= here < high:
            ink = f"{'text' if ink == 'faint' else ink} reverse"
        runs.append((level, ink))
    return runs


def _within(parts: Sequence[int], low: int, high: int) -> bool:
    place = bisect_left(parts, low)
    return place < len(parts) and parts[place] < high
