"""The border between two panes, which the mouse drags."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.theme import palette_of
from tui.main.layout import PaneName


class Splitter(Widget):
    """One column; a rule appears while the mouse is on it."""

    DEFAULT_CSS = "Splitter { width: 1; height: 1fr; }"

    lit = reactive(False)

    class Dragged(Message):
        """The border of a pane is being moved.

        Attributes:
            pane: The side pane that is resized.
            column: Where the mouse is, in columns of the screen.
        """

        def __init__(self, pane: PaneName, column: int) -> None:
            """Make the message."""
            super().__init__()
            self.pane = pane
            self.column = column

    def __init__(self, pane: PaneName) -> None:
        """Make the border of a side pane."""
        super().__init__(id=f"border-{pane}")
        self.pane: PaneName = pane
        self._held = False

    def render_line(self, y: int) -> Strip:
        """Draw the border: ground of the transcript, or a rule while it is touched."""
        palette = palette_of(self.app)
        colour = palette.muted if self.lit else palette.background
        glyph = "│" if self.lit else " "
        return Strip([Segment(glyph, Style(color=colour, bgcolor=palette.background))], 1)

    def on_enter(self) -> None:
        """Show the rule."""
        self.lit = True

    def on_leave(self) -> None:
        """Hide the rule, unless it is being dragged."""
        self.lit = self._held

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold."""
        self._held = self.lit = True
        self.capture_mouse()
        event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Tell the screen where the border is wanted."""
        if self._held:
            self.post_message(self.Dragged(self.pane, event.screen_x))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go."""
        self._held = self.lit = False
        self.release_mouse()
        event.stop()
