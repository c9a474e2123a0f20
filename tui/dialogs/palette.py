"""The palette: finds any command, and says of those that cannot be run now why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from textual.widget import Widget
from textual.widgets import Input

from tui.dialogs.frame import Dialog
from tui.keys.declaration import SCOPE_NAMES, AnyCommand
from tui.keys.finding import rank
from tui.keys.names import key_label, key_name
from tui.keys.pane import CommandOwner
from tui.keys.table import CommandTable
from tui.kit.blocks import Fixed
from tui.kit.line_view import LineView
from tui.kit.lines import Line, Link, Run, cut
from tui.kit.text import cells, fit
from tui.kit.text_line import TextLine
from tui.kit.theme import palette_of

NAME_CELLS = 30


class Entry(NamedTuple):
    """One thing that the palette can run.

    Attributes:
        name: What it is called.
        help: What it does, in a sentence.
        run: Runs it, once the palette is closed.
        keys: Its keys, as they are shown.
        scope: Where it acts; empty where that goes without saying.
        also: Other words that it is found by.
        refused: Why it cannot be run now, None where it can.
    """

    name: str
    help: str
    run: Callable[[], object]
    keys: tuple[str, ...] = ()
    scope: str = ""
    also: str = ""
    refused: str | None = None

    @property
    def title(self) -> str:
        """Its name with where it acts."""
        return f"{self.scope}: {self.name}" if self.scope else self.name

    def rank(self, typed: str) -> int:
        """Return how well it fits what was typed; 0 where it does not."""
        rest = {"also": self.also, "help": self.help, "keys": self.keys}
        plain = rank(typed, self.name, **rest)  # type: ignore[arg-type]
        return plain or rank(typed, self.title, help=self.help, loose=False)


class PaletteScreen(Dialog[None]):
    """Lists what fits the text that is typed, the best first."""

    AUTO_FOCUS = "Input"
    DEFAULT_CSS = """
    PaletteScreen > Vertical { width: 100; height: 80%; }
    PaletteScreen LineView { height: 1fr; max-height: 100%; }
    """

    def __init__(self, title: str, entries: Sequence[Entry], placeholder: str) -> None:
        """Take what can be run.

        Args:
            title: The title of the dialog.
            entries: In their order while nothing is typed.
            placeholder: Shown while nothing is typed.
        """
        super().__init__(title)
        self._entries, self._placeholder = list(entries), placeholder
        self.found = self._entries

    def body(self) -> Sequence[Widget]:
        """Compose the line to type into and the list."""
        return [TextLine(placeholder=self._placeholder, select_on_focus=False),
                LineView(ground="raised")]

    def offers(self) -> Mapping[str, str]:
        """Return what enter does."""
        return {"take": "run", "leave": "close"}

    def on_mount(self) -> None:
        """List everything."""
        self.query_one(Input).styles.background = palette_of(self.app).background
        view = self.query_one(LineView)
        view.can_focus = False
        view.shows_cursor = True
        view.show([Fixed(self._lines)])

    def on_input_changed(self, event: Input.Changed) -> None:
        """List what fits, the best first."""
        event.stop()
        self.look(event.value)

    def look(self, typed: str) -> None:
        """List what fits a text."""
        ranked = [(entry.rank(typed), entry) for entry in self._entries]
        fitting = sorted((each for each in ranked if each[0]), key=lambda each: -each[0])
        self.found = [entry for _, entry in fitting]
        self.query_one(LineView).show([Fixed(self._lines)])

    def _lines(self, width: int) -> list[Line]:
        if not self.found:
            return [Line((("No command fits", "muted"),))]
        names = min(NAME_CELLS, width // 2)
        return [_line(number, entry, names, width) for number, entry in enumerate(self.found)]

    async def take(self, verb: str) -> None:
        """Run the command that the cursor is on."""
        self._run(self.query_one(LineView).cursor)

    def _run(self, number: int) -> None:
        if number < len(self.found):
            entry = self.found[number]
            if entry.refused is None:
                self.dismiss()
                entry.run()
            else:
                self.app.notify(entry.refused, severity="warning", markup=False)

    def on_line_view_activated(self, message: LineView.Activated) -> None:
        """Run the command that was clicked."""
        message.stop()
        self._run(self.query_one(LineView).cursor)


def _line(number: int, entry: Entry, names: int, width: int) -> Line:
    """Return the line of an entry.

    Args:
        number: Its place in the list.
        entry: The entry.
        names: Cells for its title.
        width: Cells of the line.
    """
    name = fit(entry.title, names)
    keys = fit("  ".join(entry.keys), max(0, width // 4))
    about = f"Not now: {entry.refused}" if entry.refused else entry.help
    look = "faint" if entry.refused else "text"
    runs: list[Run] = [
        (name + " " * (names - cells(name)), look),
        (f"  {about}", "faint" if entry.refused else "muted"),
    ]
    return Line(cut(runs, width - cells(keys) - 2), ((keys, "user"),),
                link=Link("choice", str(number)))


def entries_of(table: CommandTable, owners: Sequence[CommandOwner]) -> list[Entry]:
    """Return what the palette lists: the focused pane's commands first, ways to move last.

    Args:
        table: The commands with their keys.
        owners: What runs the commands of each scope, the focused one first.
    """
    found: list[tuple[bool, bool, bool, Entry]] = []
    for owner in owners:
        whole = owner.SCOPE in ("app", "main")
        for command in table.of(owner.SCOPE):
            if command.id != "app.palette":
                entry = _entry(command, owner, table)
                order = owner is not owners[0], not whole, command.group == "Move"
                found.append((*order, entry))
    return [entry for *_, entry in sorted(found, key=lambda each: each[:3])]


def _entry(command: AnyCommand, owner: CommandOwner, table: CommandTable) -> Entry:
    scope = "" if owner.SCOPE in ("app", "main") else SCOPE_NAMES[owner.SCOPE]
    return Entry(
        command.label[0].upper() + command.label[1:], command.help,
        partial(owner.request_command, command.id),
        tuple(key_label(key_name(key)) for key in table.keys_of(command)), scope, command.also,
        command.available(owner),
    )
