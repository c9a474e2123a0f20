"""Commands of the screen that compares two branches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tui.keys.declaration import Command, always

if TYPE_CHECKING:
    from tui.compare.screen import CompareScreen


def _has_turns(screen: CompareScreen) -> str | None:
    return None if screen.pairs else "The branches do not differ"


def _command(
    verb: str, keys: tuple[str, ...], label: str, help: str, group: str,
    footer: int | None = None, available: Callable[[CompareScreen], str | None] = always,
    run: Callable[[CompareScreen], Awaitable[object] | None] | None = None,
) -> Command[CompareScreen]:
    return Command(f"compare.{verb}", keys, label, help, "compare", available, footer, group, run)


COMPARE_COMMANDS: tuple[Command[CompareScreen], ...] = (
    _command("down", ("j", "down"), "down", "Next line", "Move"),
    _command("up", ("k", "up"), "up", "Previous line", "Move"),
    _command("page-down", ("pagedown", "ctrl+d", "ctrl+f", "space"), "page down", "One page down",
             "Move"),
    _command("page-up", ("pageup", "ctrl+u", "ctrl+b"), "page up", "One page up", "Move"),
    _command("top", ("g", "home"), "top", "First line", "Move"),
    _command("end", ("G", "end"), "end", "Last line", "Move"),
    _command("next-turn", ("]", "ctrl+down", "n"), "next turn", "Next turn", "Move", 30,
             _has_turns),
    _command("previous-turn", ("[", "ctrl+up", "N"), "previous turn",
             "Start of this turn, then the previous turn", "Move", None, _has_turns),
    _command("left", ("left", "h"), "left", "Select the left branch", "Move"),
    _command("right", ("right", "l"), "right", "Select the right branch", "Move"),
    _command("open", ("enter",), "open", "Open the turn in the selected branch", "Branches", 10,
             _has_turns),
    _command("side", ("tab",), "side", "Select the other branch", "Branches", 20),
    _command("fold", ("o",), "whole", "Show all turns in full, or short again", "Branches", 40,
             _has_turns),
    _command("other", ("D",), "other", "Choose another branch for the right side", "Branches", 50),
    _command("swap", ("x",), "swap", "Swap left and right", "Branches"),
    _command("help", ("?", "f1"), "keys", "Show the keys of the comparison", "General", 99),
    _command("close", ("escape", "q"), "close", "Close the comparison", "General", 15),
)
