"""``python -m store.upkeep STORE``: keeps the search index and the statistics of a store.

It also makes the nightly backup of a library, where the config wants one.

With ``--json`` it prints an object per line, each with an ``event``: ``progress`` (``messages``
in the index, ``total``, ``whole``), ``standby`` while another process keeps a file, and
``trouble`` (``message``) when it has to wait.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from store.config import quick_config
from store.engine.sidecars import Sidecar
from store.errors import BackscrollError
from store.search.index import __main__ as index
from store.search.index.sidecar import INDEX
from store.stats import __main__ as statistics
from store.stats.tables import STATISTICS
from store.system.locations import library_path
from store.system.paths import expanded, real_path
from store.system.stopping import Stop, stop_on_signals, stop_with_parent
from store.system.streams import guard_streams
from store.upkeep.backup import nightly

BACKUP_EVERY_S = 600.0
"""Seconds between two looks whether a backup is due."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep the files up to date until told to stop; return the exit code."""
    guard_streams()
    options = _parser().parse_args(arguments)
    if options.nice and hasattr(os, "nice"):
        os.nice(options.nice)
    # Lists of numbers are made by the million here, and no cycles.
    gc.disable()
    stop = Stop()
    stop_on_signals(stop)
    if options.until_stdin_closes:
        threading.Thread(target=stop_with_parent, args=(stop,), daemon=True).start()
    teller = index.Teller(options.json)
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

    backups = threading.Thread(target=_keep_backups, args=(options, stop, teller))
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


def _keep_backups(options: argparse.Namespace, stop: Stop, teller: index.Teller) -> None:
    """Make a backup of the user's library each night, until stopped."""
    config = quick_config()
    settings = config.backup
    own = {real_path(expanded(one)) for one in (config.store, library_path()) if one}
    if settings.folder is None or real_path(options.store) not in own:
        return
    while not stop.is_set():
        try:
            nightly(options.store, settings)
        except (BackscrollError, OSError) as error:
            teller.trouble(f"the nightly backup cannot be made: {error}")
        if options.once:
            return
        stop.wait(BACKUP_EVERY_S)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m store.upkeep", description=__doc__)
    parser.add_argument("store", type=Path, help="the store's file")
    parser.add_argument("--json", action="store_true", help="print progress as JSON lines")
    parser.add_argument("--once", action="store_true", help="end when both are up to date")
    parser.add_argument("--nice", type=int, default=0, help="add this to the process's nice value")
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end when standard input closes"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
