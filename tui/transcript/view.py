"""The virtual list: paints the rows on the screen, and maps the mouse to parts.

Only the rows on the screen are laid out and painted. Textual paints with ``render_lines``
and maps the mouse with ``render_line``, which carries offsets.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from textual import events
from textual.geometry import Offset, Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.cache import WeightedCache
from tui.kit.guard import filtered
from tui.kit.hits import Finds, Hits
from tui.kit.jumping import coded
from tui.kit.lines import Line
from tui.kit.paint import Paint, follow_theme, paint_of
from tui.kit.selection import offset_y, selected_strip, selected_text
from tui.kit.text import Span
from tui.transcript import steps
from tui.transcript.anchors import Anchor
from tui.transcript.document import Document, Key
from tui.transcript.item import Setting
from tui.transcript.layout import PartBlock
from tui.transcript.scroller import Row, Scroller
from tui.transcript.selection import rows_in
from tui.transcript.strips import GUTTER, setting_for, strip_of, thumb_rows

PAINTED_LINES = 200
WHEEL_LINES = 3


class Position(NamedTuple):
    """What a move changes."""

    part: int
    line: int
    cursor: int
    at_end: bool


class TranscriptView(Widget, can_focus=True):
    """Shows a document from a line on; knows no store and no keys.

    Attributes:
        cursor: The selected part.
        signs: Signs of labels and letters of marks in the gutter, by key of their part.
        at_end: Whether the end is followed. A mode, not a measurement: on where a session
            opens at its end, off with any move up, on again with the key for the end.
    """

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
        """The size changed; the document has the new width."""

    def __init__(self, *, id: str | None = None) -> None:
        """Start with an empty document."""
        super().__init__(id=id)
        self.document = Document(setting_for(80))
        self.scroller = Scroller(self.document)
        self.cursor = 0
        self.pattern: Finds | None = None
        self.hit: tuple[int, int] | None = None
        self.signs: Mapping[Key, str] = {}
        self.at_end = False
        self._rows: list[Row] | None = None
        self._paint: Paint | None = None
        self._strips: WeightedCache[tuple[object, ...], tuple[PartBlock, Strip]] = WeightedCache(
            PAINTED_LINES)
        self._dragging = False
        self._codes: Mapping[Key, str] = {}

    # What is shown

    def show(self, document: Document) -> None:
        """Show another document; the caller sets the position."""
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
        """The widths for the present size."""
        return setting_for(self.size.width or 80)

    def changed(self) -> None:
        """Paint the screen again."""
        self._rows = None
        self.refresh()

    def rows(self) -> list[Row]:
        """Return the rows on the screen."""
        if self._rows is None:
            self._rows = self.scroller.rows()
        return self._rows

    def shown_parts(self) -> range:
        """Return the parts on the screen."""
        rows = self.rows()
        return range(rows[0].part, rows[-1].part + 1) if rows else range(0)

    # The position

    @property
    def position(self) -> Position:
        """The line at the top, the selected part, and whether the end is followed."""
        return Position(self.scroller.part, self.scroller.line, self.cursor, self.at_end)

    @position.setter
    def position(self, position: Position) -> None:
        self.scroller.part, self.scroller.line, self.cursor, self.at_end = position
        self.changed()

    def step_to(self, part: int, line: int = 0, *, top: bool = False, lines: int = 3) -> None:
        """Select a part and bring it onto the screen.

        Args:
            part: The part.
            line: Which of its lines is to be seen.
            top: Put it at the top even where it can be seen already.
            lines: How many lines from there are to be seen.
        """
        self.at_end = False
        if top:
            self.scroller.to(part, line)
        else:
            tall = self.document.height(part) - line
            self.scroller.show(part, line, min(tall, max(1, lines), self.scroller.height))
        self.cursor = part

    def step_to_start(self) -> None:
        """Show the first line."""
        self.at_end = False
        self.scroller.to(0)
        self.cursor = steps.part(self.document, -1, 1)
        self.keep_cursor(1)

    def step_to_end(self) -> None:
        """Show the last line, and follow the end."""
        self.at_end = True
        self.scroller.to_end()
        self.cursor = self.document.last_shown()

    def stay(self) -> None:
        """Keep the line at the top, or the end, whatever the heights of the parts are now."""
        if self.at_end:
            self.scroller.to_end()
        else:
            self.scroller.to(self.scroller.part, self.scroller.line)

    def keep_cursor(self, direction: int) -> None:
        """Select a part that is on the screen, where the selected one is not.

        Args:
            direction: 1 for the first such part, -1 for the last.
        """
        document = self.document
        self.changed()
        own = [row for row in self.rows() if (block := document.block(row.part)) is not None
               and row.line >= block.top]
        if not own or any(row.part == self.cursor for row in own):
            return
        heads = [row.part for row in own
                 if (block := document.block(row.part)) is not None and row.line == block.top]
        if direction > 0:
            self.cursor = heads[0] if heads else own[0].part
        else:
            self.cursor = heads[-1] if heads else own[-1].part

    # Size and theme

    def on_mount(self) -> None:
        """Follow the theme."""
        follow_theme(self, TranscriptView.repaint)

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
        blank = Strip([*Strip.blank(width, paint.style("text"))], width)
        codes = self._code_rows() if self._codes else {}
        strips: list[Strip] = []
        for y in range(crop.y, crop.bottom):
            if y >= len(rows):
                strips.append(blank)
                continue
            strip = self._strip(rows[y], paint, thumb=y in thumb)
            if y in codes:
                strip = coded(strip, codes[y], paint)
            if selection is not None:
                span = selection.get_span(offset_y(rows[y].part, rows[y].line))
                if span is not None:
                    strip = selected_strip(strip, max(GUTTER, span[0]), span[1], paint)
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
        sign = ""
        if self.signs and row.line == block.top:
            sign = self.signs.get(skeleton.key(row.part), "")
        key = (row.part, row.line, width, ground, marked, thumb, sign)
        known = self._strips.get(key) if spans is None else None
        if known is not None and known[0] is block:
            return known[1]
        strip = strip_of(
            block, block.lines[row.line], width, paint, ground=ground, marks=marked, sign=sign,
            thumb=thumb, spans=spans,
            current=self._current(row, hits) if hits is not None else None,
        )
        if spans is None:
            self._strips.put(key, (block, strip), 1)
        return strip

    def _current(self, row: Row, hits: Hits) -> Span | None:
        """Return the characters of a row that belong to the current hit."""
        if self.hit is None or self.hit[0] != row.part or self.hit[1] >= len(hits.pieces):
            return None
        return hits.pieces[self.hit[1]].get(row.line)

    def _thumb(self) -> range:
        """Return the rows that the scroll bar's thumb covers; none where all fits."""
        total = self.document.heights.total
        return thumb_rows(total, self.size.height, self.scroller.position, at_end=self.at_end)

    # Jumping

    def jump_stops(self) -> list[Key]:
        """Return the keys of the parts that are on the screen, from the top."""
        return [self.document.skeleton.key(part) for part in self._heads()]

    def show_codes(self, codes: Mapping[Key, str]) -> None:
        """Draw letters beside parts, by their keys."""
        self._codes = codes
        self.refresh()

    def _heads(self) -> dict[int, int]:
        """Return the first row on the screen of each part that has one of its own."""
        heads: dict[int, int] = {}
        for y, row in enumerate(self.rows()):
            block = self.document.block(row.part)
            if block is not None and row.line >= block.top and row.part not in heads:
                heads[row.part] = y
        return heads

    def _code_rows(self) -> dict[int, str]:
        key = self.document.skeleton.key
        return {y: self._codes[key(part)] for part, y in self._heads().items()
                if key(part) in self._codes}

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
        self._post_above(self.Clicked(Anchor.of(self.document, row.part), fold))

    def _post_above(self, message: Message) -> None:
        """Post to the pane directly: the view's own queue may hold keys that came later."""
        assert isinstance(self.parent, Widget)
        self.parent.post_message(message)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Ask the pane for lines below: a widget by itself would scroll its own content."""
        event.stop()
        event.prevent_default()
        self._post_above(self.Wheeled(WHEEL_LINES))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Ask the pane for lines above."""
        event.stop()
        event.prevent_default()
        self._post_above(self.Wheeled(-WHEEL_LINES))

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
        """Release the scroll bar."""
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def _drag(self, y: int) -> None:
        self._post_above(self.Dragged(max(0.0, min(1.0, y / max(1, self.size.height - 1)))))

    # Selection

    def selection_updated(self, selection: Selection | None) -> None:
        """Paint the selection."""
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text as its source has it."""
        return selected_text(selection, rows_in(self.document, selection), GUTTER), "\n"

    def select_text(self, selection: Selection | None) -> None:
        """Select text, or nothing."""
        self.screen.clear_selection()
        if selection is not None:
            self.screen.selections = {self: selection}

    def text_select_all(self) -> None:
        """Select the part under the last click: a session may be too long to copy whole."""
        block = self.document.block(self.cursor) if len(self.document) else None
        if block is not None and block.lines:
            start = Offset(0, offset_y(self.cursor, block.top))
            end = Offset(1 << 20, offset_y(self.cursor, len(block.lines) - 1))
            self.screen.selections = {self: Selection(start, end)}
