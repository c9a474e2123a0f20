"""Stores that open slowly, as those on a server do."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from store.engine.database import Database, open_database


class SlowOpening:
    """In place of ``open_database``: waits until it may go on.

    Attributes:
        waits: Is set while it waits.
        go_on: Lets it go on.
        opened: What it has opened.
    """

    def __init__(self) -> None:
        """Let nothing be opened yet."""
        self.waits, self.go_on = threading.Event(), threading.Event()
        self.opened: list[Database] = []

    def __call__(self, path: Path, *, write: bool) -> Database:
        """Open a store."""
        self.waits.set()
        self.go_on.wait()
        self.opened.append(open_database(path, write=write))
        return self.opened[-1]


def is_closed(database: Database) -> bool:
    """Return whether a store's file was closed, which another thread may be doing now.

    A statement that is run while SQLite closes its connection ends the process.
    """
    try:
        assert not database.connection.in_transaction
    except sqlite3.ProgrammingError as error:
        return "closed" in str(error)
    return False
