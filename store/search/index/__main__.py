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
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from store.engine.sidecar_keeper import Keeper, print_differences
from store.errors import BackscrollError
from store.search.index.building import Indexer
from store.search.index.checking import check
from store.search.index.sidecar import INDEX
from store.system.stopping import Stop, stop_on_signals, stop_with_parent
from store.system.streams import guard_streams

REPORT_S = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep an index up to date until told to stop; return the exit code."""
    guard_streams()
    options = _parser().parse_args(arguments)
    if options.check:
        return print_differences(check, options.store)
    # Lists of numbers are made by the million here, and no cycles.
    gc.disable()
    stop = Stop()
    stop_on_signals(stop)
    if options.until_stdin_closes:
        threading.Thread(target=stop_with_parent, args=(stop,), daemon=True).start()
    teller = Teller(options.json)
    try:
        with INDEX.lock(INDEX.path(options.store), stop, teller.standby) as held:
            if held:
                keeper(options.store, stop, teller, once=options.once).run()
    except BackscrollError as error:
        teller.trouble(str(error))
        return 1
    return 0


def keeper(store: Path, stop: Stop, teller: Teller, *, once: bool = False) -> Keeper[Indexer]:
    """Return what keeps the index of a store.

    Args:
        store: The store's file.
        stop: Ends the work.
        teller: Prints events.
        once: Whether to end when everything is indexed.
    """
    return Keeper(
        INDEX, store, stop, lambda: Indexer(store, stopped=stop.is_set),
        progress=teller.progress, trouble=teller.trouble, once=once,
    )  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m store.search.index", description=__doc__)
    parser.add_argument("store", type=Path, help="the store's file")
    parser.add_argument("--json", action="store_true", help="print progress as JSON lines")
    parser.add_argument("--once", action="store_true", help="end when everything is indexed")
    parser.add_argument("--check", action="store_true", help="compare the index with the store")
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end when standard input closes"
    )
    return parser


class Teller:
    """Prints events, for programs or for people."""

    def __init__(self, as_json: bool) -> None:
        """Begin with nothing printed.

        Args:
            as_json: Whether to print JSON lines.
        """
        self._as_json = as_json
        self._reported_s = -REPORT_S
        self._last: dict[str, object] = {}

    def progress(self, indexer: Indexer, always: bool) -> None:
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
