"""Keeps what belongs to a store on a server: statistics on this machine, indexes on the server."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from store.config import quick_config
from store.engine.opening import open_target
from store.engine.server.searched import make_indexes
from store.engine.server_url import ServerTrouble, ServerUrl
from store.errors import BackscrollError
from store.events.trimming import Bounds, bounds_of, trim_if_due
from store.stats import __main__ as statistics
from store.stats.tables import STATISTICS
from store.system.stopping import Stop

if TYPE_CHECKING:
    from store.search.index.__main__ import Teller

POLL_S = 1.0
"""Seconds between looks at the server; a screen counts what changed since itself."""
RESTS, PAUSES = 20, 2
"""A count rests so many times as long as it took, and a step of the first count of all sessions:
sessions that are recorded change all the time, and who reads the store needs the server more. Its
process of the server has the priority of theirs."""
TRIM_EVERY_S = 600.0
"""Seconds between two looks whether old events are due to be cut."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Between two tries to reach it; each is twice the one before."""


def keep_server(url: ServerUrl, stop: Stop, teller: Teller, *, once: bool) -> int:
    """Keep what belongs to a store on a server until told to stop; return the exit code.

    Args:
        url: The store.
        stop: Ends the work.
        teller: Prints events.
        once: Whether to end when everything is counted.
    """
    try:
        store = _place(url, stop, once=once)
        if store is None:
            return 0
        with STATISTICS.lock(STATISTICS.path(store), stop, teller.standby) as held:
            if not held:
                return 0
            # The server ends what it has begun, even where this process ends before.
            indexing = threading.Thread(target=_make_indexes, args=(url,), daemon=True)
            indexing.start()
            trimming = threading.Thread(
                target=_trim_daily, args=(url, stop, teller, once), daemon=True)
            trimming.start()
            statistics.keeper(
                store, stop, teller.trouble, once=once, poll_s=POLL_S, rests=RESTS,
                pauses=PAUSES).run()
            if once:
                indexing.join()
                trimming.join()
    except BackscrollError as error:
        teller.trouble(str(error))
        return 1
    return 0


def _place(url: ServerUrl, stop: Stop, *, once: bool) -> Path | None:
    """Return the place on this machine of what belongs to a store; None if stopped before.

    Raises:
        ServerTrouble: The server cannot be reached, and ``once`` is True.
    """
    pause = FIRST_PAUSE_S
    while not stop.is_set():
        try:
            database = open_target(url.dsn)
        except ServerTrouble:
            if once:
                raise
            stop.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
        else:
            database.close()
            return database.path
    return None


def _trim_daily(url: ServerUrl, stop: Stop, teller: Teller, once: bool) -> None:
    """Cut old events once a day, where the config wants that and this role may."""
    config = quick_config()
    bounds = bounds_of(config.events)
    while bounds != Bounds() and not config.read_only and not stop.is_set():
        try:
            with contextlib.closing(open_target(url.dsn, write=True)) as database:
                if database.read_only is None:
                    trim_if_due(database, bounds)
        except (BackscrollError, sqlite3.Error) as error:
            teller.trouble(f"old events cannot be cut: {error}")
        if once:
            return
        stop.wait(TRIM_EVERY_S)


def _make_indexes(url: ServerUrl) -> None:
    """Make the indexes that searches use, where this role may."""
    # Without them a search takes longer, and says so; the next process tries again.
    with contextlib.suppress(BackscrollError, sqlite3.Error), contextlib.closing(
        open_target(url.dsn, write=True)
    ) as database:
        if database.form.name == "own" and database.read_only is None:
            make_indexes(database.remote)
