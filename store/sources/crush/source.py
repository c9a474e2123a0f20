"""The Crush source: where its databases are, and how a session is listed and read."""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from store.sources.base.database_source import DatabaseSource
from store.sources.base.databases import SqliteRows, columns, rows, stamp_of_rows
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import Problem, Program, Reading, Unit
from store.sources.base.values import utc_ms
from store.sources.crush.projects import (
    DATABASE,
    FOLDER,
    list_file,
    projects_in,
    workspace_of,
)
from store.sources.crush.session import KIND, read_session

_COLUMNS = {
    "sessions": frozenset({
        "id", "parent_session_id", "title", "message_count", "prompt_tokens", "cost"
    }),
    "messages": frozenset({"id", "session_id", "role", "parts", "created_at", "updated_at",
                           "finished_at"}),
}  # fmt: skip
_BYTES_PER_MESSAGE = 2048
_LAST = 3
"""Rows at the end of a session that are compared whole: an answer grows in its row, and
``updated_at`` has only seconds."""
_LARGE = 8 << 20
"""In a database of more bytes only these rows are looked at; in a smaller one all times are."""


class CrushSource(DatabaseSource, LibrarySource):
    """Fulfils ``Source`` and ``FollowedSource``; reads only.

    Looks into the library for sessions that are gone.
    """

    kind = KIND
    label = "Crush"
    tells = ("thoughts", "cost", "compactions", "subagents")
    program = Program(frozenset({"crush"}), ("/@charmland/crush/",), shares_file=True)
    places = (
        "the projects in `~/.local/share/crush/projects.json` or `CRUSH_GLOBAL_DATA`, and "
        f"`~/{FOLDER}`"
    )
    patterns = (DATABASE,)

    def __init__(self) -> None:
        """Make a source."""
        super().__init__()
        self._environment: Mapping[str, str] = os.environ
        self._home: Path | None = None

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the database of each project in Crush's list, and that of the home folder.

        The list is read each time: a new project is found while others are watched.
        """
        self._environment, self._home = environment, home
        listed = [each.data / DATABASE for each in projects_in(list_file(environment, home))]
        return list(dict.fromkeys([*listed, home / FOLDER / DATABASE]))

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell Crush's database by its two tables and what is special about them."""
        return all(columns(connection, name) >= needed for name, needed in _COLUMNS.items())

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """
        sums = "" if path.stat().st_size > _LARGE else ", sum(updated_at)"
        counted = {
            str(row[0]): row[1:] for row in connection.execute(
                f"SELECT session_id, count(*), max(rowid){sums} FROM messages GROUP BY session_id"
            )
        }  # fmt: skip
        for row in rows(connection, "SELECT * FROM sessions ORDER BY id"):
            name = str(row["id"])
            held = counted.pop(name, (0,))
            last, at = _last_rows(connection, name)
            at = max(at, utc_ms(row.get("updated_at")) or 0)
            sign = (sorted(row.items()), held, last)
            size = _BYTES_PER_MESSAGE * (1 + held[0])
            yield Unit(f"{path.name}/{name}", (stamp_of_rows(path, sign, at=at, size=size),), at)
        for name, held in counted.items():
            reason = f"{held[0]} messages of session {name}, which is not there"
            problems.append(Problem(str(path), 0, reason))

    def read_session(
        self, connection: sqlite3.Connection, path: Path, session_id: str, unit: Unit
    ) -> Reading:
        """Read one session whole; no session where it is not there any more.

        Args:
            connection: The database, open for reading.
            path: Its file.
            session_id: The session's id.
            unit: The unit as it was listed.
        """
        projects = projects_in(list_file(self._environment, self._home or Path.home()))
        workspace = workspace_of(path, projects)
        reader = SqliteRows(connection)
        return read_session(reader, str(path), session_id, unit, self._library, workspace)


def _last_rows(connection: sqlite3.Connection, session_id: str) -> tuple[list[Any], int]:
    """Return what tells the last rows of a session from others, and when they were written."""
    found, newest = [], 0
    for updated, parts, finished in connection.execute(
        "SELECT updated_at, parts, finished_at FROM messages WHERE session_id = ?"
        " ORDER BY created_at DESC, rowid DESC LIMIT ?",
        (session_id, _LAST),
    ):
        text = str(parts).encode("utf-8", "surrogatepass")
        found.append((updated, len(text), zlib.crc32(text), finished))
        newest = max(newest, utc_ms(updated) or 0)
    return found, newest
