"""Lock files for syncs and watchers, and transactions that wait for other writers.

The lock files only save work: two syncs that write at once are correct without them.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from store.engine import transactions
from store.engine.connection import Connection
from store.errors import StoreError
from store.system.stopping import Stop

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock
    fcntl = None  # type: ignore[assignment]

LOCK_PATIENCE_S = 60.0
"""How long another program may lock the store before sync gives up."""
POLL_S = 0.1


@contextlib.contextmanager
def sync_lock(
    store: Path, stopped: Callable[[], bool], waiting: Callable[[], None]
) -> Iterator[bool]:
    """Hold the store's sync lock; yields False if stopped before acquiring it.

    Args:
        store: The store's file; the lock file is beside it and is not deleted.
        stopped: Called while waiting; True ends the waiting.
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
def watcher_lock(
    store: Path, scope: str, stop: Stop, standing_by: Callable[[], None]
) -> Iterator[bool]:
    """Hold the lock of a store's watcher; yields False if stopped before acquiring it.

    Waiting uses no CPU: the system wakes the waiter when the holder ends, even by a kill.

    Args:
        store: The store's file; the lock file is beside it and is not deleted.
        scope: Name of the watched set, "" for the default places; each has its own lock.
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
            # The waiting thread still uses the file; both end with the process.
            yield False
            return
    except OSError:
        # Some network file systems have no locks; two watchers are safe.
        pass
    try:
        yield True
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, stop: Stop) -> bool:
    """Wait for a lock on another thread, so that signals and ``stop`` end the waiting."""
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
def write_turn(store: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock by which the helpers of one sync take turns to write.

    A waiter is woken at once, whereas SQLite polls its own lock every tens of milliseconds.

    Args:
        store: The store's file.
        wait: Whether to wait for the turn; else False is yielded where another has it.

    Raises:
        StoreError: The store's folder cannot be written.
    """
    if fcntl is None:
        yield True
        return
    descriptor, mine = _open_lock(store, ".turn-lock"), True
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            mine = False
        except OSError:
            # Some network file systems have no locks; SQLite's own lock is enough.
            pass
        yield mine
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
            # Some network file systems have no locks; sync is correct without.
            return True


def transaction(
    connection: Connection, store: Path, *, begin: Callable[[], object] | None = None
) -> contextlib.AbstractContextManager[None]:
    """Return a transaction that waits up to ``LOCK_PATIENCE_S`` for other writers.

    Args:
        connection: A writing connection in autocommit mode.
        store: The store's file.
        begin: Begins it beside others; None begins it alone.

    Raises:
        StoreError: The store is locked for long, read only, full or damaged.
    """
    return transactions.transaction(connection, store, wait_s=LOCK_PATIENCE_S, begin=begin)
