"""The hub source: what its databases are, and how a session is listed and read.

Source: the hub's published table reference (``sessions``, ``messages``, ``parts``), with
column names in snake case (the hub format page). ``accounts``, ``projects`` and
``workspaces`` are asked for the names of what a session belongs to, and for nothing else.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from store.engine.server_url import Root
from store.sources.base.database_source import DatabaseSource
from store.sources.base.databases import SqliteRows, rows, stamp_of_rows
from store.sources.base.drafts import LineageDraft, SessionDraft
from store.sources.base.protocol import SESSION_FACT, Problem, Reading, Unit
from store.sources.base.row_reader import RowReader, TableReader
from store.sources.base.servers.source import Following, ServerRows, ToReading, ToUnits
from store.sources.base.values import string, utc_ms
from store.sources.hub.fetching import (
    FollowedRows,
    Parent,
    fetch_names,
    fetch_parent,
    fetch_rows,
)
from store.sources.hub.session import KIND, session_draft
from store.sources.hub.stored import Memo, Rows, StoredSession, stored_session

if TYPE_CHECKING:
    from store.sources.base.servers.connection import PostgresRows

_COLUMNS = {
    "sessions": frozenset({"id", "slug", "title", "status", "role_name", "parent_id"}),
    "messages": frozenset({"id", "session_id", "role", "data", "created_at", "updated_at"}),
    "parts": frozenset({"id", "message_id", "session_id", "type", "data", "updated_at"}),
}
_BYTES_PER_PART = 1024
_LAST = 2
"""Messages at the end whose rows' times are looked at ..."""
_LARGE = 8 << 20
"""... in a database of so many bytes; in a smaller one all times are."""
_NEWEST = 2
"""The newest times of messages and parts are first in a session's list of times."""


class HubSource(DatabaseSource, ServerRows):
    """Fulfils ``Source``, ``FollowedSource`` and ``ServerSource``; reads only."""

    kind = KIND
    label = "hub"
    tells = ("thoughts", "tokens", "cost", "files", "compactions", "subagents")
    version = 4
    places = "no usual place: name its SQLite file or PostgreSQL URL"
    patterns = ("*.db", "*.sqlite", "*.sqlite3")
    keys = MappingProxyType({
        "sessions": ("id",), "messages": ("id", "session_id"),
        "parts": ("id", "message_id", "session_id"),
    })

    def __init__(self) -> None:
        """Make a source."""
        DatabaseSource.__init__(self)
        ServerRows.__init__(self)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return nothing: a hub's database has no usual place, so it has to be named."""
        return []

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell a hub's database by its three tables and what is special about them."""
        return self.knows(SqliteRows(connection))

    def knows(self, reader: TableReader) -> bool:
        """Tell a hub's database by its three tables and what is special about them."""
        return all(reader.columns(name) >= needed for name, needed in _COLUMNS.items())

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session.

        Parts are only ever added, by the tables' reference; where a hub updates them all the
        same, their times tell.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """
        all_times = None if path.stat().st_size > _LARGE else _all_times(connection)
        messages = _counted(connection, "messages", "max(created_at)")
        parts = _counted(connection, "parts", "max(rowid)")
        for row in rows(connection, "SELECT * FROM sessions ORDER BY id"):
            name = str(row["id"])
            times = _last_times(connection, name) if all_times is None else all_times.get(name, [])
            counted = parts.pop(name, None)
            sign = (sorted(row.items()), messages.pop(name, None), counted, times)
            at = max(utc_ms(time) or 0 for time in (row.get("updated_at"), *times[:_NEWEST]))
            size = _BYTES_PER_PART * (1 + (counted[0] if counted else 0))
            yield Unit(f"{path.name}/{name}", (stamp_of_rows(path, sign, at=at, size=size),), at)
        problems += _left_over(str(path), {"messages": messages, "parts": parts})

    def fetch_units(self, reader: PostgresRows) -> ToUnits:
        """Fetch what tells the sessions of a database on a server, and whether they moved."""
        counted = {
            table: reader.later(
                f"SELECT session_id, count(*) AS count, sum({reader.written(table)}) AS written,"
                f" {_newest(reader, table)} AS newest FROM {table} GROUP BY session_id"
            ) for table in ("messages", "parts")
        }  # fmt: skip
        at = "updated_at" if "updated_at" in reader.readable("sessions") else "NULL"
        sessions = reader.later(
            f"SELECT id, {at} AS updated_at, {reader.written('sessions')} AS written"
            " FROM sessions ORDER BY id"
        )
        shows_all = not any(reader.is_narrowed(table) for table in _COLUMNS)

        def units(place: Root, problems: list[Problem]) -> Iterator[Unit]:
            tables = {
                table: {str(row["session_id"]): tuple(row.values())[1:] for row in found()}
                for table, found in counted.items()
            }
            for row in sessions():
                name = str(row["id"])
                held = [rows.pop(name, (0, 0, None)) for rows in tables.values()]
                times = (row["updated_at"], held[0][2], held[1][2])
                at = max(utc_ms(time) or 0 for time in times)
                size = _BYTES_PER_PART * (1 + held[1][0])
                sign = row["written"], held
                yield Unit(name, (stamp_of_rows(place, sign, at=at, size=size),), at)
            if shows_all:
                problems += _left_over(str(place), tables)

        return units

    def read_session(
        self, connection: sqlite3.Connection, path: Path, session_id: str, unit: Unit
    ) -> Reading:
        """Read one session whole; no session where it is not there any more.

        Args:
            connection: The database, open for reading.
            path: Its file.
            session_id: The session's id at the source.
            unit: The unit as it was listed.
        """
        return self.fetch_session(SqliteRows(connection), session_id)(str(path), unit)

    def fetch_session(self, reader: RowReader, session_id: str) -> ToReading:
        """Fetch one session whole; return what makes a reading of it.

        The reading has no session where it is not there any more.

        Args:
            reader: Runs the statements.
            session_id: The session's id at the source.
        """
        return _to_reading(reader, session_id, fetch_rows(reader, session_id), Memo())

    def following(self, session_id: str) -> Following:
        """Return what fetches a session again and again: what was added since."""
        followed, memo = FollowedRows(session_id), Memo()

        def fetch(reader: PostgresRows) -> ToReading:
            return _to_reading(reader, session_id, followed.fetch(reader), memo)

        return Following(fetch)


def _to_reading(
    reader: RowReader, session_id: str, rows: Callable[[], Rows], memo: Memo
) -> ToReading:
    parent, names = fetch_parent(reader, session_id), fetch_names(reader, session_id)

    def reading(place: str, unit: Unit) -> Reading:
        stored = stored_session(session_id, rows(), place, memo)
        if stored is None:
            return Reading([], [], unit.stamps)
        draft = session_draft(stored, memo)
        draft.metadata["backscroll"].update(names())
        return _reading(draft, stored, parent(), unit)

    return reading


def _reading(draft: SessionDraft, stored: StoredSession, parent: Parent, unit: Unit) -> Reading:
    wants = list[str]()
    named = string(stored.row.get("parent_id"))
    if named is not None:
        if not parent.is_there:
            if not parent.may_be_hidden:
                stored.complain(f"its parent {named} is not there")
            wants.append(SESSION_FACT + named)
        draft.lineage = LineageDraft("subagent", named, tool_call_id=parent.call_id)
    return Reading([draft], stored.problems, unit.stamps, wants=wants)


def _newest(reader: PostgresRows, table: str) -> str:
    return "max(updated_at)" if "updated_at" in reader.readable(table) else "NULL"


def _left_over(place: str, left: Mapping[str, Mapping[str, tuple[Any, ...]]]) -> list[Problem]:
    """Tell of rows, by table and session, whose session is not there."""
    return [
        Problem(place, 0, f"{counted[0]} {table} of session {name}, which is not there")
        for table, found in left.items()
        for name, counted in found.items()
    ]


def _counted(connection: sqlite3.Connection, table: str, newest: str) -> dict[str, tuple[int, Any]]:
    """Count a table's rows by session, by an index that holds all that is asked for."""
    sql = f"SELECT session_id, count(*), {newest} FROM {table} GROUP BY session_id"
    return {str(row[0]): (row[1], row[2]) for row in connection.execute(sql)}


def _all_times(connection: sqlite3.Connection) -> dict[str, list[Any]]:
    """Return by session the newest times of its messages and parts, and a sum of all."""
    found: dict[str, list[Any]] = {}
    for place, table in enumerate(("messages", "parts")):
        for name, updated in connection.execute(f"SELECT session_id, updated_at FROM {table}"):
            held = found.setdefault(str(name), ["", "", 0])
            held[place] = max(held[place], str(updated))
            held[2] += zlib.crc32(str(updated).encode("utf-8", "surrogatepass"))
    return found


def _last_times(connection: sqlite3.Connection, session_id: str) -> list[Any]:
    """Return when the last messages of a session and their parts were updated."""
    found: list[Any] = ["", ""]
    for message_id, updated in connection.execute(
        "SELECT id, updated_at FROM messages WHERE session_id = ?"
        " ORDER BY created_at DESC, id DESC LIMIT ?",
        (session_id, _LAST),
    ).fetchall():
        row = connection.execute(
            "SELECT max(updated_at), min(updated_at) FROM parts WHERE message_id = ?",
            (message_id,),
        ).fetchone()
        found[:_NEWEST] = [max(found[0], str(updated)), max(found[1], str(row[0] or ""))]
        found += [updated, *row]
    return found
