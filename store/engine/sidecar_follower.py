"""Notices what changes in a store, for those who keep a sidecar file of it up to date.

A library has a log of changes. A host's file has none: there new rows and the newest sessions
tell of changes at once, and what is left is found by walks over everything, now and then.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from store.engine import changes
from store.engine.changes import Moved
from store.engine.database import Database, open_database
from store.engine.sidecars import Sidecar, store_identity, value_of
from store.engine.values import number

RECHECK_EVERY_S = 60.0
"""Seconds between walks that look for changes of a host's file."""
RECHECK_RARELY_S = 1800.0
"""The same for a library, when something was written that is not in its log."""
COPY_EVERY_S = 30.0
"""Seconds between private copies of a host's file that cannot be read in any other way."""
HOT_SESSIONS = 20
"""Newest sessions of a host's file that are looked at after each change."""


class SidecarFollower(ABC):
    """Follows one store, and has its sidecar file open for writing.

    Attributes:
        store: The store's file.
        path: The sidecar file.
        file: The open sidecar file.
        database: The store, open for reading.
    """

    def __init__(self, sidecar: Sidecar, store: Path, stopped: Callable[[], bool]) -> None:
        """Open the store and its sidecar file.

        Args:
            sidecar: The kind of file.
            store: The store's file.
            stopped: Called during a step; True ends the step early.

        Raises:
            StoreError: One of them cannot be opened.
        """
        self.store, self._stopped = store, stopped
        self.path = sidecar.path(store)
        self.file = sidecar.open_for_writing(self.path)
        self._inode = self.path.stat().st_ino
        self.database: Database = open_database(store, write=False)
        self._version, self._seq = -1, 0
        self._rowids = (0, 0)
        self._unlogged = self._rarely_unlogged = False
        self._started_s, self._walked_s, self._copied_until_s = time.monotonic(), 0.0, 0.0

    @abstractmethod
    def _start(self) -> None:
        """Begin where the last one ended; called again when another store is at the place."""

    @abstractmethod
    def _take(self, moved: Moved, seq: int) -> None:
        """Take note of what changed after a number in the log."""

    @abstractmethod
    def _look_for_new_rows(self) -> None:
        """Take note of rows that came since the last look."""

    @abstractmethod
    def _look_at_hot_sessions(self) -> None:
        """Take note of changes in the newest sessions of a host's file."""

    @property
    def _own(self) -> bool:
        return self.database.form.name == "own"

    def _identity(self) -> str:
        return store_identity(self.store)

    def _data_version(self) -> int:
        return self.database.data_version()

    def _newest_rowids(self) -> tuple[int, int]:
        if self.database.server is not None:
            return 0, 0  # Rows have no numbers there.
        read = self.database.connection.execute
        (messages,) = read("SELECT max(rowid) FROM chat_messages").fetchone()
        (parts,) = read("SELECT max(rowid) FROM chat_parts").fetchone()
        return number(messages), number(parts)

    def look(self) -> None:
        """Take note of what changed in the store.

        Raises:
            sqlite3.Error: The store cannot be read now.
            StoreError: The store is gone, or is no store any more.
            FileNotFoundError: The sidecar file was deleted, or made again by another program.
        """
        if self.path.stat().st_ino != self._inode:
            raise FileNotFoundError(self.path)
        if self._is_reopening_due():
            identity = value_of(self.file, "store")
            self.database.close()
            self.database = open_database(self.store, write=False)
            if self._identity() != identity:
                self._start()
                return
            self._version = -1
        version = self._data_version()
        if version == self._version:
            return
        self._version = version
        if self._own:
            self._read_log()
        else:
            self._look_for_new_rows()
            self._look_at_hot_sessions()
            self._unlogged = True

    def _is_reopening_due(self) -> bool:
        """Return whether the store must be opened again; a private copy is not made too often."""
        opened = self.database.opened
        if opened is not None and opened.way == "copy" and time.monotonic() < self._copied_until_s:
            return False
        if not self.database.moved():
            return False
        self._copied_until_s = time.monotonic() + COPY_EVERY_S
        return True

    def _read_log(self, *, starting: bool = False) -> None:
        """Take the changes from a library's log, and look further where something has none."""
        before = self._seq
        self._seq, moved = changes.since(self.database, before)
        if self.database.server is not None:
            self._unlogged = self._unlogged or moved.vague
        elif moved.sessions:
            self._rowids = self._newest_rowids()
        elif self._seq != before:
            self._unlogged = True  # The log does not reach back so far.
            self._look_for_new_rows()
        elif not starting:
            self._rarely_unlogged = True
            self._look_for_new_rows()
        self._take(moved, before)

    def _is_recheck_due(self, now: float) -> bool:
        """Return whether it is time for a walk that looks for changes that nothing tells of."""
        if self._unlogged:
            return not self._walked_s or now - self._walked_s >= RECHECK_EVERY_S
        if self._rarely_unlogged:
            return now - max(self._walked_s, self._started_s) >= RECHECK_RARELY_S
        return False

    def close(self) -> None:
        """Close the store and the sidecar file."""
        self.database.close()
        self.file.close()
