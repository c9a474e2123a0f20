"""Draws the main screen as the next start will, and keeps its picture once the browser ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from store.activity.states import OPEN_STATES
from store.engine.changes import newest
from store.engine.database import open_database
from store.queries.list_options import SORTS
from tui.kit.masked import is_view_masked
from tui.main.bars import TopLine
from tui.main.first_frame import widths_of
from tui.main.outline import BOTTOM, TOP
from tui.state.last_screen import Drawn, drop_screen, keep_screen, setting_of
from tui.words.sessions import age_until

if TYPE_CHECKING:
    from textual.screen import Screen

    from store.queries.listing import ListRow
    from tui.host import Host
    from tui.live.watcher import StoreWatcher
    from tui.main.opener import SessionOpener
    from tui.main.panes import Panes
    from tui.sessions.pane import SessionsPane
    from tui.state.library import Library
    from tui.state.view_state import ViewState
    from tui.terminal.driver import TerminalDriver

DRAWN_WITHIN_S = 0.3
"""The end of the browser waits so long for the picture."""


class LastPicture(NamedTuple):
    """A picture, and what the store was when it was drawn.

    Attributes:
        store: Path of the store's file.
        newest: The newest entry in the log of its changes.
        drawn: The picture.
    """

    store: str
    newest: int
    drawn: Drawn

    def keep(self) -> None:
        """Keep the picture, unless the store has moved since; call it once that is closed.

        Raises:
            OSError: It cannot be kept.
            StoreError: The store cannot be read.
        """
        size = os.get_terminal_size(2)
        before = setting_of(self.store, size, os.environ)
        database = open_database(Path(self.store), write=False)
        try:
            same = newest(database) == self.newest
        finally:
            database.close()
        setting = setting_of(self.store, size, os.environ)
        if same and setting is not None and setting == before:
            keep_screen(self.store, setting, self.drawn)
            if setting_of(self.store, size, os.environ) != setting:
                # A ``forget`` that deleted the pictures before this one was there.
                drop_screen(self.store)


class Parts(NamedTuple):
    """The main screen, as far as its picture depends on it."""

    screen: Screen[None]
    host: Host
    library: Library
    state: ViewState
    panes: Panes
    sessions: SessionsPane
    opener: SessionOpener
    watcher: StoreWatcher


async def last_picture(main: Parts, terminal: TerminalDriver) -> LastPicture | None:
    """Return the picture of the main screen as the next start will draw it.

    From now on the terminal shows nothing that is drawn.

    Args:
        main: The screen, in front of all others.
        terminal: Where it is drawn.

    Returns:
        None where the next start would draw something else, or where what is shown may be
        another thing by then whatever is written.
    """
    library = main.library
    if not _is_kept(main):
        return None
    terminal.hold()
    await _as_at_the_start(main)
    cells, (width, height) = terminal.cells, main.screen.app.size
    number = newest(library.database)
    if (cells.width, cells.height) != (width, height) or not main.watcher.shows_all():
        return None
    columns = widths_of(main.state.layout, width)[0]
    rows, beside = [], []
    for y in range(height):
        end = columns if TOP <= y < height - BOTTOM else width
        rows.append(cells.pieces(y, 0, end))
        right = cells.pieces(y, end, width)
        beside.append([(end, *piece[1:]) if at == 0 else piece for at, piece in enumerate(right)])
    now = library.clock()
    date = SORTS[main.sessions.view.list_query.sort].date
    ages = [age_until(getattr(row, date), now) for row in _seen(main)]
    drawn = Drawn(columns, rows, beside, min(ages, default=now) // 1000, _midnight())
    return LastPicture(str(library.path), number, drawn)


def _is_kept(main: Parts) -> bool:
    """Return whether the picture would be right at the next start."""
    library, sessions = main.library, main.sessions
    own = library.database.form.name == "own" and library.limits.read_only is None
    elsewhere = library.is_copy or library.headline or library.workspace or library.making
    narrowed = sessions.filter_open or sessions.filter.text or sessions.way_back is not None
    if not own or elsewhere or narrowed or sessions.view.marked or is_view_masked():
        return False
    if sessions.selected_id is None:
        return False
    if main.panes.arrangement.shows("transcript") and not main.opener.has_opened(
            sessions.selected_id):
        return False
    summary = main.screen.query_one(TopLine).summary
    busy = summary.running or summary.waiting or summary.trouble or summary.sessions is None
    return not busy and not any(row.activity in OPEN_STATES for row in _seen(main))


def _seen(main: Parts) -> list[ListRow]:
    view = main.sessions.view
    return [view.rows[rowid] for rowid in view.seen_rowids() if rowid in view.rows]


async def _as_at_the_start(main: Parts) -> None:
    """Have the screen drawn as after a start: the list has the focus, and nothing lies above."""
    main.host.close_toasts()
    main.panes.focus("sessions")
    main.sessions.view.scroll_as_at_start()
    line = main.screen.query_one(TopLine)
    line.summary = line.summary._replace(freshness="")
    # The first has what was asked for drawn, the second what that has moved.
    for _ in range(2):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(main.screen.wait_for_refresh(), DRAWN_WITHIN_S / 2)


def _midnight() -> int:
    """Return the end of the local day, in epoch seconds."""
    tomorrow = (datetime.now() + timedelta(days=1)).replace(hour=0, minute=0, second=0)
    return int(tomorrow.timestamp())
