"""Rows of another program's database, read the same way whatever engine holds them.

Statements are written once with ``$1`` to ``$n`` for both engines; the few words in which
they differ are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import orjson

Row = dict[str, Any]
"""A row by column name."""
Later = Callable[[], list[Row]]
"""Returns rows that are fetched already; their values are decoded then."""


class TableReader(Protocol):
    """The tables of a database."""

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns; none where the table is missing."""
        ...


class RowReader(TableReader, Protocol):
    """One transaction on a database: all that is read belongs together."""

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Return what a statement finds, by column name.

        JSON comes as text, times as ISO text, as they are in a SQLite file.
        """
        ...

    def later(self, sql: str, *values: object) -> Later:
        """Fetch what a statement finds; return what decodes it.

        Decoding needs no transaction, so that a server does not keep one open for it.
        """
        ...

    def readable(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns that may be read; all where none may be."""
        ...

    def permitted(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns that may be read; none where none may be."""
        ...

    def listed(self, table: str, name: str = "") -> str:
        """Return the columns of a table that may be read, as a statement lists them.

        Args:
            table: The table.
            name: What the statement calls it.
        """
        ...

    def is_narrowed(self, table: str) -> bool:
        """Return whether row security, or a view, may hide rows of a table."""
        ...

    def any_of(self, place: int) -> str:
        """Return the condition of being one of ``bound_ids``, which is bound at a place."""
        ...

    def contains(self, column: str, place: int) -> str:
        """Return the condition that a column's text contains the text bound at a place."""
        ...


def bound_ids(names: Sequence[str]) -> str:
    """Return a list of ids as it is bound."""
    return orjson.dumps(names).decode()
