"""Commands of the transcript."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tui.keys.declaration import Command
from tui.verbs.doing import cannot_write, still_opening

if TYPE_CHECKING:
    from tui.transcript.transcript_pane import TranscriptPane


def _has_session(pane: TranscriptPane) -> str | None:
    if pane.has_session:
        return None
    return "The session is still loading" if still_opening(pane) else "No session is shown"


def _has_needle(pane: TranscriptPane) -> str | None:
    reason = _has_session(pane)
    if reason is not None:
        return reason
    found = pane.search is not None or pane._last_needle
    return None if found else "No search yet; / starts one"


def _writable(pane: TranscriptPane) -> str | None:
    return _has_session(pane) or cannot_write(pane)


def _has_session_id(pane: TranscriptPane) -> str | None:
    return None if pane.session is not None else "No session is shown"


def _command(
    verb: str, keys: tuple[str, ...], label: str, help: str, group: str,
    footer: int | None = None,
    available: Callable[[TranscriptPane], str | None] = _has_session,
    run: Callable[[TranscriptPane], Awaitable[object] | None] | None = None,
) -> Command[TranscriptPane]:
    return Command(
        f"transcript.{verb}", keys, label, help, "transcript", available, footer, group, run)


TRANSCRIPT_COMMANDS: tuple[Command[TranscriptPane], ...] = (
    _command("down", ("j", "down"), "down", "One line down", "Move"),
    _command("up", ("k", "up"), "up", "One line up", "Move"),
    _command("page-down", ("pagedown", "space", "ctrl+f"), "page down", "One page down", "Move"),
    _command("page-up", ("pageup", "shift+space", "ctrl+b"), "page up", "One page up", "Move"),
    _command("half-page-down", ("ctrl+d",), "half page down", "Half a page down", "Move"),
    _command("half-page-up", ("ctrl+u",), "half page up", "Half a page up", "Move"),
    _command("top", ("g", "home"), "first", "First line", "Move"),
    _command("end", ("G", "end"), "end", "Last line; follow new ones", "Move"),
    _command("next-message", ("J", "alt+down"), "next message", "Next message", "Move"),
    _command("previous-message", ("K", "alt+up"), "previous message",
             "Start of this message, then the previous message", "Move"),
    _command("next-turn", ("]", "ctrl+down"), "next turn", "Next user turn", "Move"),
    _command("previous-turn", ("[", "ctrl+up"), "previous turn",
             "Start of this turn, then the previous turn", "Move"),
    _command("next-part", (".",), "next part", "Select the next part", "Move"),
    _command("previous-part", (",",), "previous part", "Select the previous part", "Move"),
    _command("next-tool", ("w",), "next call", "Next tool call", "Move"),
    _command("previous-tool", ("b",), "previous call", "Previous tool call", "Move"),
    _command("next-error", ("e",), "next error", "Next error or denied call", "Move"),
    _command("previous-error", ("E",), "previous error", "Previous error or denied call", "Move"),
    _command("go-to", (":",), "go to", "Go to a turn, time, date, #part or percentage (50%)",
             "Move"),
    _command("find", ("/",), "find", "Find in the session, including folded parts", "Search", 40),
    _command("next-hit", ("n",), "next match", "Next match", "Search", available=_has_needle),
    _command("previous-hit", ("N",), "previous match", "Previous match", "Search",
             available=_has_needle),
    _command("inspect", ("enter",), "inspect",
             "Inspect the part; open the session of a subagent's call", "Part", 10),
    _command("fold", ("o",), "fold", "Fold or unfold the part; a tool call: short, full, closed",
             "Part", 20),
    _command("copy", ("y",), "copy", "Copy the selected text or the part", "Part", 60),
    _command("copy-as", ("Y",), "copy as…",
             "Copy the part, message, a code block, command, id, or the session as Markdown",
             "Part"),
    _command("open", ("v",), "pager", "Open the part in the pager", "Part", 65),
    _command("tools", ("t",), "tools", "Show all tool outputs short, in full, or closed", "View",
             30),
    _command("reasoning", ("m",), "reasoning", "Fold or unfold all reasoning", "View", 50),
    _command("hidden", ("H",), "hidden", "Show or hide rewound messages", "View", 55),
    _command("context", ("c",), "context",
             "Toggle the context view: what the model would be sent, and what fills it", "View",
             32),
    _command("fork", ("f",), "fork here",
             "Fork the session after the selected message", "Verbs", 21, _writable),
    _command("fork-before", ("F",), "fork before",
             "Fork before the turn's user message, and edit its text", "Verbs", None, _writable),
    _command("rewind", ("r",), "rewind",
             "Rewind to the selected message, or to before its turn, after a preview",
             "Verbs", 22, _writable),
    _command("restore", ("x",), "restore", "Restore rewound messages", "Verbs", None,
             _writable),
    _command("label", ("l",), "label", "Label the selected message, or remove its label",
             "Verbs", None, _writable),
    _command("labels", ("'",), "labels", "Go to a labelled message", "Branches"),
    _command("next-branch", (")", "alt+right"), "next branch", "Open the next branch",
             "Branches", None, _has_session_id),
    _command("previous-branch", ("(", "alt+left"), "previous branch", "Open the previous branch",
             "Branches", None, _has_session_id),
    _command("tree", ("T",), "tree", "Show parent, forks and subagents as a tree",
             "Branches", 45, _has_session_id),
    _command("compare", ("D",), "compare", "Compare with another branch, turn by turn",
             "Branches", None, _has_session_id),
)
