"""The OpenAI Agents SDK's source: files are known by their tables, and named by their owner."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from store.engine.dialect import quoted
from store.sources.base.databases import SqliteRows, stamp_of_rows
from store.sources.base.named_files import NamedFiles
from store.sources.base.protocol import Problem, Reading, Unit
from store.sources.base.row_reader import Row, RowReader
from store.sources.base.row_session import RowSession
from store.sources.base.values import number, string, utc_ms
from store.sources.openai_agents.session import KIND, read_session
from store.sources.openai_agents.tables import Tables, tables_in

_BYTES_PER_ITEM = 1024


class OpenaiAgentsSource(NamedFiles):
    """Fulfils ``Source`` and ``FollowedSource``; reads only."""

    kind = KIND
    label = "OpenAI Agents SDK"
    tells = ("thoughts", "tokens", "files", "rewinds")
    places = "name its SQLite file (`SQLiteSession`), or a folder in `[sources.paths]`"
    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell by the columns of its tables whether a database has sessions."""
        return bool(tables_in(SqliteRows(connection)))

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """
        for name, rows in _sessions(SqliteRows(connection)).items():
            at = max((utc_ms(row.get("newest")) or 0 for row in rows), default=0)
            count = max(number(row.get("count")) for row in rows)
            sign = [sorted(row.items()) for row in rows]
            stamp = stamp_of_rows(path, sign, at=at, size=_BYTES_PER_ITEM * (1 + count))
            yield Unit(f"{path.name}/{name}", (stamp,), at)

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
        reader = SqliteRows(connection)
        found = _found(reader, session_id)
        if found is None:
            return Reading([], [], unit.stamps)
        session = RowSession(session_id, str(path))
        draft = read_session(reader, session, *found)
        return Reading([draft] if draft else [], session.problems, unit.stamps)


def _sessions(reader: RowReader) -> dict[str, list[Row]]:
    """Return by session the rows that differ when it moved.

    A session that several pairs of tables have is named after its table too, but for the first.
    """
    found: dict[str, list[Row]] = {}
    for tables in tables_in(reader):
        for name, rows in sorted(_rows_of(reader, tables).items()):
            found[name if name not in found else f"{tables.messages}:{name}"] = rows
    return found


def _found(reader: RowReader, session_id: str) -> tuple[Tables, str] | None:
    """Return the tables that have a session, and its name in them; None where none have it."""
    for tables in tables_in(reader):
        prefix = f"{tables.messages}:"
        for name in (session_id, session_id.removeprefix(prefix)):
            for table in filter(None, (tables.messages, tables.sessions)):
                if reader.rows(
                    f"SELECT 1 AS one FROM {quoted(table)} WHERE session_id = $1 LIMIT 1", name
                ):
                    return tables, name
    return None


def _rows_of(reader: RowReader, tables: Tables) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}

    def take(sql: str) -> None:
        for row in reader.rows(sql):
            if string(row["session_id"]) is not None:
                found.setdefault(row["session_id"], []).append(row)

    # With a table of sessions, which says when each moved, an index has all that is asked for.
    newest = "max(created_at)" if tables.sessions is None else "NULL"
    take("SELECT session_id, count(*) AS count, min(id) AS first, max(id) AS last,"
         f" {newest} AS newest FROM {quoted(tables.messages)} GROUP BY session_id")  # fmt: skip
    if tables.sessions is not None:
        take("SELECT session_id, created_at, updated_at, updated_at AS newest"
             f" FROM {quoted(tables.sessions)}")  # fmt: skip
    if tables.branched:
        counted = "SELECT session_id, count(*) AS number, max(id) AS last FROM"
        take(f"{counted} message_structure GROUP BY session_id")
        if reader.columns("turn_usage"):
            take(f"{counted} turn_usage GROUP BY session_id")
    return found
