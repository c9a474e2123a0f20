"""Lines of a dialog that are read, not chosen."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.blocks import Block, Fixed, Stack, Text
from tui.kit.lines import BLANK, Line, Run, cut
from tui.kit.paint import MARGIN, paint_of, row_of

NAME_CELLS = 12


class Notes(Widget, can_focus=False):
    """Shows blocks of lines, as high as they are."""

    DEFAULT_CSS = "Notes { height: auto; width: 1fr; }"

    def __init__(self, blocks: Sequence[Block], *, id: str | None = None) -> None:
        """Take the blocks."""
        super().__init__(id=id)
        self._stack = Stack(list(blocks))

    def show(self, blocks: Sequence[Block]) -> None:
        """Show other blocks."""
        self._stack = Stack(list(blocks))
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines that the blocks take at a width."""
        return self._stack.height(max(1, width - 2 * MARGIN))

    def render_line(self, y: int) -> Strip:
        """Paint a line."""
        width = max(1, self.size.width - 2 * MARGIN)
        line = self._stack.line(y, width) if y < self._stack.height(width) else BLANK
        return row_of(line, width + 2 * MARGIN, paint_of(self.app), ground="raised")


def facts(pairs: Sequence[tuple[str, Sequence[Run] | str]]) -> Fixed:
    """Return a block of aligned pairs."""

    def build(width: int) -> list[Line]:
        lines = []
        for name, value in pairs:
            runs: list[Run] = [(name.ljust(NAME_CELLS), "muted")]
            runs += [(value, "text")] if isinstance(value, str) else value
            lines.append(Line(cut(runs, width)))
        return lines

    return Fixed(build)


def words(*runs: Run) -> Fixed:
    """Return a block of one line."""
    return Fixed(lambda width: [Line(cut(runs, width))])


def paragraph(text: str, look: str) -> Text:
    """Return a block of one text, broken between words."""
    return Text(text, words=True, paint=lambda line: look)


def gap() -> Fixed:
    """Return an empty line."""
    return Fixed(lambda width: [BLANK])
