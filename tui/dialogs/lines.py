"""A dialog with lines to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.widget import Widget

from tui.dialogs.frame import Dialog
from tui.kit.blocks import Fixed
from tui.kit.line_view import LineView
from tui.kit.lines import Line, cut


class LinesDialog(Dialog[None]):
    """Shows lines until it is closed."""

    AUTO_FOCUS = "LineView"
    DEFAULT_CSS = """
    LinesDialog > Vertical { width: 118; max-width: 96%; }
    LinesDialog LineView { max-height: 32; }
    """

    def __init__(self, title: str, lines: Sequence[Line], about: str = "") -> None:
        """Take what is shown.

        Args:
            title: What it is about.
            lines: From the top; a line that is too long is cut.
            about: Shown at the right of the title.
        """
        super().__init__(title, about)
        self._lines = list(lines)

    def body(self) -> Sequence[Widget]:
        """Compose the lines."""
        view = LineView(ground="raised")
        view.styles.margin = (1, 0, 0, 0)
        return [view]

    def offers(self) -> Mapping[str, str]:
        """Return that the keys close it."""
        return {"leave": "close"}

    def on_mount(self) -> None:
        """Show the lines."""
        view = self.query_one(LineView)
        view.styles.height = min(32, max(1, len(self._lines)))
        view.show([Fixed(lambda width: [Line(cut(line.runs, width)) for line in self._lines])])
