"""Commands of the session list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.queries.list_options import GROUPS, SORTS
from tui.host import cannot_write
from tui.keys.declaration import Command, CommandFactory
from tui.keys.jump import jump_in

if TYPE_CHECKING:
    from tui.sessions.pane import SessionsPane


def _has_session(pane: SessionsPane) -> str | None:
    return None if pane.selected_id else "No session is selected"


def _has_filter(pane: SessionsPane) -> str | None:
    return None if pane.filter_text else "No filter is set"


def _has_marks(pane: SessionsPane) -> str | None:
    return None if pane.selection.marks else "No session is marked"


def _has_below(pane: SessionsPane) -> str | None:
    return _has_session(pane) or pane.contents.why_no_fold


def _has_folder(pane: SessionsPane) -> str | None:
    if pane.list_query.workspace is not None:
        return None
    return _has_session(pane) or (
        None if pane.selection.workspace else "This session has no folder to filter by"
    )


def _writable(pane: SessionsPane) -> str | None:
    return _has_session(pane) or cannot_write(pane)


def _can_mark_all(pane: SessionsPane) -> str | None:
    return _has_session(pane) or pane.why_not_all


_command = CommandFactory["SessionsPane"]("list")

SESSION_COMMANDS: tuple[Command[SessionsPane], ...] = (
    _command("down", ("j", "down"), "down", "Next session", "Move",
             lambda pane: pane.view.move(1)),
    _command("up", ("k", "up"), "up", "Previous session", "Move", lambda pane: pane.view.move(-1)),
    _command("page-down", ("pagedown",), "page down", "One page down", "Move",
             lambda pane: pane.view.move_page(1)),
    _command("page-up", ("pageup", "shift+space"), "page up", "One page up", "Move",
             lambda pane: pane.view.move_page(-1)),
    _command("half-page-down", ("ctrl+d",), "half page down", "Half a page down", "Move",
             lambda pane: pane.view.move_half_page(1)),
    _command("half-page-up", ("ctrl+u",), "half page up", "Half a page up", "Move",
             lambda pane: pane.view.move_half_page(-1)),
    _command("top", ("g", "home"), "first", "First session", "Move",
             lambda pane: pane.view.select(0)),
    _command("end", ("G", "end"), "last", "Last session", "Move",
             lambda pane: pane.view.select_last()),
    _command("jump", (";",), "jump", "Jump to a session on the screen by its letters", "Move",
             lambda pane: jump_in(pane, pane.view, pane.view.select_rowid)),
    _command("next-group", ("ctrl+down", "]"), "next group", "Next group", "Move",
             lambda pane: pane.go_to_group(1), available=_has_session, meaning="next-section"),
    _command("previous-group", ("ctrl+up", "["), "previous group",
             "Start of this group, then the previous group", "Move",
             lambda pane: pane.go_to_group(-1), available=_has_session, meaning="previous-section"),
    _command("open", ("enter",), "open", "Open the session", "Read",
             lambda pane: pane.open_selected(), footer=10, available=_has_session),
    _command("details", ("d",), "details", "Show timeline, tokens, cost and facts of the session",
             "Read", lambda pane: pane.show_details(), footer=20, available=_has_session,
             also="statistics cost tokens timeline facts"),
    _command("toggle", ("o",), "fold", "Fold or unfold the forks and subagents", "Read",
             lambda pane: pane.contents.toggle_fold(), available=_has_below, meaning="fold"),
    _command("fold", ("left", "h"), "fold", "Fold the forks and subagents under their parent",
             "Read", lambda pane: pane.contents.fold(True), available=_has_below,
             meaning="left"),
    _command("unfold", ("right", "l"), "unfold", "Unfold the forks and subagents", "Read",
             lambda pane: pane.contents.fold(False), available=_has_below, meaning="right"),
    _command("mark", ("space",), "mark", "Toggle mark", "Change", lambda pane: pane.toggle_mark(),
             footer=60, available=_has_session,
             also="select"),
    _command("mark-below", ("M",), "mark below", "Mark this session and all below it", "Change",
             lambda pane: pane.mark_from(pane.view.cursor or 0), available=_can_mark_all),
    _command("mark-all", ("A",), "mark all", "Mark all sessions in the list", "Change",
             lambda pane: pane.mark_from(0), available=_can_mark_all,
             also="select"),
    _command("unmark", ("u",), "unmark all", "Clear all marks", "Change",
             lambda pane: pane.selection.clear_marks(), available=_has_marks,
             also="select none"),
    _command("archive", ("a",), "archive",
             "Archive or unarchive the marked sessions or this one, with their subagents",
             "Change", lambda pane: pane.actions.archive(), footer=25, available=_writable,
             also="hide put away unarchive remove"),
    _command("rename", ("R",), "rename", "Rename the session", "Change",
             lambda pane: pane.actions.rename(), available=_writable,
             also="title name"),
    _command("star", ("*",), "star", "Toggle star", "Change", lambda pane: pane.actions.star(),
             available=_writable,
             also="favourite pin"),
    _command("tag", ("#",), "tags", "Edit the session's tags", "Change",
             lambda pane: pane.actions.tag(), available=_writable,
             also="keywords"),
    _command("permissions", ("&",), "permissions",
             "Edit the session's own rules of permission", "Change",
             lambda pane: pane.actions.edit_rules(), available=_writable,
             also="rules allow deny ask tools"),
    _command("tree", ("T",), "tree", "Show parent, forks and subagents as a tree", "Read",
             lambda pane: pane.show_tree(), footer=27, available=_has_session,
             also="family parent"),
    _command("copy", ("y",), "copy", "Copy the selected text or the session's id", "Copy",
             lambda pane: pane.copy(), available=_has_session,
             also="yank clipboard id"),
    _command("copy-as", ("Y",), "copy as…",
             "Copy the session's title, id, folder, file, or the session as Markdown", "Copy",
             lambda pane: pane.copy_as(), available=_has_session,
             also="yank clipboard share markdown"),
    _command("filter", ("/",), "filter",
             "Filter by title, workspace, agent, model, branch; is:running, is:waiting, is:error",
             "Find", lambda pane: pane.open_filter(), footer=30, meaning="find",
             also="find search"),
    _command("clear-filter", ("backspace",), "clear filter", "Clear the filter", "Find",
             lambda pane: pane.clear_filter(), available=_has_filter, meaning="reset",
             also="reset"),
    _command("sort", ("s",), "sort",
             f"Change the sort: {', '.join(sort.help for sort in SORTS.values())}", "Read",
             lambda pane: pane.contents.next_sort(), footer=40,
             also="order"),
    _command("group", ("b",), "group", f"Change the grouping: {', '.join(GROUPS)}", "Read",
             lambda pane: pane.contents.next_group(), footer=50),
    _command("view", ("V",), "view",
             "Show active sessions, archived ones, all, or those of a saved search", "Find",
             lambda pane: pane.next_view(), footer=70,
             also="unarchive hidden shelf"),
    _command("folder", ("W",), "one folder", "Show only this session's folder, or all folders",
             "Find", lambda pane: pane.contents.toggle_folder(), footer=55, available=_has_folder,
             also="workspace project directory"),
    _command("running", ("L",), "running", "Go to the newest running session", "Move",
             lambda pane: pane.go_to_running(),
             also="active live"),
)
