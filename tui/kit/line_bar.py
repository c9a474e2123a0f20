"""One line of facts as a widget."""

from __future__ import annotations

from textual.strip import Strip
from textual.widget import Widget

from tui.kit.lines import BLANK, Line
from tui.kit.paint import follow_theme, paint_of, row_of


class LineBar(Widget, can_focus=False):
    """Shows one line."""

    DEFAULT_CSS = "LineBar { height: 1; }"

    def __init__(self, *, id: str | None = None, ground: str = "panel") -> None:
        """Make an empty bar.

        Args:
            id: The widget's id.
            ground: Role of the background.
        """
        super().__init__(id=id)
        self._line, self._ground = BLANK, ground

    def show(self, line: Line) -> None:
        """Show a line."""
        if line != self._line:
            self._line = line
            self.refresh()

    def on_mount(self) -> None:
        """Repaint with the colours of a new theme."""
        follow_theme(self, LineBar.refresh)

    def render_line(self, y: int) -> Strip:
        """Paint it."""
        line = self._line if y == 0 else BLANK
        return row_of(line, self.size.width, paint_of(self.app), ground=self._ground)
