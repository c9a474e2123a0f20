"""The border between two panes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tui.kit.guard import lines_of
from tui.kit.lines import Line
from tui.kit.paint import paint_of, strip_of

if TYPE_CHECKING:
    from tui.state.layout import PaneName


class Splitter(Widget):
    """The border between two panes, which the mouse drags; one column."""

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

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the lines; all are equal, and drawn once."""
        return lines_of(self, crop, different=0)

    def render_line(self, y: int) -> Strip:
        """Draw the border: the transcript's ground, or a rule while the mouse is on it."""
        line = Line((("│" if self.lit else " ", "muted"),))
        return strip_of(line, 1, paint_of(self.app), ground="background")

    def on_enter(self) -> None:
        """Show the rule."""
        self.lit = True

    def on_leave(self) -> None:
        """Hide the rule, unless it is being dragged."""
        self.lit = self._held

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to drag."""
        self._held = self.lit = True
        self.capture_mouse()
        event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Post where the border is dragged to."""
        if self._held:
            self.post_message(self.Dragged(self.pane, event.screen_x))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End the drag."""
        self._held = self.lit = False
        self.release_mouse()
        event.stop()
