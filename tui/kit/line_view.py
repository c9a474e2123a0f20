"""The widget that shows a stack of blocks: only the lines on the screen are built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from tui.kit.blocks import Block, Spot, Stack
from tui.kit.jumping import coded
from tui.kit.lines import BLANK, Line, arrange
from tui.kit.paint import MARGIN, between_margins, follow_theme, paint_of, strip_of
from tui.kit.selection import offset_y, places_in, selected_strip, selected_text
from tui.kit.tree import Node

MARKS = ("▸", "▾", "…")


class LineView(ScrollView, can_focus=True):
    """Shows blocks of lines with a cursor, folding, finding and mouse selection.

    Attributes:
        cursor: The number of the line that it is on.
        needle: What is marked; empty without a search.
        shows_cursor: Whether the cursor is seen while the focus is elsewhere.
    """

    ALLOW_SELECT = True
    DEFAULT_CSS = """
    LineView { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """

    @dataclass
    class Activated(Message):
        """Enter or a click on a line that leads somewhere."""

        line: Line

    @dataclass
    class FoldWanted(Message):
        """A line whose section folds outside of the view."""

        key: Any

    class CursorMoved(Message):
        """The cursor is on another line."""

    def __init__(self, *, id: str | None = None, ground: str = "panel") -> None:
        """Make an empty view.

        Args:
            id: The widget's id.
            ground: Role of the background.
        """
        super().__init__(id=id)
        self.stack = Stack()
        self.cursor = 0
        self.needle = ""
        self.shows_cursor = False
        self._ground = ground
        self._spots: list[Spot] = []
        self._spot = -1
        self._pressed: tuple[int, int] | None = None
        self._codes: Mapping[int, str] = {}

    # What is shown

    @property
    def cells(self) -> int:
        """The cells that a line has."""
        return max(8, self.scrollable_content_region.width - 2 * MARGIN)

    def show(self, blocks: list[Block], *, stay: bool = False) -> None:
        """Show other blocks.

        Args:
            blocks: From the top.
            stay: Keep cursor and place (the same thing in a newer state).
        """
        self.stack = Stack(blocks)
        if not stay:
            self.cursor = 0
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.lay_out()

    def lay_out(self) -> None:
        """Measure the blocks anew and keep the cursor on a line."""
        height = self.stack.height(self.cells)
        self.cursor = max(0, min(self.cursor, height - 1))
        self.virtual_size = Size(0, height)
        if self.needle:
            self._spots = self.stack.find(self.needle, self.cells)
            self._spot = min(self._spot, len(self._spots) - 1)
        self.refresh()
        self.post_message(self.CursorMoved())

    def on_resize(self, event: events.Resize) -> None:
        """Lay out for the new width."""
        self.lay_out()

    def on_mount(self) -> None:
        """Repaint with the colours of a new theme."""
        follow_theme(self, LineView.refresh)

    def line_at(self, number: int) -> Line:
        """Return a line, or an empty one beyond the end."""
        if 0 <= number < self.stack.height(self.cells):
            return self.stack.line(number, self.cells)
        return BLANK

    @property
    def line(self) -> Line:
        """The line under the cursor."""
        return self.line_at(self.cursor)

    def render_line(self, y: int) -> Strip:
        """Paint one row of the screen."""
        paint = paint_of(self.app)
        number = y + self.scroll_offset.y
        ground = self.ground_of(number)
        strip = strip_of(
            self.line_at(number), self.cells, paint, ground=ground, needle=self.needle
        )
        offset = self.offset_at(number)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(offset)) is not None:
            strip = selected_strip(strip, *span, paint)
        strip = strip.apply_offsets(0, offset)
        strip = between_margins(strip, self.size.width, paint.style("blank", ground))
        code = self._codes.get(number)
        return strip if code is None else coded(strip, code, paint)

    def ground_of(self, number: int) -> str:
        """Return the role of a line's ground: the cursor's, or the view's own."""
        on_cursor = (
            number == self.cursor and (self.has_focus or self.shows_cursor)
            and bool(self.virtual_size.height)
        )
        return "focus" if on_cursor else self._ground

    def offset_at(self, number: int) -> int:
        """Return a line's y in a selection: see ``tui.kit.selection``."""
        return offset_y(*self.stack.place_of(number, self.cells))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text; rows that were wrapped come out as one line."""
        return selected_text(selection, self._rows_in(selection)), "\n"

    def _rows_in(self, selection: Selection) -> Iterator[tuple[int, Line, str]]:
        """Yield offset, line and text of the rows that a selection may hold."""
        blocks, width = self.stack.blocks, self.cells
        if not blocks:
            return
        last = len(blocks) - 1, max(0, blocks[-1].height(width) - 1)
        (first, top), (final, bottom) = places_in(selection, last)
        for at in range(first, final + 1):
            end = blocks[at].height(width)
            start, end = (top if at == first else 0), (min(end, bottom + 1) if at == final else end)
            for number in range(start, end):
                line = blocks[at].line(number, width)
                text = line.text
                if line.right:
                    text = "".join([text for text, _ink in arrange(line, width)])
                yield offset_y(at, number), line, text

    def selection_updated(self, selection: Selection | None) -> None:
        """Repaint what is selected."""
        self.refresh()

    # Moving

    def move_to(self, number: int) -> None:
        """Put the cursor on a line and make it visible."""
        height = self.stack.height(self.cells)
        old, self.cursor = self.cursor, max(0, min(number, height - 1))
        top, page = self.scroll_offset.y, max(1, self.scrollable_content_region.height)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True, immediate=True)
        elif self.cursor >= top + page:
            self.scroll_to(y=self.cursor - page + 1, animate=False, force=True, immediate=True)
        if old != self.cursor:
            self.refresh()
            self.post_message(self.CursorMoved())

    def move_by(self, lines: int) -> None:
        """Move the cursor by some lines."""
        self.move_to(self.cursor + lines)

    @property
    def page(self) -> int:
        """The lines that page keys move by."""
        return max(1, self.scrollable_content_region.height - 2)

    def on_focus(self) -> None:
        """Show the cursor."""
        self.refresh()

    def on_blur(self) -> None:
        """Hide the cursor."""
        self.refresh()

    # Jumping

    def jump_stops(self) -> list[int]:
        """Return the lines on the screen that are not empty."""
        top, page = self.scroll_offset.y, self.scrollable_content_region.height
        end = min(top + page, self.stack.height(self.cells))
        return [number for number in range(top, end) if self.line_at(number).whole_text.strip()]

    def show_codes(self, codes: Mapping[int, str]) -> None:
        """Draw letters over lines, by their numbers."""
        self._codes = codes
        self.refresh()

    # Folding

    def toggle_fold(self) -> bool:
        """Fold or unfold what the cursor is in; False when there is nothing to fold."""
        key = self.line.fold
        if key is None:
            return False
        if not isinstance(key, Node):
            self.post_message(self.FoldWanted(key))
            return True
        if not key.foldable:
            return False
        self._set_open(key, not key.open)
        return True

    def _head_of(self, node: Node) -> int:
        number = self.cursor
        while number > 0 and self.line_at(number - 1).fold is node:
            number -= 1
        return number

    def _set_open(self, node: Node, is_open: bool) -> None:
        head = self._head_of(node)
        node.open = is_open
        self.stack.changed()
        self.lay_out()
        self.move_to(head)

    def unfold(self) -> None:
        """Unfold the node under the cursor, or go into it."""
        node = self.line.fold
        if not isinstance(node, Node):
            self.toggle_fold()
        elif node.foldable and not node.open:
            self._set_open(node, True)
        elif node.is_container:
            self.move_by(1)

    def fold(self) -> None:
        """Fold the node under the cursor, or go to the one above it."""
        node = self.line.fold
        if not isinstance(node, Node):
            self.toggle_fold()
            return
        if node.foldable and node.open:
            self._set_open(node, False)
            return
        number = self.cursor
        while number > 0 and self.line_at(number).fold is not node.parent:
            number -= 1
        if self.line_at(number).fold is node.parent:
            self.move_to(number)

    # Finding

    @property
    def found(self) -> tuple[int, int]:
        """Which hit the cursor is on, from 1 (0 for none yet), and how many there are."""
        return self._spot + 1, len(self._spots)

    def find(self, text: str) -> None:
        """Mark every place that holds a text and go to the first one from the cursor on."""
        self.needle = text.casefold()
        self._spot = -1
        self._spots = self.stack.find(self.needle, self.cells) if self.needle else []
        self.refresh()
        if self._spots:
            self.next_hit(1)

    def next_hit(self, step: int) -> None:
        """Go to the next (1) or previous (-1) hit; past the end it starts again."""
        if not self._spots:
            return
        self._spot = (self._spot + step) % len(self._spots) if self._spot >= 0 else 0
        line = self.stack.locate(self._spots[self._spot], self.cells)
        self.stack.changed()
        self.virtual_size = Size(0, self.stack.height(self.cells))
        self.refresh()
        self.move_to(line)
        self.post_message(self.CursorMoved())

    # Mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Remember where a click began: a selection ends elsewhere."""
        self._pressed = (event.x, event.y)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor there; follow a link, toggle a fold mark."""
        if self._pressed != (event.x, event.y):
            return
        number = event.y + self.scroll_offset.y
        if number >= self.stack.height(self.cells):
            return
        self.move_to(number)
        line = self.line
        if line.link is not None:
            self.post_message(self.Activated(line))
        elif self._on_mark(line, event.x - MARGIN) or event.chain == 2:
            self.toggle_fold()

    @staticmethod
    def _on_mark(line: Line, x: int) -> bool:
        text = line.text
        mark = text.lstrip()[:1]
        if line.fold is None or mark not in MARKS:
            return False
        at = len(text) - len(text.lstrip())
        return mark == "…" or at - 1 <= x <= at + 1
