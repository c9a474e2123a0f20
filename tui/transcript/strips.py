"""Lines as strips: gutter, content on its ground, facts at the right edge."""

from __future__ import annotations

from functools import lru_cache

from rich.segment import Segment
from textual.strip import Strip

from store.system.records import replaced
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line
from tui.kit.paint import Paint, marked, segments_of
from tui.kit.text import Span
from tui.transcript.item import Setting
from tui.transcript.layout import PartBlock

GUTTER = 3
"""Columns left of the content: the mark of the focused message, the bar, a blank."""
MARGIN = 2
"""Columns right of the content: a blank, and the scroll bar."""


LEAST_MEASURE, MOST_MEASURE = 60, 100
"""Columns that prose takes, where there is room."""


def setting_for(width: int) -> Setting:
    """Return how wide content and prose are in a transcript of a width."""
    content = max(8, width - GUTTER - MARGIN)
    return Setting(width=content, measure=max(min(content, LEAST_MEASURE),
                                              min(content - 8, MOST_MEASURE)))


def thumb_rows(total: int, height: int, position: int, *, at_end: bool) -> range:
    """Return the rows of a screen that a scroll bar's thumb covers; none where all fits.

    Args:
        total: Lines of the whole session.
        height: Rows of the screen.
        position: The line at the top.
        at_end: Whether the end is on the screen.
    """
    if total <= height or height < 3:
        return range(0)
    size = max(1, height * height // total)
    if at_end or position >= total - height:
        top = height - size
    else:
        top = min(height - size, position * (height - size) // max(1, total - height))
    return range(top, top + size)


def strip_of(
    block: PartBlock, line: Line, width: int, paint: Paint, *, ground: str = "background",
    marks: bool = False, sign: str = "", thumb: bool = False, spans: list[Span] | None = None,
    current: Span | None = None,
) -> Strip:
    """Return one painted line, exactly ``width`` columns wide.

    Args:
        block: The part that the line belongs to.
        line: What is painted.
        width: Columns of the whole transcript.
        paint: Resolves the inks.
        ground: Role of the background.
        marks: Whether the part belongs to the focused message.
        sign: The sign of a label or the letter of a mark, in place of the focus mark.
        thumb: Whether the scroll bar's thumb covers this row.
        spans: Characters to mark as hits.
        current: The one of them that the search is at.
    """
    bar = line.bar or block.bar
    segments = list(_gutter(paint, bar, ground, block.dimmed, marks, sign))
    if spans:
        line = replaced(line, runs=marked(line.runs, spans, current=current))
    segments += segments_of(
        line, width - GUTTER - MARGIN, paint, ground=ground, own=line.ground,
        dimmed=block.dimmed, margin=MARGIN - thumb,
    )
    if thumb:
        glyph = "▐" if glyphs().bar == "▎" else "#"
        segments.append(Segment(glyph, paint.style("thumb", ground)))
    return Strip(segments, width)


@lru_cache(maxsize=256)
def _gutter(
    paint: Paint, bar: str, ground: str, dimmed: bool, marks: bool, sign: str
) -> tuple[Segment, ...]:
    """Return what is left of the content: the focus mark or a sign, the bar, a blank."""
    shown = glyphs()
    blank = focus = Segment(" ", paint.style("blank", ground))
    if sign:
        focus = Segment(sign, paint.style("tool bold", ground))
    elif marks:
        focus = Segment(shown.thick_bar, paint.style("user", ground))
    return (
        focus,
        blank if bar == "none" else Segment(shown.bar, paint.style(bar, ground, dimmed)),
        blank,
    )
