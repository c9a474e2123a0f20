"""A few words above the panes; few stores have them, so most starts do without this module."""

from __future__ import annotations

from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.lines import Line
from tui.kit.paint import paint_of, strip_of
from tui.kit.text import wrap


class Headline(Widget):
    """A few words above the panes about what is shown, on as many lines as they need.

    Escape takes them away when there is nothing else to go back from; a click does too.
    """

    DEFAULT_CSS = "Headline { height: auto; }"

    def __init__(self, words: str) -> None:
        """Take the words."""
        super().__init__()
        self._words = f"{words} (esc closes this)"

    def on_click(self) -> None:
        """Go away."""
        self.remove()

    def _lines(self, width: int) -> list[str]:
        spans = wrap(self._words, max(1, width - 2))
        return [self._words[start:end].strip() for start, end in spans]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines that the words need."""
        return len(self._lines(width))

    def render_line(self, y: int) -> Strip:
        """Draw a line."""
        lines = self._lines(self.size.width)
        words = lines[y] if y < len(lines) else ""
        line = Line(((f" {words}", "tool"),))
        return strip_of(line, self.size.width, paint_of(self.app), ground="background")
