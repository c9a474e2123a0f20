"""Commands of the screen that compares two branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.keys.declaration import Command, CommandFactory
from tui.keys.lines import line_commands, screen_commands

if TYPE_CHECKING:
    from tui.compare.screen import CompareScreen


def _has_turns(screen: CompareScreen) -> str | None:
    return None if screen.pairs else "The branches do not differ"


_command = CommandFactory["CompareScreen"]("compare")

COMPARE_COMMANDS: tuple[Command[CompareScreen], ...] = (
    *line_commands(_command),
    _command("next-turn", ("]", "ctrl+down"), "next turn", "Next turn", "Move",
             lambda screen: screen.go_to_next_turn(), footer=30, available=_has_turns,
             meaning="next-section"),
    _command("previous-turn", ("[", "ctrl+up"), "previous turn",
             "Start of this turn, then the previous turn", "Move",
             lambda screen: screen.go_to_previous_turn(), available=_has_turns,
             meaning="previous-section"),
    _command("left", ("left", "h"), "left", "Select the left branch", "Move",
             lambda screen: screen.choose(0)),
    _command("right", ("right", "l"), "right", "Select the right branch", "Move",
             lambda screen: screen.choose(1)),
    _command("open", ("enter",), "open", "Open the turn in the selected branch", "Read",
             lambda screen: screen.open_turn(), footer=10, available=_has_turns),
    _command("side", ("tab",), "side", "Select the other branch", "Read",
             lambda screen: screen.choose(1 - screen.side), footer=20, meaning="next-pane"),
    _command("fold", ("O",), "whole", "Show all turns in full, or short again", "Read",
             lambda screen: screen.toggle_whole(), footer=40, available=_has_turns,
             meaning="fold-all"),
    _command("other", ("D",), "other", "Choose another branch for the right side", "Read",
             lambda screen: screen.choose_other(), footer=50, meaning="compare"),
    _command("swap", ("X",), "swap", "Swap left and right", "Read",
             lambda screen: screen.swap()),
    *screen_commands(_command, "the comparison"),
)
