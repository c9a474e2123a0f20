"""All keys of the focused pane, made from the declarations."""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.keys.declaration import SCOPE_NAMES, SCREENS, AnyCommand, Command, Scope
from tui.keys.footer import BottomLine, Hint
from tui.keys.names import key_label, key_name
from tui.keys.table import CommandTable
from tui.kit.glyphs import glyphs
from tui.kit.lines import Line
from tui.kit.paint import paint_of, strip_of
from tui.kit.scrollbar import ThinScrollBar
from tui.kit.text import cells, fit, wrap

MOST_KEY_COLUMNS = 32
HINTS = (
    Hint("escape", "escape", "close"), Hint("j", "j", "scroll down"), Hint("k", "k", "scroll up"),
)


class KeyTable(ScrollView, can_focus=True):
    """The keys by heading, with what each does beside them."""

    DEFAULT_CSS = """KeyTable { height: auto; max-height: 100%; background: $surface;
        scrollbar-size-vertical: 1; }"""

    def __init__(self, scope: Scope, table: CommandTable) -> None:
        """Collect the keys of a scope and of everywhere.

        Args:
            scope: The focused pane's.
            table: The commands with their keys.
        """
        super().__init__()
        self._table = table
        self._lines: list[AnyCommand | str] = []
        for name in (scope,) if scope in SCREENS else dict.fromkeys((scope, "app")):
            self._add(name)
        widths = [cells(self._keys(line)) for line in self._lines if isinstance(line, Command)]
        self._key_columns = min(MOST_KEY_COLUMNS, max(widths, default=0))
        self._rows: list[tuple[str | None, str]] = []

    def _keys(self, command: AnyCommand) -> str:
        keys = (key_label(key_name(key)) for key in self._table.keys_of(command))
        return "  ".join(keys) or "no key"

    def _add(self, scope: Scope) -> None:
        found = self._table.of(scope)
        for group in dict.fromkeys(command.group for command in found):
            self._lines += ["", f"{SCOPE_NAMES[scope]}: {group}"]
            self._lines += [command for command in found if command.group == group]

    def on_mount(self) -> None:
        """Take the thin scrollbar."""
        self.vertical_scrollbar.renderer = ThinScrollBar  # type: ignore[misc]

    def on_resize(self) -> None:
        """Lay out for the width; help that does not fit goes on in the next line."""
        self._rows = []
        for line in self._lines:
            if isinstance(line, str):
                self._rows.append((None, line))
                continue
            room = max(1, self.size.width - self._columns - 5)
            spans = wrap(line.help, room)
            for number, (start, end) in enumerate(spans):
                self._rows.append(("" if number else self._keys(line), line.help[start:end]))
        self.virtual_size = Size(1, len(self._rows) + 1)

    @property
    def _columns(self) -> int:
        return min(self._key_columns, self.size.width // 2)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines of all; before the first layout, one for each."""
        return max(len(self._rows), len(self._lines)) + 1

    def render_line(self, y: int) -> Strip:
        """Draw a line of the table."""
        paint, width = paint_of(self.app), self.size.width
        number = y + self.scroll_offset.y
        keys, words = self._rows[number] if number < len(self._rows) else (None, "")
        if keys is None:
            rule = glyphs().rule * max(0, width - cells(words) - 4) if words else ""
            return strip_of(Line(((f"  {words} ", "muted bold"), (rule, "rule"))), width, paint)
        columns = self._columns
        keys = fit(keys, columns)
        column = f"  {keys}{' ' * (columns - cells(keys))}  "
        return strip_of(Line(((column, "user bold"), (words.strip(), "text"))), width, paint)


WIDE_FROM = 112
"""Columns of the screen from which it is seen around the help."""


class HelpScreen(ModalScreen[None]):
    """Shows the key table until a key closes it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    HelpScreen > Vertical { width: 100%; height: 100%; }
    HelpScreen KeyTable { height: 1fr; }
    HelpScreen.-wide > Vertical { width: 88; height: auto; max-height: 100%; }
    HelpScreen.-wide KeyTable { height: auto; max-height: 90vh; }
    """

    def __init__(self, scope: Scope, table: CommandTable) -> None:
        """Take the scope of the focused pane and the commands."""
        super().__init__()
        self._table = KeyTable(scope, table)

    def compose(self) -> ComposeResult:
        """Make the table, and the line that says how to close it."""
        with Vertical():
            yield self._table
            yield BottomLine()

    def on_mount(self) -> None:
        """Show the keys of this screen."""
        self.query_one(BottomLine).hints = HINTS

    def on_resize(self) -> None:
        """Take the whole screen where only parts of words would be seen around it."""
        self.set_class(self.size.width >= WIDE_FROM, "-wide")

    @on(BottomLine.Pressed)
    def _hint_clicked(self, event: BottomLine.Pressed) -> None:
        event.stop()
        self._take(event.command)

    def on_key(self, event: events.Key) -> None:
        """Scroll by letters too; close by escape, enter, q and the key that opened it."""
        if self._take(event.key):
            event.stop()

    def _take(self, key: str) -> bool:
        """Do what a key does, and return whether it does anything."""
        if key in ("escape", "enter", "q", "question_mark", "f1"):
            self.dismiss()
        elif key in ("j", "k"):
            self._table.scroll_relative(y=1 if key == "j" else -1, animate=False)
        else:
            return False
        return True

    def on_click(self, event: events.Click) -> None:
        """Close when the ground around the table is clicked."""
        if event.widget is self:
            self.dismiss()
