"""The virtual list itself: paints the rows of the screen, and turns the mouse into places.

Only what stands on the screen is laid out and painted. Painting goes through
``render_lines``; ``render_line`` is asked by the mouse alone, and carries offsets.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

from textual import events
from textual.geometry import Offset, Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.cache import WeightedCache
from tui.kit.guard import filtered
from tui.kit.lines import Hits, Line
from tui.kit.paint import Paint, paint_of
from tui.kit.selection import offset_y, selected_strip, selected_text
from tui.kit.text import Span
from tui.transcript.document import Document
from tui.transcript.item import Setting
from tui.transcript.layout import PartBlock
from tui.transcript.scroller import Row, Scroller
from tui.transcript.selection import rows_in
from tui.transcript.standing import Anchor
from tui.transcript.strips import GUTTER, setting_for, strip_of, thumb_rows

PAINTED_LINES = 1_200
WHEEL_LINES = 3


class TranscriptView(Widget, can_focus=True):
    """Shows a document from an anchor on; knows no store and no keys."""

    ALLOW_SELECT = True
    DEFAULT_CSS = """
    TranscriptView { height: 1fr; width: 1fr; }
    """

    @dataclass
    class Clicked(Message):
        """A line of a part was clicked."""

        part: Anchor
        fold: Hashable

    @dataclass
    class Wheeled(Message):
        """The wheel asks for other lines."""

        lines: int

    @dataclass
    class Dragged(Message):
        """The scroll bar asks for a place, as a share of the whole."""

        share: float

    class Resized(Message):
        """The width or height is another one; the document was told."""

    def __init__(self, *, id: str | None = None) -> None:
        """Start with an empty document."""
        super().__init__(id=id)
        self.document = Document(setting_for(80))
        self.scroller = Scroller(self.document)
        self.cursor = 0
        self.pattern: re.Pattern[str] | None = None
        self.hit: tuple[int, int] | None = None
        self.at_end = False
        self._rows: list[Row] | None = None
        self._paint: Paint | None = None
        self._strips: WeightedCache[tuple[object, ...], tuple[PartBlock, Strip]] = WeightedCache(
            PAINTED_LINES)
        self._dragging = False

    # What is shown

    def show(self, document: Document) -> None:
        """Take another document; the caller sets the place."""
        document.setting.width = self.content_setting.width
        document.setting.measure = self.content_setting.measure
        self.document = document
        self.scroller = Scroller(document)
        self.scroller.height = max(1, self.size.height)
        self.cursor = 0
        self.pattern = self.hit = None
        self._strips.clear()
        self.changed()

    @property
    def content_setting(self) -> Setting:
        """How wide things are at the present size."""
        return setting_for(self.size.width or 80)

    def changed(self) -> None:
        """Paint again what stands on the screen."""
        self._rows = None
        self.refresh()

    def rows(self) -> list[Row]:
        """Return what stands on the screen."""
        if self._rows is None:
            self._rows = self.scroller.rows()
        return self._rows

    def shown_parts(self) -> range:
        """Return the parts on the screen."""
        rows = self.rows()
        return range(rows[0].part, rows[-1].part + 1) if rows else range(0)

    # Size and theme

    def on_mount(self) -> None:
        """Follow the theme."""
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self.repaint())

    def repaint(self) -> None:
        """Resolve all colours again."""
        self._paint = None
        self._strips.clear()
        self.changed()

    def notify_style_update(self) -> None:
        """Resolve the colours again when the style sheet changed."""
        super().notify_style_update()
        self._paint = None

    @property
    def paint(self) -> Paint:
        """What resolves the inks."""
        paint = paint_of(self.app)
        if paint is not self._paint:
            self._paint = paint
            self._strips.clear()
        return paint

    def on_resize(self, event: events.Resize) -> None:
        """Lay out for the new width; the line at the top stays."""
        setting = self.content_setting
        if setting.width != self.document.setting.width:
            self.document.setting.width = setting.width
            self.document.setting.measure = setting.measure
            self.document.relayout()
            self._strips.clear()
        self.scroller.height = max(1, self.size.height)
        self.scroller.stay(at_end=self.at_end)
        self.changed()
        self.post_message(self.Resized())

    def on_focus(self) -> None:
        """The selected part is brighter while the keys act here."""
        self.changed()

    def on_blur(self) -> None:
        """See ``on_focus``."""
        self.changed()

    # Painting

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the painted rows of a region."""
        rows, paint, width = self.rows(), self.paint, self.size.width
        selection = self.text_selection
        thumb = self._thumb()
        chosen = self.screen.get_component_rich_style("screen--selection") if selection else None
        blank = Strip([*Strip.blank(width, paint.style("text"))], width)
        strips: list[Strip] = []
        for y in range(crop.y, crop.bottom):
            if y >= len(rows):
                strips.append(blank)
                continue
            strip = self._strip(rows[y], paint, thumb=y in thumb)
            if selection is not None and chosen is not None:
                span = selection.get_span(offset_y(rows[y].part, rows[y].line))
                if span is not None:
                    strip = selected_strip(strip, max(GUTTER, span[0]), span[1], chosen)
            strips.append(strip)
        strips = filtered(self, strips)
        if crop.x or crop.width != width:
            strips = [strip.crop(crop.x, crop.right) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        """Return a row with the offsets that text selection asks for."""
        rows = self.rows()
        if y >= len(rows):
            return Strip.blank(self.size.width)
        row = rows[y]
        return self._strip(row, self.paint).apply_offsets(0, offset_y(row.part, row.line))

    def _strip(self, row: Row, paint: Paint, *, thumb: bool = False) -> Strip:
        block = self.document.block(row.part)
        width = self.size.width
        if block is None or row.line >= len(block.lines):
            return strip_of(PartBlock([]), Line([]), width, paint, thumb=thumb)
        own = row.line >= block.top
        selected = row.part == self.cursor and own
        skeleton = self.document.skeleton
        marked = own and skeleton.message[row.part] == skeleton.message[self.cursor]
        ground = ("focus" if self.has_focus else "raised") if selected else "background"
        hits = block.hits(self.pattern) if self.pattern is not None else None
        spans = hits.spans.get(row.line) if hits is not None else None
        key = (row.part, row.line, width, ground, marked, thumb)
        known = self._strips.get(key) if spans is None else None
        if known is not None and known[0] is block:
            return known[1]
        strip = strip_of(
            block, block.lines[row.line], width, paint, ground=ground, marks=marked, thumb=thumb,
            spans=spans, current=self._current(row, hits) if hits is not None else None,
        )
        if spans is None:
            self._strips.put(key, (block, strip), 1)
        return strip

    def _current(self, row: Row, hits: Hits) -> Span | None:
        """Return the characters of a row that the search stands on."""
        if self.hit is None or self.hit[0] != row.part or self.hit[1] >= len(hits.pieces):
            return None
        return hits.pieces[self.hit[1]].get(row.line)

    def _thumb(self) -> range:
        """Return the rows that the scroll bar's thumb covers; none where all fits."""
        total = self.document.heights.total
        return thumb_rows(total, self.size.height, self.scroller.position, at_end=self.at_end)

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Select the part under the mouse; a summary line folds or opens."""
        rows = self.rows()
        if event.x == self.size.width - 1 or event.y >= len(rows):
            return
        row = rows[event.y]
        block = self.document.block(row.part)
        fold: Hashable = None
        if block is not None and row.line < len(block.lines) and self.text_selection is None:
            fold = block.lines[row.line].fold
        self._tell(self.Clicked(Anchor.of(self.document, row.part), fold))

    def _tell(self, message: Message) -> None:
        """Tell the pane without a way through the own queue, behind keys that came later."""
        assert isinstance(self.parent, Widget)
        self.parent.post_message(message)

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._tell(self.Wheeled(WHEEL_LINES))

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._tell(self.Wheeled(-WHEEL_LINES))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the scroll bar."""
        if event.x == self.size.width - 1 and self._thumb():
            event.stop()
            self._dragging = True
            self.capture_mouse()
            self._drag(event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the scroll bar."""
        if self._dragging:
            self._drag(event.y)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go of the scroll bar."""
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def _drag(self, y: int) -> None:
        self._tell(self.Dragged(max(0.0, min(1.0, y / max(1, self.size.height - 1)))))

    # Selection

    def selection_updated(self, selection: Selection | None) -> None:
        """Paint the selection."""
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text as its source has it."""
        return selected_text(selection, rows_in(self.document, selection), GUTTER), "\n"

    def text_select_all(self) -> None:
        """Select the part under the last click: a session may be too long to copy whole."""
        block = self.document.block(self.cursor) if len(self.document) else None
        if block is not None and block.lines:
            start = Offset(0, offset_y(self.cursor, block.top))
            end = Offset(1 << 20, offset_y(self.cursor, len(block.lines) - 1))
            self.screen.selections = {self: Selection(start, end)}
