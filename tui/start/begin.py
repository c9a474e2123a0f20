"""Begins a run of the browser: the first frame, where it can be what Textual will draw."""

from __future__ import annotations

import os
import sqlite3

from store.system.records import NamedTuple
from store.system.streams import erases_in_colour
from tui.kit.ansi import AnsiPaint, depth_of
from tui.kit.palette import PALETTES, default_theme
from tui.main.first_frame import (
    LEAST_HEIGHT,
    LEAST_WIDTH,
    FirstFrame,
    Screen,
    most_sessions,
    widths_of,
)
from tui.main.outline import BOTTOM, TOP
from tui.sessions.first_page import FirstPage, read_first_page
from tui.start.early import EarlyTerminal, size_of_terminal
from tui.state.library import Library
from tui.state.view_state import ViewState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from store.config import Settings


class Begun(NamedTuple):
    """What is on the screen when Textual is loaded.

    Attributes:
        page: The sessions that are shown.
        terminal: Where they are.
    """

    page: FirstPage
    terminal: EarlyTerminal


def begin(
    library: Library, settings: Settings | None, state: ViewState, terminal: EarlyTerminal
) -> Begun | None:
    """Show the first frame, unless the picture of the last screen is shown.

    Args:
        library: The store.
        settings: The config; None where all is by default.
        state: What was remembered.
        terminal: It may show the picture of the last screen.

    Returns:
        None where nothing is shown: the first picture would be another one, is not known yet,
        or needs what only Textual can draw.
    """
    others = (library.making, library.headline, library.workspace)
    theme = (settings.ui.theme if settings is not None else None) or "auto"
    palette = PALETTES.get(default_theme(theme))
    masked = settings is not None and settings.masks.view
    size = size_of_terminal(os.environ)
    if palette is None or size is None or masked or any(others):
        return None
    width, height = size
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return None
    try:
        page = read_first_page(library, state, seen=most_sessions(state.layout, width, height))
    except sqlite3.Error:
        return None  # Read again, and reported, once there is a screen for it.
    if not page.rows:
        return None
    last = terminal.last
    if last is not None and last.columns != widths_of(state.layout, width)[0]:
        last = None
    held = range(TOP, height - BOTTOM)
    if terminal.is_shown:
        terminal.held = held
    else:
        frame = FirstFrame(
            library.name, library.no_change is not None, page, state.layout, library.clock())
        erases = erases_in_colour(os.environ)
        paint = AnsiPaint(palette, depth_of(os.environ), erases=erases)
        if last is not None:
            terminal.held, terminal.held_from = held, last.columns
        terminal.show(frame.rows(Screen(width, height, paint), last), size)
    return Begun(page, terminal)
