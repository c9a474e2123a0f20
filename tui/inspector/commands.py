"""Commands of the inspector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.host import cannot_run, cannot_save
from tui.keys.declaration import Command, CommandFactory
from tui.keys.lines import line_commands
from tui.kit.key_hints import keyed

if TYPE_CHECKING:
    from tui.inspector.pane import InspectorPane


def _has_part(pane: InspectorPane) -> str | None:
    return None if pane.subject is not None else "No part is selected"


def _can_run(pane: InspectorPane) -> str | None:
    return _has_part(pane) or cannot_run(pane)


def _can_save(pane: InspectorPane) -> str | None:
    return _has_part(pane) or cannot_save(pane)


def _has_fold(pane: InspectorPane) -> str | None:
    if pane.subject is None:
        return "No part is selected"
    return None if pane.view.line.fold is not None else "Nothing to fold on this line"


def _has_path(pane: InspectorPane) -> str | None:
    value = pane.copying.value_here
    return None if value is not None and value.path else "This line has no path in the JSON"


def _has_needle(pane: InspectorPane) -> str | None:
    return None if pane.finder.needle else f"No search yet; {keyed('inspector.find', 'starts one')}"


def _is_elsewhere(pane: InspectorPane) -> str | None:
    return None if pane.tab != "Call" else "The Call tab is shown already"


_command = CommandFactory["InspectorPane"]("inspector")

INSPECTOR_COMMANDS: tuple[Command[InspectorPane], ...] = (
    *line_commands(_command),
    _command("next-tab", ("ctrl+right", "]"), "tabs", "Next tab: Call, JSON, Raw, Meta", "Move",
             lambda pane: pane.step_tab(1), footer=10, meaning="next-section"),
    _command("previous-tab", ("ctrl+left", "["), "previous tab", "Previous tab", "Move",
             lambda pane: pane.step_tab(-1), meaning="previous-section"),
    _command("back", ("backspace",), "call", "Back to the Call tab", "Move",
             lambda pane: pane.choose_tab("Call"), available=_is_elsewhere, meaning="reset"),
    _command("follow", ("enter",), "follow", "Follow the link, load the attachment, or fold",
             "Read", lambda pane: pane.follow_or_fold(), available=_has_part, meaning="open"),
    _command("toggle", ("o",), "fold", "Fold or unfold at this line", "Read",
             lambda pane: pane.toggle_fold(), footer=20, available=_has_fold, meaning="fold"),
    _command("unfold", ("right", "l"), "unfold", "Unfold, then go to the first child", "Read",
             lambda pane: pane.view.unfold(), available=_has_fold, meaning="right"),
    _command("fold", ("left", "h"), "fold", "Fold, then go to the parent", "Read",
             lambda pane: pane.view.fold(), available=_has_fold, meaning="left"),
    _command("toggle-all", ("O",), "fold all", "Fold or unfold the whole tree", "Read",
             lambda pane: pane.toggle_all(), available=_has_part, meaning="fold-all"),
    _command("find", ("/",), "find", "Find in this tab, including folded values", "Find",
             lambda pane: pane.finder.open(), footer=30, available=_has_part,
             also="search"),
    _command("next-hit", ("n",), "next match", "Next match", "Find",
             lambda pane: pane.finder.step(1), available=_has_needle),
    _command("previous-hit", ("N",), "previous match", "Previous match", "Find",
             lambda pane: pane.finder.step(-1), available=_has_needle),
    _command("search-for", ("=",), "search this",
             "Search all sessions for the selected text, or the path, command or value on the line",
             "Find", lambda pane: pane.search_everywhere(), available=_has_part),
    _command("copy", ("y",), "copy", "Copy the selected text or the value on the line", "Copy",
             lambda pane: pane.copying.copy(), footer=40, available=_has_part,
             also="yank clipboard"),
    _command("copy-path", ("p",), "copy path", "Copy the path of the value in the JSON", "Copy",
             lambda pane: pane.copying.copy_path(), footer=45, available=_has_path,
             also="yank clipboard"),
    _command("copy-as", ("Y",), "copy as…",
             "Copy the part, message, a code block, command, id, or the session as Markdown",
             "Copy", lambda pane: pane.copying.copy_as(), available=_has_part,
             also="yank clipboard share"),
    _command("open", ("v",), "pager", "Open the value on the line in the pager", "Read",
             lambda pane: pane.copying.open_in_pager(), footer=50, available=_can_run,
             meaning="pager",
             also="less view"),
    _command("edit", ("ctrl+e",), "editor",
             "Open a copy of the value in the editor; changes are discarded", "Read",
             lambda pane: pane.copying.open_in_editor(), available=_can_run,
             also="editor"),
    _command("save", ("w",), "save", "Save the value on the line to a file", "Copy",
             lambda pane: pane.copying.save(), footer=55, available=_can_save,
             also="export write download file"),
)
