"""The last line of a screen: the keys that matter now, each of which can be clicked."""

from __future__ import annotations

from typing import NamedTuple

from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tui.keys.names import key_label, key_name
from tui.kit.lines import Line, Run
from tui.kit.paint import paint_of, strip_of
from tui.kit.text import cells


class Hint(NamedTuple):
    """A key in the bottom line.

    Attributes:
        command: The command's id.
    """

    command: str
    key: str
    label: str

    @property
    def words(self) -> str:
        """The key and what it does."""
        return f"{key_label(key_name(self.key))} {self.label}"


class BottomLine(Widget):
    """The keys that matter in the focused pane; a click does what the key does."""

    DEFAULT_CSS = "BottomLine { height: 1; background: $panel; }"
    hints: reactive[tuple[Hint, ...]] = reactive(())
    last: reactive[Hint | None] = reactive(None)
    asks: reactive[str] = reactive("")
    """What the next key is taken for, in place of the hints."""

    class Pressed(Message):
        """A key of the line was clicked.

        Attributes:
            command: The command's id.
        """

        def __init__(self, command: str) -> None:
            """Make the message."""
            super().__init__()
            self.command = command

    def _placed(self) -> list[tuple[int, Hint]]:
        """Return the hints that fit, with the column where each starts."""
        tail = cells(self.last.words) + 2 if self.last else 0
        room, column, placed = self.size.width - tail - 1, 1, []
        for hint in self.hints:
            size = cells(hint.words)
            if column + size > room:
                break
            placed.append((column, hint))
            column += size + 3
        if self.last:
            placed.append((self.size.width - cells(self.last.words) - 1, self.last))
        return placed

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        if self.asks:
            asked = Line(
                ((f" {self.asks}", "tool bold"),), (("esc", "text bold"), (" leave ", "muted")))
            return strip_of(asked, self.size.width, paint_of(self.app), ground="raised")
        runs: list[Run] = []
        at = 0
        for column, hint in self._placed():
            key = key_label(key_name(hint.key))
            runs += [
                (" " * (column - at), "blank"), (key, "text bold"), (f" {hint.label}", "muted"),
            ]
            at = column + cells(hint.words)
        return strip_of(Line(runs), self.size.width, paint_of(self.app), ground="raised")

    def on_click(self, event: events.Click) -> None:
        """Do what the key does."""
        for column, hint in self._placed():
            if column <= event.x < column + cells(hint.words):
                self.post_message(self.Pressed(hint.command))
                return
