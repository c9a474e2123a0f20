"""A scrollbar of half a column, so that it does not touch the text beside it."""

from __future__ import annotations

from rich.color import Color
from rich.segment import Segment, Segments
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBarRender
from textual.widget import Widget

from tui.kit.glyphs import glyphs
from tui.kit.thumb import thumb_of

BLACK, WHITE = Color.parse("#000000"), Color.parse("#ffffff")


def set_lines(view: ScrollView, height: int) -> None:
    """Give a view another number of lines without laying out the screen again.

    Only for a view whose scroll bar is always there; one that comes and goes needs the layout.
    """
    if view.virtual_size.height == height:
        return
    view.set_reactive(Widget.virtual_size, Size(0, height))
    bar = view.vertical_scrollbar
    bar.window_virtual_size = height
    bar.window_size = view.scrollable_content_region.height
    view.scroll_to(y=min(view.scroll_offset.y, view.max_scroll_y), animate=False, force=True,
                   immediate=True)


class ThinScrollBar(ScrollBarRender):
    """Draws vertical bars; give it to ``widget.vertical_scrollbar.renderer``."""

    @classmethod
    def render_bar(
        cls, size: int = 25, virtual_size: float = 50, window_size: float = 20,
        position: float = 0, thickness: int = 1, vertical: bool = True,
        back_color: Color = BLACK, bar_color: Color = WHITE,
    ) -> Segments:
        """Return the bar's segments, one a line."""
        back = back_color
        blank = " " * thickness
        where = thumb_of(size, virtual_size, window_size, position)
        if where is None:
            return Segments([Segment(blank, Style(bgcolor=back))] * size, new_lines=True)
        start, length = where
        thumb = Segment(
            glyphs().right_half + blank[1:],
            Style(color=bar_color, bgcolor=back, meta={"@mouse.down": "grab"}),
        )
        above = Segment(blank, Style(bgcolor=back, meta={"@mouse.down": "scroll_up"}))
        below = Segment(blank, Style(bgcolor=back, meta={"@mouse.down": "scroll_down"}))
        lines = [above] * start + [thumb] * length + [below] * (size - start - length)
        return Segments(lines, new_lines=True)
