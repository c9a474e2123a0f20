"""Commands of the transcript."""

from __future__ import annotations

from typing import Any

from tui.commands.declaration import Command


def _has_session(pane: Any) -> str | None:
    return None if pane.has_session else "No session is shown"


def _has_needle(pane: Any) -> str | None:
    if not pane.has_session:
        return "No session is shown"
    found = pane.search is not None or pane._last_needle
    return None if found else "Nothing is searched for; / starts a search"


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
)
