"""Text selection in a virtual list: offsets that hold while heights change, and copying."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from tui.kit.text import cells
from tui.transcript.document import Document
from tui.transcript.strips import GUTTER

LINE_BITS = 20
"""A selection's y is ``part << 20 | line``: it grows with the place, whatever the heights."""
MOST_COPIED_PARTS = 5_000


def offset_y(part: int, line: int) -> int:
    """Return the y that stands for a line of a part."""
    return part << LINE_BITS | line


def place_of(offset: int) -> tuple[int, int]:
    """Return the part and line that a y stands for."""
    return offset >> LINE_BITS, offset & ((1 << LINE_BITS) - 1)


def painted(strip: Strip, span: tuple[int, int] | None, style: Style) -> Strip:
    """Return a strip with the selected characters in the selection's style."""
    if span is None:
        return strip
    text = strip.text
    start, end = span
    end = len(text.rstrip()) if end == -1 else end
    start = max(start, GUTTER)
    if start >= end:
        return strip
    cuts = [cells(text[:start]), cells(text[:end]), strip.cell_length]
    pieces = list(strip.divide(cuts))
    if len(pieces) > 1:
        # A style beneath would be hidden by the segment's own background.
        chosen = [Segment(t, (s or Style()) + style) for t, s, _control in pieces[1]]
        pieces[1] = Strip(chosen, pieces[1].cell_length)
    return Strip.join(pieces)


def selected_text(document: Document, selection: Selection) -> str:
    """Return what is selected as its source has it: no gutter, soft wraps joined."""
    start = selection.start or Offset(0, 0)
    last = max(0, len(document) - 1)
    end = selection.end or Offset(1 << 30, offset_y(last, (1 << LINE_BITS) - 1))
    (first_part, first_line), (last_part, last_line) = place_of(start.y), place_of(end.y)
    last_part = min(last_part, last, first_part + MOST_COPIED_PARTS)
    pieces: list[str] = []
    for part in range(first_part, last_part + 1):
        block = document.block(part)
        if block is None:
            continue
        for number, line in enumerate(block.lines):
            if not (first_part, first_line) <= (part, number) <= (last_part, last_line):
                continue
            text = line.text
            low = max(0, start.x - GUTTER) if (part, number) == (first_part, first_line) else 0
            high = max(0, end.x - GUTTER) if (part, number) == (last_part, last_line) else len(text)
            joins = line.soft and bool(pieces)
            if joins:
                pieces.append(block.lines[number - 1].tail)
                low = max(low, line.lead)
            elif pieces:
                pieces.append("\n")
            pieces.append(text[low:high].rstrip() if line.bar == "none" else text[low:high])
    return "".join(pieces)
