"""Lines as strips: gutter, content on its ground, facts at the right edge."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip

from tui.kit.glyphs import glyphs
from tui.kit.text import Span, cells, column_offset
from tui.transcript.item import Setting
from tui.transcript.lines import Block, Line, Run, slice_runs, width_of
from tui.transcript.paint import Paint

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
    """Return the rows of a screen that a scroll bar's thumb covers; none where all fits."""
    if total <= height or height < 3:
        return range(0)
    size = max(1, height * height // total)
    if at_end or position >= total - height:
        top = height - size
    else:
        top = min(height - size, position * (height - size) // max(1, total - height))
    return range(top, top + size)


def strip_of(
    block: Block, line: Line, width: int, paint: Paint, *, ground: str = "background",
    marked: bool = False, thumb: bool = False, spans: list[Span] | None = None,
    current: Span | None = None,
) -> Strip:
    """Return one painted line, exactly ``width`` columns wide.

    Args:
        block: The part that the line belongs to.
        line: What is painted.
        width: Columns of the whole transcript.
        paint: Resolves the inks.
        ground: Role of the background.
        marked: Whether the part belongs to the focused message.
        thumb: Whether the scroll bar's thumb covers this row.
        spans: Characters to mark as hits.
        current: The one of them that the search stands on.
    """
    dimmed = block.dimmed
    segments = list(paint.gutter(line.bar or block.bar, ground, dimmed, marked))
    room = width - GUTTER - MARGIN
    runs = _with_hits(line.runs, spans, current) if spans else [(run, "") for run in line.runs]
    used, lead = 0, line.lead if line.ground else 0
    for (text, ink), hit in runs:
        size = cells(text)
        if used + size > room:
            text = text[: column_offset(text, room - used)]
            size = cells(text)
        behind = hit or (line.ground if line.ground and lead <= 0 else ground)
        segments.append(Segment(text, paint.style(ink, behind, dimmed)))
        used += size
        lead -= len(text)
        if used >= room:
            break
    segments += _right_side(line, room, used, paint, ground, dimmed, thumb=thumb)
    return Strip(segments, width)


def _right_side(
    line: Line, room: int, used: int, paint: Paint, ground: str, dimmed: bool, *, thumb: bool
) -> list[Segment]:
    """Return what follows the content: the rest of its ground, facts, margin, scroll bar."""
    segments: list[Segment] = []
    facts = width_of(line.right)
    facts = facts if used + facts <= room else 0
    edge = paint.style("text", ground)
    fill = " " * (room - used - facts)
    if line.ground:
        segments.append(Segment(fill, paint.style("text", line.ground)))
    elif facts:
        segments.append(Segment(fill, edge))
    if facts:
        segments += [Segment(text, paint.style(ink, ground, dimmed)) for text, ink in line.right]
    rest = MARGIN if facts or line.ground else MARGIN + len(fill)
    segments.append(Segment(" " * (rest - thumb), edge))
    if thumb:
        segments.append(Segment("▐" if glyphs().bar == "▎" else "#", paint.style("rule", ground)))
    return segments


def _with_hits(
    runs: list[Run], spans: list[Span], current: Span | None
) -> list[tuple[Run, str]]:
    """Cut runs at the hits, and name the ground of each piece; the current one is reversed."""
    pieces: list[tuple[Run, str]] = []
    at, length = 0, sum(len(text) for text, _ink in runs)
    for start, end in spans:
        pieces += [(run, "") for run in slice_runs(runs, at, start)]
        found = slice_runs(runs, start, end)
        if (start, end) == current:
            found = [(text, "tool br") for text, _ink in found]
        pieces += [(run, "hit") for run in found]
        at = max(at, end)
    return pieces + [(run, "") for run in slice_runs(runs, at, length)]
