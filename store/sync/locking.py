"""One sync of a store at a time, and transactions that wait for other writers.

The lock file only saves work: what two syncs write at once comes out right without it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from store.engine import transactions
from store.errors import StoreError
from store.sync.stopping import Stop

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock
    fcntl = None  # type: ignore[assignment]

LOCK_PATIENCE_S = 60.0
"""How long a writer of another program may hold the store before sync gives up."""
POLL_S = 0.1


@contextlib.contextmanager
def alone(store: Path, stopped: Callable[[], bool], waiting: Callable[[], None]) -> Iterator[bool]:
    """Hold the store's sync lock; gives False when it was stopped before getting it.

    Args:
        store: The store's file; the lock lies beside it and stays there.
        stopped: Asked while waiting.
        waiting: Called each time the lock is found held by another sync.

    Raises:
        StoreError: The store's folder cannot be written.
    """
    if fcntl is None:
        yield True
        return
    descriptor = _open_lock(store, ".sync-lock")
    try:
        yield _acquire(descriptor, stopped, waiting)
    finally:
        os.close(descriptor)


def _open_lock(store: Path, suffix: str) -> int:
    path = store.with_name(store.name + suffix)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(f"{store} cannot be written: {path}: {error.strerror}") from error


@contextlib.contextmanager
def only_watcher(
    store: Path, scope: str, stop: Stop, standing_by: Callable[[], None]
) -> Iterator[bool]:
    """Hold the lock of a store's watcher; gives False when it was stopped before getting it.

    Whoever waits costs nothing: the system wakes it when the holder ends, however it ends.

    Args:
        store: The store's file; the lock lies beside it and stays there.
        scope: What is watched, empty for the usual places; others do not stand in its way.
        stop: Ends the waiting.
        standing_by: Called once when another watcher holds the lock.

    Raises:
        StoreError: The store's folder cannot be written.
    """
    if fcntl is None:
        yield True
        return
    descriptor = _open_lock(store, ".watch-lock" + (f"-{scope}" if scope else ""))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        standing_by()
        if not _wait_for(descriptor, stop):
            # The thread that waits has the file; both end with the process.
            yield False
            return
    except OSError:
        # Some network file systems have no locks; two watchers write the same.
        pass
    try:
        yield True
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, stop: Stop) -> bool:
    """Wait for a lock on a thread of its own, so that signals and ``stop`` are heard."""
    reading, writing = os.pipe()

    def wait() -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.close(writing)

    threading.Thread(target=wait, daemon=True, name="watch lock").start()
    try:
        return not stop.wait(others=[reading])
    finally:
        os.close(reading)


@contextlib.contextmanager
def turn(store: Path) -> Iterator[None]:
    """Hold the lock that the helpers of one sync pass round.

    Whoever waits for it is woken at once, where SQLite's own lock is only asked for again
    after some tens of milliseconds.

    Raises:
        StoreError: The store's folder cannot be written.
    """
    if fcntl is None:
        yield
        return
    descriptor = _open_lock(store, ".turn-lock")
    try:
        # Some network file systems have no locks; SQLite's own one is enough.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, stopped: Callable[[], bool], waiting: Callable[[], None]) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if stopped():
                return False
            waiting()
            time.sleep(POLL_S)
        except OSError:
            # Some network file systems have no locks; sync is right without.
            return True


def transaction(
    connection: sqlite3.Connection, store: Path
) -> contextlib.AbstractContextManager[None]:
    """Return a transaction that waits for other writers, however long they take.

    Raises:
        StoreError: The store is locked for long, read only, full or damaged.
    """
    return transactions.transaction(connection, store, wait_s=LOCK_PATIENCE_S)
