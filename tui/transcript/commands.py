"""Commands of the transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.host import cannot_run, cannot_write, host_of
from tui.keys.declaration import Command, CommandFactory
from tui.keys.jump import jump_in
from tui.kit.key_hints import keyed

if TYPE_CHECKING:
    from tui.transcript.pane import TranscriptPane


def _has_session(pane: TranscriptPane) -> str | None:
    if pane.shown.has_parts:
        return None
    if pane.is_opening:
        return "The session is still loading"
    if pane.session is None:
        return "No session is shown"
    if not pane.shown.is_unread:
        return "This session has no messages"
    return host_of(pane).why_unread() or "This session is not read yet; it is read next"


def _has_needle(pane: TranscriptPane) -> str | None:
    reason = _has_session(pane)
    if reason is not None:
        return reason
    if pane.finder.has_needle:
        return None
    return f"No search yet; {keyed('transcript.find', 'starts one')}"


def _writable(pane: TranscriptPane) -> str | None:
    return _has_session(pane) or cannot_write(pane)


def _can_page(pane: TranscriptPane) -> str | None:
    return _has_session(pane) or cannot_run(pane)


def _has_session_id(pane: TranscriptPane) -> str | None:
    return None if pane.session is not None else "No session is shown"


def _has_file(pane: TranscriptPane) -> str | None:
    return _has_session(pane) or (
        None if pane.verbs.file_part() or pane.verbs.file_message()
        else "The selected part names no file, and no snapshot was made at its message")


_command = CommandFactory["TranscriptPane"]("transcript", _has_session)

TRANSCRIPT_COMMANDS: tuple[Command[TranscriptPane], ...] = (
    _command("down", ("j", "down"), "down", "One line down", "Move",
             lambda pane: pane.navigator.line(1)),
    _command("up", ("k", "up"), "up", "One line up", "Move", lambda pane: pane.navigator.line(-1)),
    _command("page-down", ("pagedown", "space"), "page down", "One page down", "Move",
             lambda pane: pane.navigator.page(1)),
    _command("page-up", ("pageup", "shift+space"), "page up", "One page up", "Move",
             lambda pane: pane.navigator.page(-1)),
    _command("half-page-down", ("ctrl+d",), "half page down", "Half a page down", "Move",
             lambda pane: pane.navigator.half_page(1)),
    _command("half-page-up", ("ctrl+u",), "half page up", "Half a page up", "Move",
             lambda pane: pane.navigator.half_page(-1)),
    _command("top", ("g", "home"), "first", "First line", "Move",
             lambda pane: pane.navigator.start()),
    _command("end", ("G", "end"), "end", "Last line; follow new ones", "Move",
             lambda pane: pane.navigator.end()),
    _command("jump", (";",), "jump", "Jump to a part on the screen by its letters", "Move",
             lambda pane: jump_in(pane, pane.view, pane.navigator.to_key)),
    _command("next-message", ("J", "alt+down"), "next message", "Next message", "Move",
             lambda pane: pane.navigator.message(1)),
    _command("previous-message", ("K", "alt+up"), "previous message",
             "Start of this message, then the previous message", "Move",
             lambda pane: pane.navigator.message(-1)),
    _command("next-turn", ("]", "ctrl+down"), "next turn", "Next user turn", "Move",
             lambda pane: pane.navigator.turn(1), meaning="next-section"),
    _command("previous-turn", ("[", "ctrl+up"), "previous turn",
             "Start of this turn, then the previous turn", "Move",
             lambda pane: pane.navigator.turn(-1), meaning="previous-section"),
    _command("next-part", (".",), "next part", "Select the next part", "Move",
             lambda pane: pane.navigator.part(1)),
    _command("previous-part", (",",), "previous part", "Select the previous part", "Move",
             lambda pane: pane.navigator.part(-1)),
    _command("next-tool", ("}", "f4"), "next call", "Next tool call", "Move",
             lambda pane: pane.navigator.tool(1)),
    _command("previous-tool", ("{", "f3"), "previous call", "Previous tool call", "Move",
             lambda pane: pane.navigator.tool(-1)),
    _command("next-error", ("e",), "next error", "Next error or denied call", "Move",
             lambda pane: pane.navigator.error(1)),
    _command("previous-error", ("E",), "previous error", "Previous error or denied call", "Move",
             lambda pane: pane.navigator.error(-1)),
    _command("go-to", (":",), "go to", "Go to a turn, time, date, #part or percentage (50%)",
             "Move", lambda pane: pane.finder.open_go_to(),
             also="jump time turn"),
    _command("find", ("/",), "find", "Find in the session, including folded parts", "Find",
             lambda pane: pane.finder.open_find(), footer=40,
             also="search"),
    _command("next-hit", ("n",), "next match", "Next match", "Find",
             lambda pane: pane.finder.step(1), available=_has_needle),
    _command("previous-hit", ("N",), "previous match", "Previous match", "Find",
             lambda pane: pane.finder.step(-1), available=_has_needle),
    _command("search-for", ("=",), "search this",
             "Search all sessions for the selected text, or the part's path, command or error",
             "Find", lambda pane: pane.search_everywhere()),
    _command("inspect", ("enter",), "inspect",
             "Inspect the part; open the session of a subagent's call", "Read",
             lambda pane: pane.verbs.inspect(), footer=10, meaning="open"),
    _command("fold", ("o",), "fold", "Fold or unfold the part; a tool call: short, full, closed",
             "Read", lambda pane: pane.folds.fold_selected(), footer=20),
    _command("copy", ("y",), "copy",
             "Copy the selected text or the part; of a call its command, path or pattern", "Copy",
             lambda pane: pane.copying.copy(), footer=60,
             also="yank clipboard"),
    _command("copy-as", ("Y",), "copy as…",
             "Copy a piece of a call (path, pattern, output), the message, an id, the session…",
             "Copy", lambda pane: pane.copying.copy_as(),
             also="yank clipboard share markdown"),
    _command("open", ("v",), "pager", "Open the part in the pager", "Read",
             lambda pane: pane.copying.open_in_pager(), footer=65, available=_can_page,
             meaning="pager",
             also="less view"),
    _command("tools", ("t",), "tools", "Show all tool outputs short, in full, or closed", "Read",
             lambda pane: pane.folds.cycle_tools(), footer=30,
             also="outputs fold"),
    _command("reasoning", ("i",), "reasoning", "Fold or unfold all reasoning", "Read",
             lambda pane: pane.folds.toggle_reasoning(), footer=50,
             also="thinking thoughts fold"),
    _command("hidden", ("H",), "hidden", "Show or hide rewound messages", "Read",
             lambda pane: pane.folds.toggle_hidden(), footer=55,
             also="rewound"),
    _command("context", ("c",), "context",
             "Toggle the context view: what the model would be sent, and what fills it", "Read",
             lambda pane: pane.context.toggle(), footer=32,
             also="window tokens prompt"),
    _command("fork", ("f",), "fork here", "Fork the session after the selected message", "Change",
             lambda pane: pane.verbs.fork(), footer=21, available=_writable,
             also="branch duplicate"),
    _command("fork-before", ("F",), "fork before",
             "Fork before the turn's user message, and edit its text", "Change",
             lambda pane: pane.verbs.fork_before(), available=_writable,
             also="branch edit prompt"),
    _command("rewind", ("r",), "rewind",
             "Rewind to the selected message, or to before its turn, after a preview", "Change",
             lambda pane: pane.verbs.rewind(), footer=22, available=_writable,
             also="hide delete messages back"),
    _command("restore", ("x",), "restore", "Restore rewound messages", "Change",
             lambda pane: pane.verbs.restore(), available=_writable,
             also="unhide show hidden unrewind"),
    _command("label", ("B",), "label", "Label the selected message, or remove its label", "Change",
             lambda pane: pane.verbs.change_label(), available=_writable,
             also="name bookmark"),
    _command("labels", ("'",), "labels",
             "List labels, marks and checkpoints; a letter goes to its mark at once", "Move",
             lambda pane: pane.verbs.go_to_label()),
    _command("next-branch", (")", "alt+right"), "next branch", "Open the next branch", "Move",
             lambda pane: pane.verbs.branch(1), available=_has_session_id),
    _command("previous-branch", ("(", "alt+left"), "previous branch", "Open the previous branch",
             "Move", lambda pane: pane.verbs.branch(-1), available=_has_session_id),
    _command("file", ("-",), "file as it was",
             "Show the file of the selected call, or the files at a snapshot, as they were", "Read",
             lambda pane: pane.verbs.show_file(), available=_has_file, meaning="file"),
    _command("details", ("d",), "details", "Show timeline, tokens, cost and facts of the session",
             "Read", lambda pane: pane.verbs.show_details(), available=_has_session_id,
             also="statistics cost tokens timeline facts"),
    _command("tree", ("T",), "tree", "Show parent, forks and subagents as a tree", "Read",
             lambda pane: pane.verbs.show_tree(), footer=45, available=_has_session_id,
             also="family parent"),
    _command("exchange", (), "exchange",
             "Show what was sent between the session and others: inbox, outbox, channels", "Read",
             lambda pane: pane.verbs.show_exchange(), available=_has_session_id,
             also="inbox outbox sender recipient channel mail"),
    _command("compare", ("D",), "compare", "Compare with another branch, turn by turn", "Read",
             lambda pane: pane.verbs.compare(), available=_has_session_id,
             also="diff"),
)
