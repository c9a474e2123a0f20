"""What the functions over a ``Database`` ask of its connection, whatever its engine.

``sqlite3.Connection`` fulfils this as it is, so a SQLite file is read without anything in
between; ``store.engine.server.connection`` does on a PostgreSQL server. Rows are tuples.
Errors are those of ``sqlite3``, with its result codes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from store.engine.dialect import SQLITE, Dialect

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""Values by position for ``?``, by name for ``$1`` or ``:name``."""


class Cursor(Protocol):
    """What a statement found or did."""

    @property
    def rowcount(self) -> int:
        """How many rows a change wrote; -1 for other statements."""

    @property
    def description(self) -> Any:
        """For each column a tuple that starts with its name; None for a change."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchmany(self, size: int, /) -> list[Any]:
        """Return some of the rows that are left."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def __iter__(self) -> Iterator[Any]:
        """Go through the rows that are left."""

    def close(self) -> None:
        """Leave the rows that are left."""


def dialect_of(connection: Connection) -> Dialect:
    """Return the words of a connection's engine, for functions that have no ``Database``."""
    if isinstance(connection, sqlite3.Connection):
        return SQLITE
    found: Dialect = connection.sql  # type: ignore[attr-defined]
    return found


class Connection(Protocol):
    """An open connection in autocommit mode, used by one thread at a time.

    Attributes:
        text_factory: What makes a value of the bytes of a text; ``str`` by default.
    """

    text_factory: Any

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    @property
    def total_changes(self) -> int:
        """How many rows this connection has written."""

    def execute(self, sql: str, parameters: Parameters = ..., /) -> Cursor:
        """Run a statement."""

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> Cursor:
        """Run a statement with each of several sets of values."""

    def interrupt(self) -> None:
        """Break off the statement that runs now; called from another thread."""

    def close(self) -> None:
        """Close it."""
