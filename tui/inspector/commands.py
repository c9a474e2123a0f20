"""Commands of the inspector."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tui.keys.declaration import Command, always

if TYPE_CHECKING:
    from tui.inspector.pane import InspectorPane


def _has_part(pane: InspectorPane) -> str | None:
    return None if pane.subject is not None else "No part is selected"


def _has_fold(pane: InspectorPane) -> str | None:
    if pane.subject is None:
        return "No part is selected"
    return None if pane.can_fold else "Nothing to fold on this line"


def _has_path(pane: InspectorPane) -> str | None:
    value = pane.value_here
    return None if value is not None and value.path else "This line has no path in the JSON"


def _has_needle(pane: InspectorPane) -> str | None:
    return None if pane.needle else "No search yet; / starts one"


def _is_elsewhere(pane: InspectorPane) -> str | None:
    return None if pane.tab != "Call" else "The Call tab is shown already"


def _command(
    verb: str, keys: tuple[str, ...], label: str, help: str, group: str, *,
    footer: int | None = None, available: Callable[[InspectorPane], str | None] = always,
    run: Callable[[InspectorPane], Awaitable[object] | None] | None = None,
) -> Command[InspectorPane]:
    return Command(
        f"inspector.{verb}", keys, label, help, "inspector", available, footer, group, run)


INSPECTOR_COMMANDS: tuple[Command[InspectorPane], ...] = (
    _command("down", ("j", "down"), "down", "Next line", "Move"),
    _command("up", ("k", "up"), "up", "Previous line", "Move"),
    _command("page-down", ("pagedown", "ctrl+d", "ctrl+f", "space"), "page down", "One page down",
             "Move"),
    _command("page-up", ("pageup", "ctrl+u", "ctrl+b"), "page up", "One page up", "Move"),
    _command("top", ("g", "home"), "top", "First line", "Move"),
    _command("end", ("G", "end"), "end", "Last line", "Move"),
    _command("next-tab", ("ctrl+right", "]"), "tabs", "Next tab: Call, JSON, Raw, Meta", "View",
             footer=10),
    _command("previous-tab", ("ctrl+left", "["), "previous tab", "Previous tab", "View"),
    _command("back", ("b",), "call", "Back to the Call tab", "View", available=_is_elsewhere),
    _command("follow", ("enter",), "follow", "Follow the link, load the attachment, or fold",
             "View", available=_has_part),
    _command("toggle", ("o",), "fold", "Fold or unfold at this line", "View", footer=20,
             available=_has_fold),
    _command("unfold", ("right", "l"), "unfold", "Unfold, then go to the first child", "View",
             available=_has_fold),
    _command("fold", ("left", "h"), "fold", "Fold, then go to the parent", "View",
             available=_has_fold),
    _command("toggle-all", ("O",), "fold all", "Fold or unfold the whole tree", "View",
             available=_has_part),
    _command("find", ("/",), "find", "Find in this tab, including folded values", "Find",
             footer=30, available=_has_part),
    _command("next-hit", ("n",), "next match", "Next match", "Find", available=_has_needle),
    _command("previous-hit", ("N",), "previous match", "Previous match", "Find",
             available=_has_needle),
    _command("copy", ("y",), "copy", "Copy the selected text or the value on the line", "Copy",
             footer=40, available=_has_part),
    _command("copy-path", ("p",), "copy path", "Copy the path of the value in the JSON", "Copy",
             footer=45, available=_has_path),
    _command("copy-as", ("Y",), "copy as…",
             "Copy the part, message, a code block, command, id, or the session as Markdown",
             "Copy", available=_has_part),
    _command("open", ("v",), "pager", "Open the value on the line in the pager", "Copy",
             footer=50, available=_has_part),
    _command("edit", ("e",), "editor",
             "Open a copy of the value in the editor; changes are discarded", "Copy",
             available=_has_part),
    _command("save", ("w",), "save", "Save the value on the line to a file", "Copy", footer=55,
             available=_has_part),
)
