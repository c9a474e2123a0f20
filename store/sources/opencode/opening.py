"""Tells whether a SQLite file is opencode's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from store.errors import StoreError
from store.sources.base.databases import Databases as Databases
from store.sources.base.databases import columns as columns

TABLES = frozenset({"session", "message", "part"})
COLUMNS = frozenset({"id", "project_id", "directory", "title", "version", "time_created"})


def order_of(connection: sqlite3.Connection, table: str, number: str) -> str:
    """Return the column that a table's rows are ordered by: a number, else the time.

    Versions 1.14 and 1.15 have ``session_message`` without its ``seq``.

    Args:
        connection: The database, open for reading.
        table: The table.
        number: The column with the number, where the table has it.
    """
    return number if number in columns(connection, table) else "time_created"


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
