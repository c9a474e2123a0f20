"""Pauses the cyclic garbage collector while drafts are made, or lets it run seldom.

Rows, drafts and values of JSON hold no cycles, yet every few hundred of them start a collection
that walks all that exist: a third of the time of a read. A walk over very many is one long step,
in which no other thread runs.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ALLOCATIONS = 50_000
"""Objects made, beyond those freed, before the collector looks at them: some megabytes."""
_COUNTING = threading.Lock()
_pauses = 0


@contextmanager
def paused_collection(*, aging: bool = False) -> Iterator[None]:
    """Pause the collector, where it runs, until the block ends in the last thread that has one.

    Args:
        aging: Count all new objects as old ones afterwards, which are walked over the least
            often; but for a process that has frozen some, as it would get those back.
    """
    global _pauses
    with _COUNTING:
        pauses = _pauses > 0 or gc.isenabled()
        if pauses:
            _pauses += 1
            gc.disable()
    try:
        yield
    finally:
        if pauses:
            with _COUNTING:
                _pauses -= 1
                if not _pauses:
                    if aging and not gc.get_freeze_count():
                        # Both only join lists; none of the objects is looked at.
                        gc.freeze()
                        gc.unfreeze()
                    gc.enable()


def rare_collection() -> None:
    """Let the collector run seldom, and not look at what is there now: modules, mostly.

    For a process that reads and writes sessions and does nothing else: 7 % of its time.
    """
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
