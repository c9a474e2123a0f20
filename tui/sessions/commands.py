"""Commands of the session list."""

from __future__ import annotations

from typing import Any

from tui.keys.declaration import Command
from tui.verbs.doing import cannot_write


def _has_session(pane: Any) -> str | None:
    return None if pane.selected_id else "No session is selected"


def _has_filter(pane: Any) -> str | None:
    return None if pane.filter_text else "No filter is set"


def _has_folder(pane: Any) -> str | None:
    if pane.list_query.workspace is not None:
        return None
    return _has_session(pane) or (
        None if pane.selected_workspace else "The session has no folder to limit the list to"
    )


def _writable(pane: Any) -> str | None:
    return _has_session(pane) or cannot_write(pane)


def _can_mark_all(pane: Any) -> str | None:
    return _has_session(pane) or pane.why_not_all


SESSION_COMMANDS: tuple[Command, ...] = (
    Command("list.down", ("j", "down"), "down", "Next session", "list", group="Move"),
    Command("list.up", ("k", "up"), "up", "Previous session", "list", group="Move"),
    Command(
        "list.page-down", ("pagedown", "ctrl+d", "ctrl+f"), "page down", "One page down", "list",
        group="Move",
    ),
    Command(
        "list.page-up", ("pageup", "ctrl+u", "ctrl+b"), "page up", "One page up", "list",
        group="Move",
    ),
    Command("list.top", ("g", "home"), "first", "First session", "list", group="Move"),
    Command("list.end", ("G", "end"), "last", "Last session", "list", group="Move"),
    Command(
        "list.next-group", ("ctrl+down", "]"), "next group", "First session of the next group",
        "list", group="Move",
    ),
    Command(
        "list.previous-group", ("ctrl+up", "["), "previous group",
        "First session of this group, then of the one before", "list", group="Move",
    ),
    Command(
        "list.open", ("enter",), "open", "Open the session in the transcript", "list",
        available=_has_session, footer=10, group="Session",
    ),
    Command(
        "list.details", ("d",), "details", "Timeline, tokens, cost and facts of the session",
        "list", available=_has_session, footer=20, group="Session",
    ),
    Command(
        "list.fold", ("left", "h"), "fold", "Fold the forks and subagents under their parent",
        "list", available=_has_session, group="Session",
    ),
    Command(
        "list.unfold", ("right", "l", "o"), "unfold", "Show the forks and subagents of a session",
        "list", available=_has_session, group="Session",
    ),
    Command(
        "list.mark", ("space",), "mark", "Mark the session, or take the mark away", "list",
        available=_has_session, footer=60, group="Session",
    ),
    Command(
        "list.mark-below", ("m",), "mark below", "Mark this session and all below it", "list",
        available=_can_mark_all, group="Session",
    ),
    Command(
        "list.mark-all", ("M",), "mark all", "Mark all sessions that the list or its filter shows",
        "list", available=_can_mark_all, group="Session",
    ),
    Command(
        "list.unmark", ("u",), "unmark all", "Take all marks away", "list", group="Session",
    ),
    Command(
        "list.archive", ("a",), "archive", "Archive the marked sessions or this one, or bring "
        "archived ones back", "list", available=_writable, footer=25, group="Session",
    ),
    Command(
        "list.rename", ("N",), "rename", "Give the session another title", "list",
        available=_writable, group="Session",
    ),
    Command(
        "list.star", ("*",), "star", "Star the session, or take its star off", "list",
        available=_writable, group="Session",
    ),
    Command(
        "list.tag", ("#",), "tags", "Change the session's tags", "list",
        available=_writable, group="Session",
    ),
    Command(
        "list.tree", ("T",), "tree", "Show the session's family: parent, forks, subagents", "list",
        available=_has_session, footer=27, group="Session",
    ),
    Command(
        "list.copy", ("y",), "copy", "Copy the text selected with the mouse, or the session's id",
        "list", available=_has_session, group="Session",
    ),
    Command(
        "list.copy-as", ("Y",), "copy as…",
        "Copy the session's title, id, folder, file, or the session as Markdown", "list",
        available=_has_session, group="Session",
    ),
    Command(
        "list.filter", ("/",), "filter",
        "Filter by title, workspace, agent, model, branch; is:running, is:waiting, is:error",
        "list", footer=30, group="View",
    ),
    Command(
        "list.clear-filter", ("backspace",), "clear filter", "Show all sessions again", "list",
        available=_has_filter, group="View",
    ),
    Command(
        "list.sort", ("s",), "sort", "Sort by recent, created, tokens, cost, length, activity of "
        "the last day",
        "list", footer=40, group="View",
    ),
    Command(
        "list.group", ("b",), "group", "Group by workspace, day, source, or not at all", "list",
        footer=50, group="View",
    ),
    Command(
        "list.view", ("V",), "archived", "Show active sessions, archived ones, or all", "list",
        footer=70, group="View",
    ),
    Command(
        "list.folder", ("w",), "one folder", "Show only the sessions of this one's folder, or "
        "those of all folders again", "list", available=_has_folder, footer=55, group="View",
    ),
    Command(
        "list.running", ("L",), "running", "Go to the newest session that is running", "list",
        group="Move",
    ),
)
