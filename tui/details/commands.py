"""Commands of the details of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.keys.declaration import Command, CommandFactory
from tui.keys.lines import line_commands, screen_commands

if TYPE_CHECKING:
    from tui.details.screen import DetailsScreen


def _can_open(screen: DetailsScreen) -> str | None:
    line = screen.view.line
    return None if line.link or line.fold is not None else "Nothing to open on this line"


def _can_fold(screen: DetailsScreen) -> str | None:
    return None if screen.view.line.fold is not None else "Nothing to fold on this line"


def _has_measures(screen: DetailsScreen) -> str | None:
    return None if screen.tab == "Turns" else "Only the Turns tab has a chart"


def _has_list(screen: DetailsScreen) -> str | None:
    if screen.tab not in ("Files", "Commands") or screen.lists.diff is not None:
        return "Only the tabs Files and Commands have a list"
    return None if screen.lists.count(screen.tab) else f"No {screen.tab.lower()} were found"


def _has_edits(screen: DetailsScreen) -> str | None:
    if screen.tab != "Files":
        return "Only the Files tab has edits"
    if screen.lists.diff:
        return "These are the edits; escape goes back to the list"
    return None if screen.has_file else "No file is selected"


def _has_file(screen: DetailsScreen) -> str | None:
    return None if screen.file_row is not None else "No file is selected"


def _can_copy(screen: DetailsScreen) -> str | None:
    return None if screen.text_to_copy() else "There is nothing to copy on this line"


def _can_search(screen: DetailsScreen) -> str | None:
    return None if screen.text_to_copy() else "There is nothing to search for on this line"


_command = CommandFactory["DetailsScreen"]("details")

DETAILS_COMMANDS: tuple[Command[DetailsScreen], ...] = (
    *line_commands(_command),
    _command("open", ("enter",), "open",
             "Go to the turn, call or session of the line, or fold", "Read",
             lambda screen: screen.follow(), footer=10, available=_can_open),
    _command("measure", ("m",), "measure", "Plot the next measure in the chart", "Read",
             lambda screen: screen.next_measure(), footer=20, available=_has_measures),
    _command("next-tab", ("ctrl+right", "]", "tab"), "tabs",
             "Next tab: Turns, Session, Prompt, Tools, Files, Commands", "Move",
             lambda screen: screen.step_tab(1), footer=30, meaning="next-section"),
    _command("previous-tab", ("ctrl+left", "[", "shift+tab"), "previous tab", "Previous tab",
             "Move", lambda screen: screen.step_tab(-1), meaning="previous-section"),
    _command("copy", ("y",), "copy", "Copy the value on the line: path, command, prompt",
             "Copy", lambda screen: screen.copy(), footer=40, available=_can_copy),
    _command("edits", ("D",), "all edits", "Show all edits of the file as one diff", "Read",
             lambda screen: screen.show_edits(), footer=21, available=_has_edits,
             meaning="compare"),
    _command("file", ("-",), "as it was", "Show the file at each point of the session", "Read",
             lambda screen: screen.show_file(), footer=20, available=_has_file, meaning="file"),
    _command("filter", ("/",), "filter", "Filter the files or commands by words", "Find",
             lambda screen: screen.open_filter(), footer=22, available=_has_list, meaning="find"),
    _command("sort", ("s",), "sort", "Sort by the newest touch or by name", "Read",
             lambda screen: screen.next_order(), footer=23, available=_has_list),
    _command("fold", ("o",), "fold", "Fold or unfold", "Read",
             lambda screen: screen.fold(), footer=50, available=_can_fold),
    _command("search-for", ("=",), "search this",
             "Search all sessions for the selected text, or what is on the line", "Find",
             lambda screen: screen.search_everywhere(), available=_can_search),
    *screen_commands(_command, "the details", "d", back=lambda screen: screen.step_back()),
)
