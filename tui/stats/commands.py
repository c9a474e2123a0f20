"""Commands of the statistics screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.host import cannot_save
from tui.keys.declaration import Command, CommandFactory
from tui.keys.lines import line_commands, screen_commands

if TYPE_CHECKING:
    from tui.stats.screen import StatsScreen


def _has_target(screen: StatsScreen) -> str | None:
    return None if screen.target is not None else "No bar or row is selected"


def _has_figures(screen: StatsScreen) -> str | None:
    return None if screen.model.board.whole is not None else "Nothing is counted yet"


def _can_save(screen: StatsScreen) -> str | None:
    return _has_figures(screen) or cannot_save(screen)


def _has_query(screen: StatsScreen) -> str | None:
    return None if screen.model.text else "No query narrows the statistics"


_command = CommandFactory["StatsScreen"]("stats")

STATS_COMMANDS: tuple[Command[StatsScreen], ...] = (
    *line_commands(_command),
    _command("left", ("left", "h"), "left", "Previous bar, or the table at the left", "Move",
             lambda screen: screen.view.move_beside(-1)),
    _command("right", ("right", "l"), "right", "Next bar, or the table at the right", "Move",
             lambda screen: screen.view.move_beside(1)),
    _command("open", ("enter",), "its sessions",
             "Show the sessions of the bar or row in the list, or open the session", "Read",
             lambda screen: screen.open(), footer=10, available=_has_target),
    _command("measure", ("m",), "cost, tokens…", "Show cost, tokens, tool calls or time", "Read",
             lambda screen: screen.model.next_measure(), footer=20),
    _command("group", ("b",), "hour, day…", "Plot by hour, day, week or month", "Read",
             lambda screen: screen.next_bucket(), footer=30, available=_has_figures),
    _command("calendar", ("c",), "calendar", "Show a year as a calendar, or the plot again",
             "Read", lambda screen: screen.toggle_calendar(), footer=35,
             also="year heatmap days"),
    _command("earlier", ("[", "ctrl+left"), "earlier", "Show the same range, earlier", "Read",
             lambda screen: screen.move(-1), footer=40, meaning="previous-section"),
    _command("later", ("]", "ctrl+right"), "later", "Show the same range, later", "Read",
             lambda screen: screen.move(1), footer=41, meaning="next-section"),
    _command("shorter", ("<", "f7"), "shorter", "Show the next shorter range", "Read",
             lambda screen: screen.step_range(-1), meaning="narrower"),
    _command("longer", (">", "f8"), "longer", "Show the next longer range", "Read",
             lambda screen: screen.step_range(1), meaning="wider"),
    _command("range-today", ("1",), "today", "Show today", "Read",
             lambda screen: screen.choose_range("today")),
    _command("range-7d", ("2",), "7 days", "Show the last 7 days", "Read",
             lambda screen: screen.choose_range("7d")),
    _command("range-30d", ("3",), "30 days", "Show the last 30 days", "Read",
             lambda screen: screen.choose_range("30d")),
    _command("range-1y", ("4",), "year", "Show the last year", "Read",
             lambda screen: screen.choose_range("1y")),
    _command("range-all", ("5",), "all", "Show all time", "Read",
             lambda screen: screen.choose_range("all")),
    _command("range-custom", ("6",), "custom", "Show a range that you type", "Read",
             lambda screen: screen.choose_range("custom")),
    _command("filter", ("/",), "narrow", "Narrow the statistics by a query", "Find",
             lambda screen: screen.edit(), footer=15, meaning="find"),
    _command("reset", ("backspace",), "clear query", "Take the query away", "Find",
             lambda screen: screen.clear(), available=_has_query),
    _command("save", ("w",), "save CSV", "Save the figures as CSV", "Copy",
             lambda screen: screen.save(), footer=50, available=_can_save,
             also="export spreadsheet"),
    _command("copy", ("y",), "copy", "Copy the selected text, or what the bar or row comes to",
             "Copy", lambda screen: screen.copy(), available=_has_target),
    *screen_commands(_command, "the statistics", back=lambda screen: screen.step_back()),
)
