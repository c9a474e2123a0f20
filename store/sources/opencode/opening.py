"""Tells which program's a SQLite file with opencode's tables is."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from store.errors import StoreError
from store.sources.base.databases import Databases as Databases
from store.sources.base.databases import columns as columns
from store.sources.opencode.programs import OpencodeProgram, program_of_database

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


def program_at(path: Path) -> OpencodeProgram | None:
    """Return the program whose database a file is; None where it lacks opencode's tables."""
    databases = Databases()
    try:
        with databases.reading(path) as connection:
            names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            known = names >= TABLES and columns(connection, "session") >= COLUMNS
            return program_of_database(names, path) if known else None
    except (StoreError, sqlite3.Error, OSError):
        return None
    finally:
        databases.close()
