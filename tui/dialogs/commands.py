"""Commands of dialogs; each dialog offers those that it has a use for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tui.keys.declaration import Command, CommandFactory, Group

if TYPE_CHECKING:
    from tui.dialogs.frame import Dialog

_command = CommandFactory["Dialog[Any]"]("dialog")


def _offered(verb: str) -> Callable[[Dialog[Any]], str | None]:
    return lambda dialog: None if verb in dialog.offers() else "This dialog has no use for it"


def _taken(
    verb: str, key: tuple[str, ...], label: str, help: str, *, group: Group, footer: int,
    meaning: str,
) -> Command[Dialog[Any]]:
    """Return a command that a dialog offers or not.

    Args:
        verb: What the dialog is asked to do.
        key: Its keys.
        label: Its name in the footer, where the dialog has no better one.
        help: One sentence.
        group: What one wants to do with it.
        footer: Rank in the footer.
        meaning: What its keys mean in all scopes.
    """
    return _command(verb, key, label, help, group, lambda dialog: dialog.take(verb),
                    footer=footer, available=_offered(verb), meaning=meaning)


DIALOG_COMMANDS: tuple[Command[Dialog[Any]], ...] = (
    _command("down", ("j", "down"), "down", "Next line", "Move",
             lambda dialog: dialog.move_by(1)),
    _command("up", ("k", "up"), "up", "Previous line", "Move", lambda dialog: dialog.move_by(-1)),
    _command("page-down", ("pagedown", "space"), "page down", "One page down", "Move",
             lambda dialog: dialog.move_pages(1)),
    _command("page-up", ("pageup", "shift+space"), "page up", "One page up", "Move",
             lambda dialog: dialog.move_pages(-1)),
    _command("top", ("g", "home"), "top", "First line", "Move",
             lambda dialog: dialog.move_by(-1_000_000_000)),
    _command("end", ("G", "end"), "end", "Last line", "Move",
             lambda dialog: dialog.move_by(1_000_000_000)),
    _taken("take", ("enter",), "take", "Take what is selected, or do what the dialog is for",
           group="Change", footer=10, meaning="open"),
    _taken("copy", ("y",), "copy", "Copy the command of the dialog", group="Copy", footer=20,
           meaning="copy"),
    _taken("view", ("v",), "view all", "Show all of it in the pager", group="Read", footer=30,
           meaning="pager"),
    _taken("edit", ("ctrl+e",), "edit", "Edit the text of the dialog in the editor",
           group="Change", footer=40, meaning="edit"),
    _taken("exact", ("ctrl+t",), "exact", "Save terminal controls as they are, or visible",
           group="Change", footer=50, meaning="exact"),
    _taken("find", ("/",), "filter", "Type to filter the lines", group="Find", footer=60,
           meaning="find"),
    _command("leave", ("escape", "q"), "leave", "Close the dialog and change nothing", "Screen",
             lambda dialog: dialog.leave(), footer=70, meaning="close"),
)
