"""The lock that lets one process keep an index. Without it two would do the same work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from store.search.index.sidecar import unusable
from store.system.locations import PRIVATE_FILE, private_folder
from store.system.stopping import Stop

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock
    fcntl = None  # type: ignore[assignment]

SUFFIX = "-lock"
_EVERY_S = 0.5


@contextlib.contextmanager
def index_lock(path: Path, stop: Stop, standing_by: Callable[[], None]) -> Iterator[bool]:
    """Hold the lock of an index; yields False if stopped before acquiring it.

    Args:
        path: The index file; the lock file is beside it and is not deleted.
        stop: Ends the waiting.
        standing_by: Called while another process holds the lock.

    Raises:
        IndexUnusable: The lock file cannot be created.
    """
    if fcntl is None:
        yield True
        return
    try:
        private_folder(path.parent)
        lock = os.open(path.with_name(path.name + SUFFIX), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    except OSError as error:
        raise unusable(path, error) from error
    try:
        yield _acquired(lock, stop, standing_by)
    finally:
        os.close(lock)


def _acquired(lock: int, stop: Stop, standing_by: Callable[[], None]) -> bool:
    while not stop.is_set():
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            standing_by()
            stop.wait(_EVERY_S)
        except OSError:
            # Some network file systems have no locks; two indexers are safe.
            return True
    return False
