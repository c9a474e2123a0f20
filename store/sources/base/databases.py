"""Opens other programs' SQLite files for reading, briefly, and leaves them as they were.

A connection that sees the file live is closed at once: as long as it is open, the last
writer could not take its ``-wal`` away. A private copy (``store.engine.access`` says when one is
needed) harms nobody and costs its making, so it is kept until the database moves.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from store.engine.access import Opened, open_for_reading, read_header
from store.engine.companions import Signature, signature
from store.engine.server_url import Root
from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.protocol import FileStamp
from store.sources.base.row_reader import Later
from store.sources.base.row_reader import Row as Row
from store.system.paths import real_path

BUSY_MS = 1000
"""How long a lock is waited for before the database is named as a problem."""


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
        path = real_path(path)
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
            if kept.path == str(path) and kept.signature == _signature(path):
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


class SqliteRows:
    """Fulfils ``RowReader`` on a SQLite file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Read on a connection that is in a transaction."""
        self._connection = connection

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Return what a statement finds, by column name."""
        bound = {str(place): value for place, value in enumerate(values, 1)}
        cursor = self._connection.execute(sql, bound)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def later(self, sql: str, *values: object) -> Later:
        """Return what returns what a statement finds now."""
        found = self.rows(sql, *values)
        return lambda: found

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns; none where the table is missing."""
        return columns(self._connection, table)

    def readable(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns."""
        return columns(self._connection, table)

    def permitted(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns."""
        return columns(self._connection, table)

    def listed(self, table: str, name: str = "") -> str:
        """Return all columns of a table, as a statement lists them."""
        return f"{name}.*" if name else "*"

    def is_narrowed(self, table: str) -> bool:
        """Return whether rows of a table may be hidden, as they never are in a file."""
        return False

    def any_of(self, place: int) -> str:
        """Return the condition of being one of ``bound_ids``, which is bound at a place."""
        return f"IN (SELECT value FROM json_each(${place}))"

    def contains(self, column: str, place: int) -> str:
        """Return the condition that a column's text contains the text bound at a place."""
        return f"instr({column}, ${place}) > 0"


def columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the names of a table's columns; none where the table is missing."""
    return frozenset(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))


def rows(connection: sqlite3.Connection, sql: str, values: Sequence[Any] = ()) -> list[Row]:
    """Return what a statement finds, by column name.

    Args:
        connection: The database, open for reading.
        sql: The statement.
        values: For its placeholders.
    """
    cursor = connection.execute(sql, values)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def decoded(value: Any) -> Any:
    """Return a JSON column's value; text that is no JSON as it is."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return parse_value(value)
    except LineError:
        return value if isinstance(value, str) else value.decode("utf-8", "replace")


def record_bytes(value: Any) -> bytes:
    """Return a row as one line of JSON; bytes that are no text as hex."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS, default=_plain)
    except TypeError:
        # Lone surrogates and whole numbers past 64 bits.
        return json.dumps(value, default=_plain).encode()


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def stamp_of_rows(place: Root, sign: object, *, at: int, size: int) -> FileStamp:
    """Return the stamp of some rows of a database.

    Args:
        place: The database.
        sign: Differs when the rows do.
        at: When they last moved, epoch ms.
        size: Their bytes, roughly; it weighs them in the progress of a sync.
    """
    text = repr(sign).encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big")
    return FileStamp(str(place), number, size, at * 1_000_000)
