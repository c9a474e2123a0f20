"""``python -m store.stats STORE``: counts a store's statistics, and follows changes.

``--check`` compares them with a full count and prints what differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from store.engine.sidecar_keeper import POLL_S, Keeper, print_differences
from store.errors import BackscrollError
from store.stats.checking import check
from store.stats.keeping import Counter
from store.stats.tables import STATISTICS
from store.system.stopping import Stop, stop_on_signals
from store.system.streams import guard_streams


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep statistics up to date until told to stop; return the exit code."""
    guard_streams()
    options = _parser().parse_args(arguments)
    if options.check:
        return print_differences(check, options.store)
    stop = Stop()
    stop_on_signals(stop)

    def standing_by() -> None:
        pass

    try:
        with STATISTICS.lock(STATISTICS.path(options.store), stop, standing_by) as held:
            if held:
                keeper(options.store, stop, _say, once=options.once).run()
    except BackscrollError as error:
        _say(str(error))
        return 1
    return 0


def keeper(
    store: Path, stop: Stop, trouble: Callable[[str], None], *, once: bool = False,
    poll_s: float = POLL_S, rests: int = 0, pauses: int = 0,
) -> Keeper[Counter]:
    """Return what keeps the statistics of a store.

    Args:
        store: The store's file.
        stop: Ends the work.
        trouble: Takes the reason when the work has to wait.
        once: Whether to end when everything is counted.
        poll_s: Seconds between looks at the store.
        rests: How long it rests after a count, in times of what that took.
        pauses: The same between two steps of a long count.
    """
    return Keeper(
        STATISTICS, store, stop, lambda: Counter(store, stopped=stop.is_set),
        progress=lambda _, done: None, trouble=trouble, once=once,
        poll_s=poll_s, rests=rests, pauses=pauses,
    )  # fmt: skip


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m store.stats", description=__doc__)
    parser.add_argument("store", type=Path, help="the store's file")
    parser.add_argument("--once", action="store_true", help="end when everything is counted")
    parser.add_argument("--check", action="store_true", help="compare with a full count")
    return parser


if __name__ == "__main__":
    sys.exit(main())
