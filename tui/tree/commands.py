"""Commands of the tree of a session's family."""

from __future__ import annotations

from typing import Any

from tui.keys.declaration import Availability, Command, always
from tui.verbs.doing import cannot_write


def _has_session(screen: Any) -> str | None:
    return None if screen.current_session() else "No session is selected"


def _writable(screen: Any) -> str | None:
    return _has_session(screen) or cannot_write(screen)


def _has_labels(screen: Any) -> str | None:
    return None if screen.has_labels else "No message of this family has a label; l sets one"


def _has_other(screen: Any) -> str | None:
    if screen.current_session() == screen.session_id:
        return "Go to another session; D compares it with the one that is shown"
    return _has_session(screen)


def _command(
    verb: str, keys: tuple[str, ...], label: str, help: str, group: str,
    footer: int | None = None, available: Availability = always,
) -> Command:
    return Command(f"tree.{verb}", keys, label, help, "tree", available, footer, group)


TREE_COMMANDS: tuple[Command, ...] = (
    _command("down", ("j", "down"), "down", "Next line", "Move"),
    _command("up", ("k", "up"), "up", "Previous line", "Move"),
    _command("page-down", ("pagedown", "ctrl+d", "ctrl+f", "space"), "page down", "One page down",
             "Move"),
    _command("page-up", ("pageup", "ctrl+u", "ctrl+b"), "page up", "One page up", "Move"),
    _command("top", ("g", "home"), "top", "The root of the family", "Move"),
    _command("end", ("G", "end"), "end", "The last line", "Move"),
    _command("parent", ("left", "h"), "parent", "Go to the parent", "Move"),
    _command("next-label", ("'",), "labels", "Go to the next label", "Move", 70, _has_labels),
    _command("open", ("enter",), "open",
             "Open the session, or the message that has the label", "Session", 10, _has_session),
    _command("compare", ("D",), "compare", "Compare the session with the one that is shown",
             "Session", 20, _has_other),
    _command("continue", ("C",), "continue", "Go on with the session in its agent", "Session", 30,
             _has_session),
    _command("archive", ("a",), "archive", "Archive the session, or bring it back", "Session", 40,
             _writable),
    _command("rename", ("N",), "rename", "Give the session another title", "Session", 50,
             _writable),
    _command("star", ("*",), "star", "Star the session, or take its star off", "Session", 80,
             _writable),
    _command("tag", ("#",), "tags", "Change the session's tags", "Session", 85, _writable),
    _command("label", ("l",), "label",
             "Change the label on the line, or label the session's last message", "Session", 60,
             _writable),
    _command("undo", ("U",), "undo", "Take the newest verb of this store back", "Session", 90,
             cannot_write),
    _command("redo", ("ctrl+r",), "redo", "Do again what was undone last", "Session", None,
             cannot_write),
    _command("help", ("?", "f1"), "keys", "Show all keys of the tree", "General", 99),
    _command("close", ("escape", "q", "T"), "close", "Back to the sessions", "General", 15),
)
