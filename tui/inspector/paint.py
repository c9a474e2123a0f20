"""Turns lines into strips: looks become styles of the active theme."""

from __future__ import annotations

from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.inspector.lines import Line, Run, arrange
from tui.kit.glyphs import ASCII, ascii_only, glyphs
from tui.kit.palette import Palette
from tui.kit.text import clean

RAISED = ("raised", "focus", "hit", "added", "removed")
_ASCII_BLOCKS = str.maketrans("█▉▊▋▌▍▎▏■▪", "#########*")
_FLAGS = ("bold", "italic", "underline", "reverse", "strike")


@lru_cache(maxsize=4096)
def style_of(look: str, palette: Palette, ground: str) -> Style:
    """Return the style of a look on a ground.

    Args:
        look: See ``tui.inspector.lines.Run``.
        palette: The theme's colours.
        ground: The role of the ground where the look names none.
    """
    role, *flags = look.split()
    for flag in flags:
        if flag == "on:hit" or (flag.startswith("on:") and ground not in ("focus", "raised")):
            ground = flag[3:]
    if role == "faint" and ground in RAISED:
        role = "muted"
    if role == "rule" and ground in RAISED:
        role = "muted"
    chosen = {flag: True for flag in flags if flag in _FLAGS}
    return Style(
        color=getattr(palette, role), bgcolor=getattr(palette, ground),
        bold=chosen.get("bold"), italic=chosen.get("italic"),
        underline=chosen.get("underline"), reverse=chosen.get("reverse"),
        strike=chosen.get("strike"),
    )


def marked(runs: tuple[Run, ...], needle: str) -> tuple[Run, ...]:
    """Return the runs with every place that holds the needle on the hit's ground.

    Args:
        runs: One line.
        needle: Case-folded; a text whose length case folding changes is left as it is.
    """
    text = "".join(part for part, _ in runs)
    folded = text.casefold()
    if needle not in folded or len(folded) != len(text):
        return runs
    hits: list[tuple[int, int]] = []
    at = folded.find(needle)
    while at >= 0:
        hits.append((at, at + len(needle)))
        at = folded.find(needle, at + len(needle))
    out: list[Run] = []
    start = 0
    for part, look in runs:
        edges = {0, len(part)}
        for low, high in hits:
            edges |= {edge - start for edge in (low, high) if 0 < edge - start < len(part)}
        cuts = sorted(edges)
        for low, high in zip(cuts, cuts[1:], strict=False):
            inside = any(first <= start + low < last for first, last in hits)
            out.append((part[low:high], "text bold on:hit" if inside else look))
        start += len(part)
    return tuple(out)


def _shown(text: str) -> str:
    """Return a run's text for this terminal; the last guard against control characters."""
    if not text.isprintable():
        text = clean(text)
    if text.isascii() or glyphs() is not ASCII:
        return text
    return ascii_only(text.translate(_ASCII_BLOCKS))


def strip_of(
    line: Line, width: int, palette: Palette, *, ground: str = "panel", needle: str = ""
) -> Strip:
    """Return a line as a strip of exactly ``width`` cells.

    Args:
        line: The line; its own ground wins over the pane's, not over the cursor's.
        width: Cells.
        palette: The theme's colours.
        ground: Role of the ground beneath it.
        needle: What is searched for, case-folded; empty marks nothing.
    """
    if line.ground is not None and ground not in ("focus", "raised"):
        ground = line.ground
    runs = arrange(line, width)
    if needle:
        runs = marked(runs, needle)
    segments = [
        Segment(_shown(text), style_of(look, palette, ground)) for text, look in runs if text
    ]
    return Strip(segments).adjust_cell_length(width, style_of("text", palette, ground))
