"""Lays out the lines of a diff."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from store.text.diffs import DiffLine
from tui.kit.blocks import Block, Fixed
from tui.kit.glyphs import glyphs
from tui.kit.key_hints import keyed
from tui.kit.lines import Line, Link, Run, Value, cut
from tui.kit.text import clean
from tui.kit.wrap import wrap_runs

_INKS = {
    "+": ("ok", "text", "added"), "-": ("error", "text", "removed"), " ": ("faint", "muted", ""),
}
"""By sign: the inks of the edge and the text, and the ground."""


def layout(lines: Sequence[DiffLine], width: int, *, full: bool = False) -> list[Line]:
    """Lay out a diff: number, sign, text on its ground.

    Args:
        lines: The diff.
        width: Cells.
        full: Whether the ground is beneath number and sign as well.
    """
    digits = max((len(str(line.number)) for line in lines if line.number is not None), default=0)
    made: list[Line] = []
    for line in lines:
        if line.sign == "@":
            head = " " * digits + glyphs().more + " "
            made.append(Line(cut([(head, "faint"), (clean(line.text), "faint italic")], width)))
            continue
        edge, ink, ground = _INKS[line.sign]
        edge = f"{edge} on:{ground}" if full and ground else edge
        number = "" if line.number is None else str(line.number)
        first = [(f"{number:>{digits}} " if digits else "", edge), (f"{line.sign} ", edge)]
        rest = [(" " * (digits + 1) if digits else "", edge), ("  ", edge)]
        made += wrap_runs([(clean(line.text), ink)], width, first, rest, ground, by_cells=True)
    return made


def changes(
    lines: Sequence[DiffLine], value: Value, fold: Hashable, limit: int | None,
    link: Link | None = None,
) -> Block:
    """Return a diff as a block.

    Args:
        lines: The diff.
        value: What copying its lines takes.
        fold: Names what unfolds the rest.
        limit: Lines to show at most; None shows all.
        link: Where enter on its lines leads.
    """

    def build(width: int) -> list[Line]:
        made = layout(lines, width, full=True)
        for line in made:
            line.value, line.fold, line.link = value, fold, link
        if limit is None or len(made) <= limit + 1:
            return made
        rest: Run = (f"… {len(made) - limit:,} more lines", "muted")
        keys: Run = (
            f"  {keyed('inspector.open', 'opens all')},"
            f" {keyed('inspector.toggle', 'shows them here')}", "faint")
        return [*made[:limit], Line((rest, keys), value=value, fold=fold)]

    return Fixed(build)
