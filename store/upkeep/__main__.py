"""``python -m store.upkeep STORE``: keeps the search index and the statistics of a store.

It also makes the nightly backup of a library and cuts old events of its log, where the config
wants that. Of a store on a server, it keeps the statistics that lie on this machine, and makes
the server's indexes for searches where they are missing; ``--url-from-stdin`` reads its URL as
JSON from the first line of standard input.

With ``--json`` it prints an object per line, each with an ``event``: ``progress`` (``messages``
in the index, ``total``, ``whole``), ``standby`` while another process keeps a file, and
``trouble`` (``message``) when it has to wait.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from store.config import quick_config
from store.engine.database import open_database
from store.engine.server_url import server_url
from store.engine.sidecars import Sidecar
from store.errors import BackscrollError
from store.events.log import log_state
from store.events.trimming import Bounds, bounds_of, is_due, trim_if_due
from store.search.index import __main__ as index
from store.search.index.sidecar import INDEX
from store.stats import __main__ as statistics
from store.stats.tables import STATISTICS
from store.system.clock import system_clock
from store.system.locations import library_path
from store.system.paths import expanded, real_path
from store.system.stopping import Stop, stop_on_signals, stop_with_parent
from store.system.streams import guard_streams
from store.upkeep.backup import nightly
from store.upkeep.on_server import keep_server

DAILY_EVERY_S = 600.0
"""Seconds between two looks whether something is due."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep the files up to date until told to stop; return the exit code."""
    guard_streams()
    options = _options(arguments)
    if options.nice and hasattr(os, "nice"):
        os.nice(options.nice)
    stop = Stop()
    stop_on_signals(stop)
    url = server_url(json.loads(sys.stdin.readline() or '""')) if options.url_from_stdin else None
    if options.until_stdin_closes:
        threading.Thread(target=stop_with_parent, args=(stop,), daemon=True).start()
    teller = index.Teller(options.json)
    if options.url_from_stdin:
        return 1 if url is None else keep_server(url, stop, teller, once=options.once)
    # Lists of numbers are made by the million here, and no cycles.
    gc.disable()
    failed: list[str] = []

    def keep(sidecar: Sidecar, run: Callable[[], None]) -> None:
        try:
            with sidecar.lock(sidecar.path(options.store), stop, teller.standby) as held:
                if held:
                    run()
        except BackscrollError as error:
            failed.append(str(error))
            teller.trouble(str(error))
        except BaseException:
            # Whoever started this process starts it again.
            failed.append("")
            stop.set()
            raise
        finally:
            if failed and not options.once:
                stop.set()

    backups = threading.Thread(target=_do_daily, args=(options, stop, teller))
    backups.start()
    other = threading.Thread(target=keep, args=(STATISTICS, statistics.keeper(
        options.store, stop, teller.trouble, once=options.once).run))
    other.start()
    keep(INDEX, index.keeper(options.store, stop, teller, once=options.once).run)
    other.join()
    if not options.once:
        stop.set()
    backups.join()
    return 1 if failed else 0


def _do_daily(options: argparse.Namespace, stop: Stop, teller: index.Teller) -> None:
    """Do what the config wants each day, until stopped: the backup, and bounds of the event log."""
    config = quick_config()
    own = {real_path(expanded(one)) for one in (config.store, library_path()) if one}
    backup = config.backup if real_path(options.store) in own else None
    bounds = bounds_of(config.events)
    tasks: list[tuple[str, Callable[[], object]]] = []
    if backup is not None and backup.folder is not None:
        tasks.append(("the nightly backup cannot be made", partial(nightly, options.store, backup)))
    if bounds != Bounds() and not config.read_only:
        tasks.append(("old events cannot be cut", partial(_trim, options.store, bounds)))
    while tasks and not stop.is_set():
        for trouble, task in tasks:
            try:
                task()
            except (BackscrollError, OSError, sqlite3.Error) as error:
                teller.trouble(f"{trouble}: {error}")
        if options.once:
            return
        stop.wait(DAILY_EVERY_S)


def _trim(store: Path, bounds: Bounds) -> None:
    """Cut the old events of a store, once a day."""
    with contextlib.closing(open_database(store, write=False)) as database:
        due = is_due(log_state(database), bounds, system_clock())
    if due:
        with contextlib.closing(open_database(store)) as database:
            trim_if_due(database, bounds)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m store.upkeep", description=__doc__)
    parser.add_argument("store", type=Path, nargs="?", help="the store's file")
    parser.add_argument(
        "--url-from-stdin", action="store_true", help="read a server's URL from standard input")
    parser.add_argument("--json", action="store_true", help="print progress as JSON lines")
    parser.add_argument("--once", action="store_true", help="end when both are up to date")
    parser.add_argument("--nice", type=int, default=0, help="add this to the process's nice value")
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end when standard input closes"
    )
    options = parser.parse_args(arguments)
    if options.store is None and not options.url_from_stdin:
        parser.error("the following arguments are required: store")
    return options


if __name__ == "__main__":
    sys.exit(main())
