"""``python -m store.search.index STORE``: builds the store's search index, and follows changes.

With ``--json`` it prints an object per line, each with an ``event``: ``progress`` (``messages``
in the index, ``total``, ``whole``), ``standby`` while another process keeps the index, and
``trouble`` (``message``) when it has to wait.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from store.engine.transactions import explained, is_busy, primary_code
from store.errors import BackscrollError, StoreError
from store.search.index import sidecar
from store.search.index.building import Indexer
from store.search.index.checking import check
from store.search.index.locking import index_lock
from store.system.stopping import Stop, stop_with_parent
from store.system.streams import guard_streams

POLL_S = 0.2
"""Seconds between looks at the store."""
TROUBLE_S = 2.0
"""Seconds before what failed is tried again."""
REPORT_S = 0.5
CHECKED_EVERY_S = 5.0
"""Seconds between looks whether the index file can still be opened, as searches open it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep an index up to date until told to stop; return the exit code."""
    guard_streams()
    options = _parser().parse_args(arguments)
    if options.check:
        return _check(options.store)
    if options.nice and hasattr(os, "nice"):
        os.nice(options.nice)
    # Lists of numbers are made by the million here, and no cycles.
    gc.disable()
    stop = Stop()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
    if options.until_stdin_closes:
        threading.Thread(target=stop_with_parent, args=(stop,), daemon=True).start()
    teller = _Teller(options.json)
    try:
        with index_lock(sidecar.index_path(options.store), stop, teller.standby) as held:
            if held:
                _Keeper(options.store, stop, teller, once=options.once).run()
    except BackscrollError as error:
        teller.trouble(str(error))
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m store.search.index", description=__doc__)
    parser.add_argument("store", type=Path, help="the store's file")
    parser.add_argument("--json", action="store_true", help="print progress as JSON lines")
    parser.add_argument("--once", action="store_true", help="end when everything is indexed")
    parser.add_argument("--check", action="store_true", help="compare the index with the store")
    parser.add_argument("--nice", type=int, default=0, help="add this to the process's nice value")
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end when standard input closes"
    )
    return parser


def _check(store: Path) -> int:
    try:
        differences = check(store)
    except BackscrollError as error:
        differences = [str(error)]
    for line in differences:
        print(line)
    return 1 if differences else 0


class _Keeper:
    """Runs an indexer, and makes a new one when its files are gone or damaged."""

    def __init__(self, store: Path, stop: Stop, teller: _Teller, *, once: bool) -> None:
        self._store, self._stop, self._teller, self._once = store, stop, teller, once
        self._indexer: Indexer | None = None
        self._checked_s = time.monotonic()

    def run(self) -> None:
        """Work until stopped; with ``once``, until everything is indexed or trouble came."""
        try:
            while not self._stop.is_set():
                pause = self._work()
                if pause is None:
                    return
                if pause:
                    self._stop.wait(pause)
        finally:
            self._drop()

    def _work(self) -> float | None:
        """Take one step; return for how long to rest, or None to end."""
        try:
            if self._indexer is None:
                self._indexer = Indexer(self._store, stopped=self._stop.is_set)
            self._check()
            self._indexer.look()
            more = self._indexer.step()
            done = not more and self._indexer.idle
            self._teller.progress(self._indexer, always=done)
            if self._once and done:
                return None
            return 0.0 if more else POLL_S
        except FileNotFoundError:
            self._drop()  # The index file was deleted: make it again.
            return POLL_S
        except sqlite3.Error as error:
            return self._after(error)
        except StoreError as error:
            self._drop()
            if self._once:
                raise
            self._teller.trouble(str(error))
            return TROUBLE_S

    def _check(self) -> None:
        """Look now and then whether the file can be opened; open files hide some damage.

        Raises:
            sqlite3.Error: It cannot be opened now, or is damaged.
            FileNotFoundError: It was no index any more, and was removed.
        """
        if time.monotonic() - self._checked_s < CHECKED_EVERY_S:
            return
        self._checked_s = time.monotonic()
        path = sidecar.index_path(self._store)
        index = sidecar.open_existing(path)
        if index is None or not sidecar.has_tables(index):
            sidecar.remove_files(path)
            raise FileNotFoundError(path)
        index.close()

    def _after(self, error: sqlite3.Error) -> float:
        """Handle an error of SQLite; return for how long to rest."""
        if is_busy(error):
            return POLL_S
        path = sidecar.index_path(self._store)
        if sidecar.is_damage(error) and _is_damaged(path):
            self._drop()
            sidecar.remove_files(path)
            return POLL_S
        full = primary_code(error) == sqlite3.SQLITE_FULL
        if self._once:
            raise explained(error, path if full else self._store) from error
        if not full:
            self._drop()
        self._teller.trouble(str(explained(error, path if full else self._store)))
        return TROUBLE_S

    def _drop(self) -> None:
        if self._indexer is not None:
            self._indexer.close()
            self._indexer = None


def _is_damaged(path: Path) -> bool:
    """Return whether it is the index file, not the store, that cannot be read."""
    try:
        index = sidecar.open_existing(path)
        if index is None:
            return True
        try:
            ok = index.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
            return not ok or not sidecar.has_tables(index)
        finally:
            index.close()
    except sqlite3.DatabaseError as error:
        return sidecar.is_damage(error)


class _Teller:
    """Prints events, for programs or for people."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._reported_s = -REPORT_S
        self._last: dict[str, object] = {}

    def progress(self, indexer: Indexer, *, always: bool) -> None:
        """Print how far the index is, now and then."""
        now = time.monotonic()
        if not self._as_json or (not always and now - self._reported_s < REPORT_S):
            return
        if always and indexer.unchanged_since_progress:
            return
        self._reported_s = now
        done = indexer.progress()
        self._print({"event": "progress", "messages": done.messages, "total": done.total,
                     "whole": done.whole})  # fmt: skip

    def standby(self) -> None:
        """Print that another process keeps the index."""
        self._print({"event": "standby"})

    def trouble(self, message: str) -> None:
        """Print why the indexer waits."""
        self._print({"event": "trouble", "message": message})

    def _print(self, event: dict[str, object]) -> None:
        if event == self._last:
            return
        self._last = event
        try:
            if self._as_json:
                sys.stdout.write(json.dumps(event) + "\n")
                sys.stdout.flush()
            elif event["event"] == "trouble":
                print(event["message"], file=sys.stderr, flush=True)
            elif event["event"] == "standby":
                print("another process keeps this index; waiting for it to end", flush=True)
        except BrokenPipeError:
            os._exit(1)  # The reader is gone. Committed blocks are kept.


if __name__ == "__main__":
    sys.exit(main())
