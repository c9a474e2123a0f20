"""What the mouse has selected in a view: how it looks, and its text."""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip

from tui.inspector.lines import Line, arrange


def selected_strip(strip: Strip, start: int, end: int, style: Style) -> Strip:
    """Return a strip with some of its cells on the selection's ground.

    Args:
        strip: One line.
        start: The first character.
        end: The character after the last; negative for the end of the line.
        style: The selection's look; it wins over the line's own.
    """
    text = strip.text
    first = cell_len(text[:start])
    last = strip.cell_length if end < 0 else cell_len(text[:end])
    if first >= last:
        return strip
    before, inside = strip.crop(0, first), strip.crop(first, last)
    after = strip.crop(last, strip.cell_length)
    # As a post style: the segments' own ground would cover it otherwise.
    chosen = Strip(Segment.apply_style(inside, post_style=style), inside.cell_length)
    return Strip.join([before, chosen, after])


def selected_text(
    selection: Selection, line_at: Callable[[int], Line], height: int, width: int
) -> str:
    """Return the text of a selection; rows that were wrapped come out as one line.

    Args:
        selection: Rows are numbers of lines.
        line_at: Returns a line.
        height: How many lines there are.
        width: Cells of a line.
    """
    first = selection.start.y if selection.start else 0
    last = min(selection.end.y if selection.end else height - 1, height - 1)
    out: list[str] = []
    for number in range(first, last + 1):
        span = selection.get_span(number)
        if span is None:
            continue
        line = line_at(number)
        start, end = span
        if number > first and not line.soft:
            out.append("\n")
        text = "".join(text for text, _ in arrange(line, width))
        out.append(text[start : None if end < 0 else end].rstrip())
    return "".join(out)
