"""Commands of the replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.keys.declaration import Command, CommandFactory
from tui.keys.lines import screen_commands

if TYPE_CHECKING:
    from tui.replay.screen import ReplayScreen

def _is_read(screen: ReplayScreen) -> str | None:
    return None if screen.player is not None else "The session is still being read"


_command = CommandFactory["ReplayScreen"]("replay", _is_read)
_always = CommandFactory["ReplayScreen"]("replay")

REPLAY_COMMANDS: tuple[Command[ReplayScreen], ...] = (
    _command("play", ("space",), "play or pause", "Play or pause; at the end, play it again",
             "Move", lambda screen: screen.toggle(), footer=10,
             also="stop resume start"),
    _command("next-message", ("right", "l"), "next message", "To the next message", "Move",
             lambda screen: screen.message(1), footer=11, meaning="right"),
    _command("previous-message", ("left", "h"), "previous message",
             "To the start of this message, then to the one before", "Move",
             lambda screen: screen.message(-1), meaning="left"),
    _command("next-turn", ("]", "shift+right"), "next turn", "To the next turn", "Move",
             lambda screen: screen.turn(1), footer=12, meaning="next-section"),
    _command("previous-turn", ("[", "shift+left"), "previous turn",
             "To the start of this turn, then to the one before", "Move",
             lambda screen: screen.turn(-1), meaning="previous-section"),
    _command("faster", ("+",), "faster", "Play faster: up to 60 times as fast", "Move",
             lambda screen: screen.change_speed(1), footer=13, also="speed"),
    _command("slower", ("-",), "slower", "Play slower: down to the session's own pace", "Move",
             lambda screen: screen.change_speed(-1), also="speed"),
    _command("waits", ("w",), "waits", "Skip waits: shorten pauses of more than two seconds",
             "Move", lambda screen: screen.toggle_waits(), footer=14,
             also="pauses gaps idle skip"),
    _command("start", ("home", "g"), "start", "To the start of the session", "Move",
             lambda screen: screen.to_start(), meaning="top"),
    _command("end", ("end", "G"), "end",
             "To the end of the session; one that runs is followed from there", "Move",
             lambda screen: screen.to_end(), meaning="end"),
    _command("tenth", tuple("0123456789"), "tenth",
             "To a tenth of the session: 0 its start, 5 its half", "Move",
             lambda screen: screen.to_tenth()),
    _command("down", ("j", "down"), "down", "One line down", "Move",
             lambda screen: screen.lines(1)),
    _command("up", ("k", "up"), "up", "One line up; what comes is not followed then", "Move",
             lambda screen: screen.lines(-1)),
    _command("page-down", ("pagedown",), "page down", "One page down", "Move",
             lambda screen: screen.pages(1)),
    _command("page-up", ("pageup", "shift+space"), "page up", "One page up", "Move",
             lambda screen: screen.pages(-1)),
    _command("next-part", (".",), "next part", "Select the next part", "Move",
             lambda screen: screen.navigator.part(1)),
    _command("previous-part", (",",), "previous part", "Select the previous part", "Move",
             lambda screen: screen.navigator.part(-1)),
    _command("open", ("enter",), "open here",
             "Leave the replay, and show this part in the transcript", "Read",
             lambda screen: screen.open_here(), footer=20),
    _command("copy", ("y",), "copy", "Copy the selected text or the part, as it was then", "Copy",
             lambda screen: screen.copying.copy()),
    _command("fold", ("o",), "fold", "Fold or unfold the part", "Read",
             lambda screen: screen.fold()),
    _command("tools", ("t",), "tools", "Show all tool outputs short, in full, or closed", "Read",
             lambda screen: screen.folds.cycle_tools()),
    _command("reasoning", ("i",), "reasoning", "Fold or unfold all reasoning", "Read",
             lambda screen: screen.folds.toggle_reasoning()),
    _command("hidden", ("H",), "hidden", "Show or hide what rewinds had hidden by then", "Read",
             lambda screen: screen.folds.toggle_hidden()),
    _always("inspector", ("tab",), "inspector",
            "Focus the inspector, or the transcript again", "Screen",
            lambda screen: screen.turn_inspector(), footer=25, meaning="next-pane"),
    *screen_commands(_always, "the replay", ">", back=lambda screen: screen.go_back()),
)
