"""The rows of Cline's database of sessions: which of them moved, and what they say.

Source: the Cline format page, section 2.1. The database is next to the folder of sessions.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from store.errors import StoreError
from store.sources.base.databases import Databases, columns, rows, stamp_of_rows
from store.sources.base.growing import FACT
from store.sources.base.protocol import FileStamp, Problem
from store.sources.base.values import string

SESSIONS = "sessions"
CHILD = "__"
"""Follows the id of a session in those of its subagents and of tasks of its team."""
_DATABASE = os.path.join("db", "sessions.db")
_TABLE = "sessions"
_SIGNS = ("updated_at", "status", "status_lock", "ended_at")
_FILES = ("", "-wal")


def database_of(folder: str) -> str:
    """Return the database that lists the session of a folder."""
    return os.path.join(os.path.dirname(os.path.dirname(folder)), _DATABASE)


class _Signs(NamedTuple):
    """What shows that the rows of a session and its children moved, by the session's id."""

    stamps: tuple[FileStamp, ...]
    found: dict[str, list[tuple[object, ...]]]


class SessionRows:
    """The rows of databases; their signs are listed again when a database moved."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self._databases = Databases()
        self._signs: dict[str, _Signs] = {}

    def stamps(self, database: str, session_id: str, problems: list[Problem]) -> list[FileStamp]:
        """Return the stamp of a session's rows; none where it has no row.

        Args:
            database: The database.
            session_id: The session.
            problems: Takes why the database cannot be read.
        """
        found = self._listed(database, problems).get(session_id)
        if not found:
            return []
        place = Path(database).parent / f"{FACT}{session_id}"
        return [stamp_of_rows(place, sorted(map(repr, found)), at=0, size=0)]

    def moved(self, database: str) -> set[str]:
        """Return the sessions whose rows moved since they were listed last."""
        before = self._signs[database].found if database in self._signs else {}
        now = self._listed(database, [])
        return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}

    def _listed(
        self, database: str, problems: list[Problem]
    ) -> dict[str, list[tuple[object, ...]]]:
        stamps = tuple(FileStamp.now(database + end) for end in _FILES)
        known = self._signs.get(database)
        if known is not None and known.stamps == stamps:
            return known.found
        found: dict[str, list[tuple[object, ...]]] = {}
        if stamps[0].inode:
            try:
                with self._databases.reading(Path(database)) as connection:
                    for row in _signs(connection):
                        found.setdefault(str(row[0]).partition(CHILD)[0], []).append(row)
            except (StoreError, sqlite3.Error, OSError) as error:
                problems.append(Problem(database, 0, f"cannot be read: {error}"))
                return known.found if known is not None else {}
        self._signs[database] = _Signs(stamps, found)
        return found

    def of(
        self, database: str, session_id: str, problems: list[Problem]
    ) -> dict[str, dict[str, Any]]:
        """Return the rows of a session and of its children, by their ids.

        Args:
            database: The database.
            session_id: The session.
            problems: Takes why the database cannot be read.
        """
        if session_id not in self._listed(database, problems):
            return {}
        sql = f"SELECT * FROM {_TABLE} WHERE session_id = ? OR (session_id > ? AND session_id < ?)"
        first, after = session_id + CHILD, session_id + CHILD[:-1] + chr(ord(CHILD[-1]) + 1)
        try:
            with self._databases.reading(Path(database)) as connection:
                found = rows(connection, sql, (session_id, first, after))
        except (StoreError, sqlite3.Error, OSError) as error:
            problems.append(Problem(database, 0, f"cannot be read: {error}"))
            return {}
        return {name: row for row in found if (name := string(row.get("session_id")))}


def _signs(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    there = columns(connection, _TABLE)
    if "session_id" not in there:
        return []
    names = ", ".join(["session_id", *(name for name in _SIGNS if name in there)])
    return connection.execute(f"SELECT {names} FROM {_TABLE} ORDER BY session_id").fetchall()
