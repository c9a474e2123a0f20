"""Reads a host's file with views or ``WITHOUT ROWID`` tables, through a private copy.

The browser identifies sessions by SQLite's rowids, which these do not have. If one of the
three tables is of that sort, the rows are copied into ordinary tables of a file in the cache
folder. The copy is made again whenever the host's file changes.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from pathlib import Path

from store.engine import schema
from store.engine.access import Opened, connect
from store.engine.companions import beside, copy_aside, size_of
from store.errors import StoreError

_LONGEST_S = 20.0
_STEPS = 200_000
"""SQLite virtual machine steps between time checks: some milliseconds."""
_LARGEST_GROWTH = 4
_ROOM = 64 << 20
"""How much larger than the host's file the copy may be: a view can return endless rows."""


def not_ordinary(connection: sqlite3.Connection) -> list[str]:
    """Return which of the three tables are views or have no rowids.

    Args:
        connection: An open file that has all three.
    """
    found = []
    for table in schema.REQUIRED_COLUMNS:
        row = connection.execute(
            "SELECT type FROM sqlite_master WHERE name = ? COLLATE NOCASE", (table,)
        ).fetchone()
        if row is None or row[0] != "table" or not _has_rowid(connection, table):
            found.append(table)
    return found


def _has_rowid(connection: sqlite3.Connection, table: str) -> bool:
    try:
        connection.execute(f"SELECT rowid FROM {table} LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


def open_rebuilt(path: Path) -> Opened:
    """Return an opened copy of a host's file with ordinary tables.

    Args:
        path: The host's file, symlinks resolved.

    Raises:
        StoreError: Its views take too long or return too many rows.
        sqlite3.Error: It cannot be read.
    """
    sign, scratch = copy_aside(path)
    try:
        rebuilt = scratch / "rebuilt.db"
        connection = connect(rebuilt, "mode=rwc")
        try:
            _copy_rows(connection, scratch / path.name, path)
        except BaseException:
            connection.close()
            raise
        return Opened(str(path), connection, "copy", sign, scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _copy_rows(connection: sqlite3.Connection, copy: Path, path: Path) -> None:
    connection.execute("PRAGMA journal_mode = OFF")
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    size = size_of(copy) + max(0, size_of(beside(copy, "-wal")))
    connection.execute(f"PRAGMA max_page_count = {(size * _LARGEST_GROWTH + _ROOM) // page}")
    connection.execute("ATTACH ? AS host", (f"{copy.as_uri()}?mode=rw",))
    ends = time.monotonic() + _LONGEST_S
    connection.set_progress_handler(lambda: time.monotonic() > ends, _STEPS)
    try:
        for table in schema.REQUIRED_COLUMNS:
            connection.execute(f"CREATE TABLE main.{table} AS SELECT * FROM host.{table}")
            connection.execute(f"CREATE INDEX main.{table}_id ON {table}(id)")
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error) or "full" in str(error):
            raise StoreError(
                f"the views of {path} return too many rows to read; name the tables"
                " chat_sessions, chat_messages and chat_parts in the file instead"
            ) from error
        raise
    finally:
        connection.set_progress_handler(None, 0)
    for name in ("user_version", "application_id"):
        (value,) = connection.execute(f"PRAGMA host.{name}").fetchone()
        connection.execute(f"PRAGMA main.{name} = {value}")
    connection.execute("DETACH host")
    connection.executescript(schema.CONTRACT_INDEXES)
