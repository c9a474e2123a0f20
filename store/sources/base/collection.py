"""Pauses the cyclic garbage collector while drafts are made, or lets it run seldom.

Rows and drafts hold no cycles, yet every few hundred of them start a collection that
walks all that exist: a third of the time of a read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_ALLOCATIONS = 50_000
"""Objects made, beyond those freed, before the collector looks at them: some megabytes."""


@contextmanager
def paused_collection() -> Iterator[None]:
    """Pause the collector, where it runs, until the block ends."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def rare_collection() -> None:
    """Let the collector run seldom, and not look at what is there now: modules, mostly.

    For a process that reads and writes sessions and does nothing else: 7 % of its time.
    """
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
