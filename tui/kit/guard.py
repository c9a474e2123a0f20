"""The last guard of the screen: only harmless text is drawn, whichever widget drew it.

Textual puts the strips of every widget through the app's line filters, and our own widgets
that paint without it do so by ``filtered``. The guard is the last of these filters. Widgets
clean what they show before they measure it (``tui.kit.text``); the guard changes only what a
widget forgot, and keeps the width of its row.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.color import Color
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from store.text.neutral import neutral
from tui.kit.masked import covered, is_view_masked
from tui.kit.text import guarded

MOST_CAUGHT = 20


class Guard(LineFilter):
    """Replaces what would steer the terminal, or what terminals measure differently.

    Attributes:
        caught: The first texts that held controls when they came here; none should.
    """

    def __init__(self) -> None:
        """Guard from now on."""
        super().__init__()
        self.caught: list[str] = []

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments with harmless texts of the same width."""
        return self._covered([self._guarded(segment) for segment in segments])

    def guarded(self, strip: Strip) -> Strip:
        """Return the strip; a new one only where something in it was replaced."""
        if not is_view_masked() and all(guarded(text) == text for text, _, _ in strip):
            return strip
        return Strip(self._covered(list(map(self._guarded, strip))), strip.cell_length)

    def _covered(self, segments: list[Segment]) -> list[Segment]:
        """Return the segments of a row with what is masked in the view covered."""
        if not is_view_masked():
            return segments
        row = "".join(segment.text for segment in segments)
        masked, at, made = covered(row), 0, list[Segment]()
        if masked == row:
            return segments
        for text, style, control in segments:
            made.append(Segment(masked[at : at + len(text)], style, control))
            at += len(text)
        return made

    def _guarded(self, segment: Segment) -> Segment:
        shown = guarded(segment.text)
        if shown == segment.text:
            return segment
        if neutral(segment.text) != segment.text and len(self.caught) < MOST_CAUGHT:
            self.caught.append(segment.text)
        return Segment(shown, segment.style)


def filtered(widget: Widget, strips: list[Strip]) -> list[Strip]:
    """Put the strips of a widget through its line filters, as Textual does with others.

    Args:
        widget: One that overrides ``render_lines``, and paints in true colours only.
        strips: What it painted.
    """
    filters: Sequence[LineFilter] = widget.get_line_filters()
    background = widget.background_colors[1]
    for line_filter in filters:
        if isinstance(line_filter, Guard):
            strips = [line_filter.guarded(strip) for strip in strips]
        elif not isinstance(line_filter, ANSIToTruecolor):
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
    return strips


def lines_of(widget: Widget, crop: Region, *, different: int) -> list[Strip]:
    """Return lines of a widget whose later lines are all equal, for its ``render_lines``.

    Textual would draw and keep each of them, which took a tenth of the first screen.

    Args:
        widget: It has neither border nor padding.
        crop: The region that is drawn.
        different: How many lines are there before the equal ones.
    """
    drawn = filtered(widget, [widget.render_line(y) for y in range(different + 1)])
    strips = [drawn[min(y, different)] for y in range(crop.y, crop.bottom)]
    if crop.x or crop.width != widget.size.width:
        strips = [strip.crop(crop.x, crop.right) for strip in strips]
    return strips
