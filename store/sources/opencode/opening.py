"""Opens ``opencode.db`` for reading, briefly, and leaves it as it was.

A connection that sees the file live is closed at once: as long as it is open, the last
writer could not take its ``-wal`` away. A private copy (``store.access`` says when one is
needed) harms nobody and costs its making, so it is kept until the database moves.
"""

from __future__ import annotations

import contextlib
import sqlite3
import weakref
from collections.abc import Iterator
from pathlib import Path

from store.access import Opened, open_for_reading, read_header
from store.copies import Signature, signature
from store.errors import StoreError

BUSY_MS = 1000
"""How long a lock is waited for before the database is named as a problem."""
TABLES = frozenset({"session", "message", "part"})
COLUMNS = frozenset({"id", "project_id", "directory", "title", "version", "time_created"})


class Databases:
    """Opens databases; keeps at most one private copy."""

    def __init__(self) -> None:
        """Start with nothing open."""
        self._copy: Opened | None = None
        self._finalizer: weakref.finalize[..., Databases] | None = None

    @contextlib.contextmanager
    def reading(self, path: Path) -> Iterator[sqlite3.Connection]:
        """Give a connection in one read transaction.

        Raises:
            StoreError: The file is no database, or kept changing while it was copied.
            sqlite3.Error: It is locked or damaged.
        """
        path = path.resolve()
        opened = self._opened(path)
        try:
            opened.connection.execute("BEGIN")
            yield opened.connection
        finally:
            with contextlib.suppress(sqlite3.Error):
                opened.connection.execute("ROLLBACK")
            if opened is not self._copy:
                opened.close()

    def _opened(self, path: Path) -> Opened:
        kept = self._copy
        if kept is not None:
            if kept.path == path and kept.signature == _signature(path):
                return kept
            self.close()
        opened = open_for_reading(path, read_header(path), ours=False, prepare=_prepare)
        if opened.way == "copy":
            self._copy = opened
            self._finalizer = weakref.finalize(self, opened.close)
        return opened

    def close(self) -> None:
        """Remove the private copy."""
        if self._finalizer is not None:
            self._finalizer()
        self._copy = self._finalizer = None


def _signature(path: Path) -> Signature:
    return signature(path, "copy")


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    connection.execute("PRAGMA query_only = 1")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def is_opencode_database(path: Path) -> bool:
    """Tell by its tables whether a file is opencode's database."""
    databases = Databases()
    try:
        with databases.reading(path) as connection:
            names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            return names >= TABLES and columns(connection, "session") >= COLUMNS
    except (StoreError, sqlite3.Error, OSError):
        return False
    finally:
        databases.close()


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the names of a table's columns; none where the table is missing."""
    return frozenset(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
