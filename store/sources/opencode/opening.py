"""Tells whether a SQLite file is opencode's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from store.errors import StoreError
from store.sources.databases import Databases as Databases
from store.sources.databases import columns as columns

TABLES = frozenset({"session", "message", "part"})
COLUMNS = frozenset({"id", "project_id", "directory", "title", "version", "time_created"})


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
