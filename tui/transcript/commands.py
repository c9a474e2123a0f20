"""Commands of the transcript."""

from __future__ import annotations

from typing import Any

from tui.keys.declaration import Command
from tui.verbs.doing import cannot_write, still_opening


def _has_session(pane: Any) -> str | None:
    if pane.has_session:
        return None
    return "The session is still being opened" if still_opening(pane) else "No session is shown"


def _has_needle(pane: Any) -> str | None:
    reason = _has_session(pane)
    if reason is not None:
        return reason
    found = pane.search is not None or pane._last_needle
    return None if found else "Nothing is searched for; / starts a search"


def _writable(pane: Any) -> str | None:
    return _has_session(pane) or cannot_write(pane)


def _has_session_id(pane: Any) -> str | None:
    return None if pane.session is not None else "No session is shown"


def _command(
    verb: str, keys: tuple[str, ...], label: str, help: str, group: str,
    footer: int | None = None, available: Any = _has_session,
) -> Command:
    return Command(
        f"transcript.{verb}", keys, label, help, "transcript", available=available, footer=footer,
        group=group,
    )


TRANSCRIPT_COMMANDS: tuple[Command, ...] = (
    _command("down", ("j", "down"), "down", "One line down", "Move"),
    _command("up", ("k", "up"), "up", "One line up", "Move"),
    _command("page-down", ("pagedown", "space", "ctrl+f"), "page down", "One page down", "Move"),
    _command("page-up", ("pageup", "shift+space", "ctrl+b"), "page up", "One page up", "Move"),
    _command("half-page-down", ("ctrl+d",), "half down", "Half a page down", "Move"),
    _command("half-page-up", ("ctrl+u",), "half up", "Half a page up", "Move"),
    _command("top", ("g", "home"), "first", "The first line", "Move"),
    _command("end", ("G", "end"), "end", "The last line; it stays in view", "Move"),
    _command("next-message", ("J", "alt+down"), "next message", "Next message", "Move"),
    _command("previous-message", ("K", "alt+up"), "previous message",
             "Start of this message, then the one before", "Move"),
    _command("next-turn", ("]", "ctrl+down"), "next turn", "Next user turn", "Move"),
    _command("previous-turn", ("[", "ctrl+up"), "previous turn",
             "Start of this turn, then the one before", "Move"),
    _command("next-part", (".",), "next part", "Select the next part", "Move"),
    _command("previous-part", (",",), "previous part", "Select the previous part", "Move"),
    _command("next-tool", ("w",), "next call", "Next tool call", "Move"),
    _command("previous-tool", ("b",), "previous call", "Previous tool call", "Move"),
    _command("next-error", ("e",), "next error", "Next error or denied call", "Move"),
    _command("previous-error", ("E",), "previous error", "Previous error or denied call", "Move"),
    _command("go-to", (":",), "go to", "Go to a turn, time, date, #part or share (50%)", "Move"),
    _command("find", ("/",), "find", "Search in the session, folded parts too", "Search", 40),
    _command("next-hit", ("n",), "next hit", "Next hit", "Search", available=_has_needle),
    _command("previous-hit", ("N",), "previous hit", "Previous hit", "Search",
             available=_has_needle),
    _command("inspect", ("enter",), "inspect",
             "Inspect the part; a subagent's call opens its session", "Part", 10),
    _command("fold", ("o",), "fold", "Fold or open the part; a tool call short, whole, closed",
             "Part", 20),
    _command("copy", ("y",), "copy", "Copy the selected text, or the part", "Part", 60),
    _command("copy-as", ("Y",), "copy as…",
             "Copy the part, message, a code block, command, id, or the session as Markdown",
             "Part"),
    _command("open", ("v",), "pager", "Open the whole part in the pager", "Part", 65),
    _command("tools", ("t",), "tools", "All tool outputs short, whole, or closed", "View", 30),
    _command("reasoning", ("m",), "reasoning", "Open or fold all reasoning", "View", 50),
    _command("hidden", ("H",), "hidden", "Show or hide what rewinds have hidden", "View", 55),
    _command("context", ("c",), "context",
             "What the model would be sent now and what fills it, or all again", "View", 32),
    _command("fork", ("f",), "fork here",
             "Fork the session: a new one with all up to the selected message", "Verbs", 21,
             _writable),
    _command("fork-before", ("F",), "fork before",
             "Fork before the turn's user message; its text is handed over for editing", "Verbs",
             None, _writable),
    _command("rewind", ("r",), "rewind",
             "Hide what comes after the selected message, or its turn too, after a preview",
             "Verbs", 22, _writable),
    _command("restore", ("x",), "restore", "Show again what a rewind has hidden", "Verbs", None,
             _writable),
    _command("label", ("l",), "label", "Label the selected message, or take its label off",
             "Verbs", None, _writable),
    _command("labels", ("'",), "labels", "Go to a message that has a label", "Branches"),
    _command("next-branch", (")", "alt+right"), "next branch", "Open the next branch of the family",
             "Branches", None, _has_session_id),
    _command("previous-branch", ("(", "alt+left"), "previous branch", "Open the branch before",
             "Branches", None, _has_session_id),
    _command("tree", ("T",), "tree", "Show the session's family: parent, forks, subagents",
             "Branches", 45, _has_session_id),
    _command("compare", ("D",), "compare", "Compare with another branch, turn by turn",
             "Branches", None, _has_session_id),
)
