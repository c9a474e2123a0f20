"""Commands of the session tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.host import cannot_keep, cannot_run, cannot_write
from tui.keys.declaration import Command, CommandFactory
from tui.keys.lines import line_commands, screen_commands
from tui.kit.key_hints import keyed

if TYPE_CHECKING:
    from tui.tree.screen import TreeScreen


def _has_session(screen: TreeScreen) -> str | None:
    return None if screen.current_session() else "No session is selected"


def _writable(screen: TreeScreen) -> str | None:
    return _has_session(screen) or cannot_write(screen)


def _can_resume(screen: TreeScreen) -> str | None:
    return _has_session(screen) or cannot_keep(screen) or cannot_run(screen)


def _has_labels(screen: TreeScreen) -> str | None:
    if screen.has_labels:
        return None
    return f"No labels in this tree; {keyed('tree.label', 'adds one')}"


def _has_other(screen: TreeScreen) -> str | None:
    if screen.current_session() == screen.session_id:
        return "Select another session to compare with the one that is open"
    return _has_session(screen)


_command = CommandFactory["TreeScreen"]("tree")

TREE_COMMANDS: tuple[Command[TreeScreen], ...] = (
    *line_commands(_command),
    _command("parent", ("left", "h"), "parent", "Go to the parent", "Move",
             lambda screen: screen.go_to_parent(), meaning="left"),
    _command("next-label", ("'",), "labels", "Go to the next label", "Move",
             lambda screen: screen.go_to_next_label(), footer=70, available=_has_labels,
             meaning="labels"),
    _command("open", ("enter",), "open", "Open the session or the labelled message", "Read",
             lambda screen: screen.open_selected(), footer=10, available=_has_session),
    _command("compare", ("D",), "compare", "Compare the session with the one that is open",
             "Read", lambda screen: screen.compare(), footer=20, available=_has_other,
             also="diff"),
    _command("continue", ("C",), "continue", "Resume in its agent", "Change",
             lambda screen: screen.resume(), footer=30, available=_can_resume,
             also="resume go on reopen"),
    _command("archive", ("a",), "archive", "Archive or unarchive the session, with its subagents",
             "Change",
             lambda screen: screen.actions.archive(), footer=40, available=_writable,
             also="hide put away unarchive remove"),
    _command("rename", ("R",), "rename", "Rename the session", "Change",
             lambda screen: screen.actions.rename(), footer=50, available=_writable,
             also="title name"),
    _command("star", ("*",), "star", "Toggle star", "Change", lambda screen: screen.actions.star(),
             footer=80, available=_writable,
             also="favourite pin"),
    _command("tag", ("#",), "tags", "Edit the session's tags", "Change",
             lambda screen: screen.actions.tag(), footer=85, available=_writable,
             also="keywords"),
    _command("label", ("B",), "label", "Edit the label on the line, or label the last message",
             "Change", lambda screen: screen.change_label(), footer=60, available=_writable,
             also="name bookmark"),
    _command("undo", ("U",), "undo", "Undo the last change", "Change",
             lambda screen: screen.undo(), footer=90, available=cannot_write,
             also="revert take back"),
    _command("redo", ("ctrl+r",), "redo", "Redo", "Change", lambda screen: screen.redo(),
             available=cannot_write,
             also="repeat again"),
    *screen_commands(_command, "the tree", "T"),
)
