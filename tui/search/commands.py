"""Commands of the search screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.host import cannot_keep
from tui.keys.declaration import Command, CommandFactory
from tui.keys.lines import screen_commands

if TYPE_CHECKING:
    from tui.search.screen import SearchScreen


def _has_hit(screen: SearchScreen) -> str | None:
    return None if screen.model.results.entry is not None else "There is no hit"


def _can_open(screen: SearchScreen) -> str | None:
    return None if screen.in_facets else _has_hit(screen)


def _has_query(screen: SearchScreen) -> str | None:
    return None if screen.model.has_query else "Type what to search for first"


def _can_save(screen: SearchScreen) -> str | None:
    return _has_query(screen) or cannot_keep(screen)


def _has_filters(screen: SearchScreen) -> str | None:
    return None if screen.model.query.filters else "The search has no filters"


def _has_facets(screen: SearchScreen) -> str | None:
    return None if screen.has_facets else "There is nothing to narrow the search by"


def _has_saved(screen: SearchScreen) -> str | None:
    kept = screen.model.keeper.kept
    return None if kept.saved or kept.recent else "No search was saved or used yet"


_command = CommandFactory["SearchScreen"]("search")

SEARCH_COMMANDS: tuple[Command[SearchScreen], ...] = (
    _command("down", ("j", "down"), "down", "Next hit", "Move", lambda screen: screen.move(1)),
    _command("up", ("k", "up"), "up", "Previous hit", "Move", lambda screen: screen.move(-1)),
    _command("page-down", ("pagedown",), "page down", "One page down", "Move",
             lambda screen: screen.move_page(1)),
    _command("page-up", ("pageup", "shift+space"), "page up", "One page up", "Move",
             lambda screen: screen.move_page(-1)),
    _command("top", ("g", "home"), "first", "First hit", "Move", lambda screen: screen.top()),
    _command("end", ("G", "end"), "last", "Last hit", "Move", lambda screen: screen.end()),
    _command("jump", (";",), "jump", "Jump to a hit or facet on the screen by its letters", "Move",
             lambda screen: screen.jump()),
    _command("next-session", ("]", "ctrl+down"), "next session", "First hit of the next session",
             "Move", lambda screen: screen.move_session(1), available=_has_hit,
             meaning="next-section"),
    _command("previous-session", ("[", "ctrl+up"), "previous session",
             "First hit of this session, then of the previous one", "Move",
             lambda screen: screen.move_session(-1), available=_has_hit,
             meaning="previous-section"),
    _command("left", ("left", "h"), "left", "Go to the facets", "Move",
             lambda screen: screen.sideways(-1)),
    _command("right", ("right", "l"), "right", "Go to the hits", "Move",
             lambda screen: screen.sideways(1)),
    _command("open", ("enter",), "open at the hit",
             "Open the transcript at the hit; in the facets narrow the search", "Read",
             lambda screen: screen.open(), footer=10, available=_can_open),
    _command("next-hit", ("n",), "next hit", "Next hit", "Read",
             lambda screen: screen.step(1), footer=20, available=_has_hit),
    _command("previous-hit", ("N",), "previous hit", "Previous hit", "Read",
             lambda screen: screen.step(-1), available=_has_hit),
    _command("fold", ("o",), "all of a session", "Show all hits of the session, or the first ones",
             "Read", lambda screen: screen.toggle_session(), footer=60, available=_has_hit),
    _command("copy", ("y",), "copy", "Copy the selected text or the line of the hit", "Read",
             lambda screen: screen.copy(), available=_has_hit),
    _command("details", ("d",), "details", "Show timeline, tokens, cost and facts of the session",
             "Read", lambda screen: screen.show_details(), footer=70, available=_has_hit),
    _command("find", ("/",), "edit", "Edit the search", "Find",
             lambda screen: screen.edit(), footer=25),
    _command("search", ("S", "ctrl+f"), "new search", "Type another search", "Find",
             lambda screen: screen.edit(fresh=True)),
    _command("next-pane", ("tab",), "facets", "Go to the hits, the facets, the query", "Find",
             lambda screen: screen.focus_beside(1), footer=30),
    _command("previous-pane", ("shift+tab",), "back", "Go to the facets, the hits, the query",
             "Find", lambda screen: screen.focus_beside(-1)),
    _command("narrow", ("space",), "narrow", "Narrow by the facet; in the hits page down",
             "Find", lambda screen: screen.narrow(), footer=15, available=_has_facets),
    _command("reset", ("backspace",), "all filters off", "Take all filters out of the search",
             "Find", lambda screen: screen.without_filters(), available=_has_filters),
    _command("sort", ("s",), "sort", "Newest hits first, or the best", "Find",
             lambda screen: screen.sort(), footer=40),
    _command("save", ("*",), "save search", "Save the search by a name, or remove a saved one",
             "Find", lambda screen: screen.save(), footer=50, available=_can_save,
             meaning="star"),
    _command("view", ("V",), "saved", "Choose a saved search, or one used before", "Find",
             lambda screen: screen.choose_saved(), footer=55, available=_has_saved),
    *screen_commands(_command, "the search"),
)
