"""The keys that work where the focus is, made from the declarations; they can be filtered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from textual.widget import Widget
from textual.widgets import Input

from tui.dialogs.frame import Dialog
from tui.keys.declaration import GROUPS, SCOPE_NAMES, AnyCommand, Scope
from tui.keys.finding import rank
from tui.keys.names import key_label, key_name
from tui.keys.table import CommandTable
from tui.kit.blocks import Fixed
from tui.kit.glyphs import glyphs
from tui.kit.line_view import LineView
from tui.kit.lines import BLANK, Line
from tui.kit.text import cells, fit, wrap
from tui.kit.text_line import TextLine
from tui.kit.theme import palette_of

MOST_KEY_COLUMNS = 30
WIDE_FROM = 112
"""Columns of the screen from which it is seen around the help."""


class HelpScreen(Dialog[None]):
    """Shows the keys by what one wants to do."""

    AUTO_FOCUS = "LineView"
    DEFAULT_CSS = """
    HelpScreen > Vertical { width: 100%; max-width: 100%; height: 100%; max-height: 100%; }
    HelpScreen LineView { height: 1fr; max-height: 100%; }
    HelpScreen.-wide > Vertical { width: 88; height: 90%; }
    """

    def __init__(self, scopes: Sequence[Scope], table: CommandTable) -> None:
        """Take what is shown.

        Args:
            scopes: The scopes whose keys work there, the focused pane's first.
            table: The commands with their keys.
        """
        super().__init__(f"Keys: {SCOPE_NAMES[scopes[0]]}", "esc closes")
        self._table = table
        self._commands = list(_reachable(scopes, table))

    def body(self) -> Sequence[Widget]:
        """Compose the filter and the lines."""
        return [TextLine(placeholder="filter", select_on_focus=False), LineView(ground="raised")]

    def offers(self) -> Mapping[str, str]:
        """Return that the lines can be filtered."""
        return {"take": "lines", "leave": "close"} if self._typing else {
            "find": "filter", "leave": "close"}

    @property
    def _typing(self) -> bool:
        return isinstance(self.focused, Input)

    def on_mount(self) -> None:
        """Show all keys."""
        self.on_resize()
        self.query_one(Input).styles.background = palette_of(self.app).background
        self._show()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the keys that fit."""
        event.stop()
        self._show()

    def on_resize(self) -> None:
        """Take the whole screen where only parts of words would be seen around it."""
        self.set_class(self.app.size.width >= WIDE_FROM, "-wide")

    async def take(self, verb: str) -> None:
        """Type into the filter, or go on in the lines."""
        self.set_focus(self.query_one(Input) if verb == "find" else self.query_one(LineView))

    def leave(self) -> None:
        """Clear and leave the filter, else close."""
        field = self.query_one(Input)
        if field.value or self._typing:
            field.value = ""
            self.set_focus(self.query_one(LineView))
        else:
            self.dismiss()

    # The lines

    def _show(self) -> None:
        self.query_one(LineView).show([Fixed(self._lines)])

    def _keys(self, command: AnyCommand) -> tuple[str, ...]:
        return tuple(key_label(key_name(key)) for key in self._table.keys_of(command))

    def _lines(self, width: int) -> list[Line]:
        typed = self.query_one(Input).value
        found = [c for c in self._commands if rank(
            typed, c.label, also=c.also, help=c.help, keys=self._keys(c), loose=False)]
        if not found:
            return [Line(((f"No key fits “{fit(typed, max(4, width - 16))}”", "muted"),))]
        shown = {command.id: "  ".join(self._keys(command)) or "no key" for command in found}
        columns = min(MOST_KEY_COLUMNS, width // 2, max(map(cells, shown.values())))
        lines: list[Line] = []
        for group in GROUPS:
            mine = [command for command in found if command.group == group]
            if mine:
                rule = glyphs().rule * max(0, width - cells(group) - 1)
                lines += [BLANK] * bool(lines)
                lines.append(Line(((f"{group} ", "muted bold"), (rule, "rule"))))
            for command in mine:
                lines += _described(shown[command.id], command.help, columns, width)
        return lines


def _reachable(scopes: Sequence[Scope], table: CommandTable) -> Iterator[AnyCommand]:
    """Yield the commands of some scopes; without those whose keys inner scopes have taken."""
    taken: set[str] = set()
    for scope in scopes:
        mine: set[str] = set()
        for command in table.of(scope):
            keys = set(map(key_name, table.keys_of(command)))
            mine |= keys
            if not keys or keys - taken:
                yield command
        taken |= mine


def _described(keys: str, help: str, columns: int, width: int) -> Iterator[Line]:
    """Yield the lines of a command: its keys at the right of their columns, what it does.

    Args:
        keys: Its keys, as they are shown.
        help: What it does.
        columns: Cells for the keys.
        width: Cells of a line.
    """
    keys = fit(keys, columns)
    for number, (start, end) in enumerate(wrap(help, max(1, width - columns - 2))):
        pad = " " * (columns - cells(keys)) if number == 0 else " " * columns
        yield Line(((pad + (keys if number == 0 else ""), "user bold"),
                    (f"  {help[start:end].strip()}", "text")))
