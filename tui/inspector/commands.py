"""Commands of the inspector."""

from __future__ import annotations

from typing import Any

from tui.keys.declaration import Command


def _has_part(pane: Any) -> str | None:
    return None if pane.subject is not None else "No part is selected"


def _has_fold(pane: Any) -> str | None:
    if pane.subject is None:
        return "No part is selected"
    return None if pane.can_fold else "Nothing folds on this line"


def _has_path(pane: Any) -> str | None:
    value = pane.value_here
    return None if value is not None and value.path else "This line has no path in the JSON"


def _has_needle(pane: Any) -> str | None:
    return None if pane.needle else "Nothing is searched for; / starts a search"


def _is_elsewhere(pane: Any) -> str | None:
    return None if pane.tab != "Call" else "The call is shown already"


INSPECTOR_COMMANDS: tuple[Command, ...] = (
    Command("inspector.down", ("j", "down"), "down", "Next line", "inspector", group="Move"),
    Command("inspector.up", ("k", "up"), "up", "Previous line", "inspector", group="Move"),
    Command(
        "inspector.page-down", ("pagedown", "ctrl+d", "ctrl+f", "space"), "page down",
        "One page down", "inspector", group="Move",
    ),
    Command(
        "inspector.page-up", ("pageup", "ctrl+u", "ctrl+b"), "page up", "One page up",
        "inspector", group="Move",
    ),
    Command("inspector.top", ("g", "home"), "top", "First line", "inspector", group="Move"),
    Command("inspector.end", ("G", "end"), "end", "Last line", "inspector", group="Move"),
    Command(
        "inspector.next-tab", ("ctrl+right", "]"), "tabs", "Next tab: Call, JSON, Raw, Meta",
        "inspector", footer=10, group="View",
    ),
    Command(
        "inspector.previous-tab", ("ctrl+left", "["), "previous tab", "Previous tab",
        "inspector", group="View",
    ),
    Command(
        "inspector.back", ("b",), "call", "Back to the call", "inspector",
        available=_is_elsewhere, group="View",
    ),
    Command(
        "inspector.follow", ("enter",), "follow",
        "Follow the link on the line, load the attachment, or fold", "inspector",
        available=_has_part, group="View",
    ),
    Command(
        "inspector.toggle", ("o",), "fold", "Fold or unfold what the line is in", "inspector",
        available=_has_fold, footer=20, group="View",
    ),
    Command(
        "inspector.unfold", ("right", "l"), "unfold", "Unfold, then go into it", "inspector",
        available=_has_fold, group="View",
    ),
    Command(
        "inspector.fold", ("left", "h"), "fold", "Fold, then go to what it is in", "inspector",
        available=_has_fold, group="View",
    ),
    Command(
        "inspector.toggle-all", ("O",), "fold all", "Unfold the whole tree, or fold it",
        "inspector", available=_has_part, group="View",
    ),
    Command(
        "inspector.find", ("/",), "find", "Find a text in this tab, in what is folded too",
        "inspector", available=_has_part, footer=30, group="Find",
    ),
    Command(
        "inspector.next-hit", ("n",), "next hit", "Next hit", "inspector",
        available=_has_needle, group="Find",
    ),
    Command(
        "inspector.previous-hit", ("N",), "previous hit", "Previous hit", "inspector",
        available=_has_needle, group="Find",
    ),
    Command(
        "inspector.copy", ("y",), "copy", "Copy the selected text, or the value on the line",
        "inspector",
        available=_has_part, footer=40, group="Take out",
    ),
    Command(
        "inspector.copy-path", ("p",), "copy path", "Copy the path of the value in the JSON",
        "inspector", available=_has_path, footer=45, group="Take out",
    ),
    Command(
        "inspector.copy-as", ("Y",), "copy as…",
        "Copy the part, message, a code block, command, id, or the session as Markdown",
        "inspector", available=_has_part, group="Take out",
    ),
    Command(
        "inspector.open", ("v",), "pager", "Open the value on the line in the pager",
        "inspector", available=_has_part, footer=50, group="Take out",
    ),
    Command(
        "inspector.edit", ("e",), "editor",
        "Open a copy of the value in the editor; changes to it are not kept", "inspector",
        available=_has_part, group="Take out",
    ),
    Command(
        "inspector.save", ("w",), "save", "Save the value on the line to a file", "inspector",
        available=_has_part, footer=55, group="Take out",
    ),
)
