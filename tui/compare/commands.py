"""Commands of the screen that compares two branches."""

from __future__ import annotations

from typing import Any

from tui.keys.declaration import Availability, Command, always


def _has_turns(screen: Any) -> str | None:
    return None if screen.pairs else "The branches do not differ"


def _command(
    verb: str, keys: tuple[str, ...], label: str, help: str, group: str,
    footer: int | None = None, available: Availability = always,
) -> Command:
    return Command(f"compare.{verb}", keys, label, help, "compare", available, footer, group)


COMPARE_COMMANDS: tuple[Command, ...] = (
    _command("down", ("j", "down"), "down", "Next line", "Move"),
    _command("up", ("k", "up"), "up", "Previous line", "Move"),
    _command("page-down", ("pagedown", "ctrl+d", "ctrl+f", "space"), "page down", "One page down",
             "Move"),
    _command("page-up", ("pageup", "ctrl+u", "ctrl+b"), "page up", "One page up", "Move"),
    _command("top", ("g", "home"), "top", "The first line", "Move"),
    _command("end", ("G", "end"), "end", "The last line", "Move"),
    _command("next-turn", ("]", "ctrl+down", "n"), "next turn", "Next turn", "Move", 30,
             _has_turns),
    _command("previous-turn", ("[", "ctrl+up", "N"), "previous turn",
             "Start of this turn, then the one before", "Move", None, _has_turns),
    _command("left", ("left", "h"), "left", "Choose the left branch", "Move"),
    _command("right", ("right", "l"), "right", "Choose the right branch", "Move"),
    _command("open", ("enter",), "open", "Open the turn in the chosen branch", "Branches", 10,
             _has_turns),
    _command("side", ("tab",), "side", "Choose the other side", "Branches", 20),
    _command("fold", ("o",), "whole", "Show all turns whole, or short again", "Branches", 40,
             _has_turns),
    _command("other", ("D",), "other", "Choose another branch for the right side", "Branches", 50),
    _command("swap", ("x",), "swap", "Change left and right", "Branches"),
    _command("help", ("?", "f1"), "keys", "Show all keys of the comparison", "General", 99),
    _command("close", ("escape", "q"), "close", "Back to where it was opened", "General", 15),
)
