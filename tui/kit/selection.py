"""Text selection by mouse: offsets that hold while heights change, how it looks, its text.

Textual keeps a selection as two offsets. A view gives each row the offset ``offset_y(block,
line)``, so a selection stays on its text while blocks above it grow, fold or are measured.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.segment import Segment
from textual.selection import Selection
from textual.strip import Strip

from tui.kit.lines import Line
from tui.kit.paint import Paint
from tui.kit.text import cells

LINE_BITS = 32
"""An offset's y is ``block << 32 | line``: it grows with the place, not with the heights."""
LAST_LINE = (1 << LINE_BITS) - 1


def offset_y(block: int, line: int) -> int:
    """Return the y for a line of a block."""
    return block << LINE_BITS | line


def place_of(offset: int) -> tuple[int, int]:
    """Return the block and line of a y."""
    return offset >> LINE_BITS, offset & LAST_LINE


def places_in(selection: Selection, last: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Return the first and the last place of a selection.

    Args:
        selection: Open ends reach to the first and the last line.
        last: Block and line of the last line.
    """
    start = place_of(selection.start.y) if selection.start else (0, 0)
    return start, min(place_of(selection.end.y), last) if selection.end else last


def selected_strip(strip: Strip, start: int, end: int, paint: Paint) -> Strip:
    """Return a strip with some of its cells in the selection's style.

    Args:
        strip: One row.
        start: The first character.
        end: The character after the last; negative for the end of the text.
        paint: Its style of selected text wins over the strip's own.
    """
    text = strip.text
    end = len(text.rstrip()) if end < 0 else end
    if start >= end:
        return strip
    pieces = list(strip.divide([cells(text[:start]), cells(text[:end]), strip.cell_length]))
    if len(pieces) > 1:
        chosen = Segment.apply_style(pieces[1], post_style=paint.selected)
        pieces[1] = Strip(chosen, pieces[1].cell_length)
    return Strip.join(pieces)


def selected_text(
    selection: Selection, rows: Iterable[tuple[int, Line, str]], margin: int = 0
) -> str:
    """Return the text of a selection as its source has it: soft-wrapped rows are joined.

    Args:
        selection: By the offsets of this module.
        rows: Y, line and text on the screen of each row that may be selected, in order.
        margin: Cells left of the text.
    """
    pieces: list[str] = []
    above: Line | None = None
    for y, line, text in rows:
        span = selection.get_span(y)
        if span is None:
            continue
        low = max(0, span[0] - margin)
        high = len(text) if span[1] < 0 else max(0, span[1] - margin)
        if above is not None and line.soft:
            pieces.append(above.tail)
            low = max(low, line.lead)
        elif above is not None:
            pieces.append("\n")
        pieces.append(text[low:high])
        above = line
    return "".join(pieces)
