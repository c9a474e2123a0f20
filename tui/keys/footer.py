"""The last line of a screen: the keys that matter now, each of which can be clicked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from textual import events
from textual.css.query import NoMatches
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from store.system.records import NamedTuple
from tui.keys.declaration import TYPED
from tui.keys.names import acts_while_typing, key_label, key_name
from tui.keys.pane import CommandOwner, owners_of
from tui.keys.table import CommandTable, commands_of
from tui.kit.lines import Line, Run
from tui.kit.paint import paint_of, strip_of
from tui.kit.text import cells

if TYPE_CHECKING:
    from textual.dom import DOMNode


class Hint(NamedTuple):
    """A key in the bottom line.

    Attributes:
        command: The command's id.
        owner: What runs it.
    """

    command: str
    key: str
    label: str
    owner: CommandOwner

    @property
    def words(self) -> str:
        """The key and what it does."""
        return f"{key_label(key_name(self.key))} {self.label}"


class BottomLine(Widget):
    """The keys that can be used now where the focus is; a click does what the key does."""

    DEFAULT_CSS = "BottomLine { height: 1; background: $panel; }"
    hints: reactive[tuple[Hint, ...]] = reactive(())
    last: reactive[Hint | None] = reactive(None)
    asks: reactive[str] = reactive("")
    """What the next key is taken for, in place of the hints."""
    note: reactive[str] = reactive("")
    """Why some keys are left out."""

    def on_mount(self) -> None:
        """Show the keys of what has the focus."""
        self.watch(self.screen, "focused", self.look)

    def look(self) -> None:
        """Bring the keys up to date."""
        focus = self.screen.focused or self.screen
        owners = owners_of(focus)
        if isinstance(self.screen, ModalScreen):
            owners = [owner for owner in owners if owner.SCOPE in TYPED]
        hints = footer_hints(commands_of(self), owners, typing=isinstance(focus, Input))
        self.last = next((hint for hint in hints if hint.command.endswith(".help")), None)
        self.hints = tuple(hint for hint in hints if hint != self.last)

    @property
    def _noted(self) -> int:
        """How many columns the note takes; 0 where there is no room for it."""
        wanted = cells(self.note) + 2
        return wanted if self.note and 3 * wanted < self.size.width else 0

    def _placed(self) -> list[tuple[int, Hint]]:
        """Return the hints that fit, with the column where each starts."""
        tail = cells(self.last.words) + 2 if self.last else 0
        room, placed = self.size.width - tail - 1, list[tuple[int, Hint]]()
        column = 1 + self._noted
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
        if self._noted:
            runs.append((f" {self.note}", "tool"))
            at = self._noted - 1
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
                hint.owner.request_command(hint.command)
                return


def footer_hints(
    table: CommandTable, owners: Sequence[CommandOwner], *, typing: bool = False
) -> list[Hint]:
    """Return the keys of a footer, the most wanted first.

    Args:
        table: The commands with their keys.
        owners: What the keys go to, from the inside out.
        typing: Leave out the keys that a line takes as text.
    """
    found: list[tuple[int, Hint]] = []
    taken: set[str] = set()
    for owner in owners:
        mine: set[str] = set()
        for command in table.of(owner.SCOPE):
            keys = [key for key in table.keys_of(command) if key_name(key) not in taken]
            if typing:
                keys = [key for key in keys if acts_while_typing(key)]
            # A line gives the keys that it has no use for to its screen.
            if owner.SCOPE not in TYPED or command.available(owner) is None:
                mine.update(map(key_name, keys))
            if keys and command.footer is not None:
                label = owner.footer_label(command)
                if label is not None:
                    found.append((command.footer, Hint(command.id, keys[0], label, owner)))
        taken |= mine
    return [hint for _, hint in sorted(found, key=lambda each: each[0])]


def show_keys(node: DOMNode) -> None:
    """Bring the footer of the screen on top up to date, as what can be done has changed."""
    with suppress(NoMatches):
        # Textual keeps what this finds; a query walks through all widgets, at each key.
        node.app.screen.query_one(BottomLine).look()
