"""What y-agent's database says about one session.

Tables: the y-agent format page. The transcripts are files; the database has the session's
row, its checkpoints, a mirror of its messages, its events and its diagnostic traces.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass, field
from typing import Any

import orjson

from store.sources.base.databases import Row, columns, decoded, rows
from store.sources.base.values import string

_SECRET = re.compile(r"authorization|api[-_]?key|access[-_]?token|secret|cookie", re.IGNORECASE)


@dataclass(slots=True)
class Trace:
    """One diagnostic trace: what was asked of models and tools in a turn."""

    id: str
    row: Row
    observations: list[Row] = field(default_factory=list)
    scores: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class StoredSession:
    """One row of ``session_metadata``, and what belongs to it.

    Attributes:
        mirror: Rows of ``chat_messages`` by message id; they say what was pruned or rewound.
        event: The newest row of ``session_events``.
        parent: The row of its parent; None where there is none, or it is not there.
    """

    id: str
    row: Row
    checkpoints: list[Row] = field(default_factory=list)
    mirror: dict[str, Row] = field(default_factory=dict)
    event: Row | None = None
    traces: list[Trace] = field(default_factory=list)
    parent: Row | None = None


def read_stored(connection: sqlite3.Connection, session_id: str) -> StoredSession | None:
    """Read a session's rows; None when it is not there any more."""
    found = rows(connection, "SELECT * FROM session_metadata WHERE id = ?", (session_id,))
    if not found:
        return None
    stored = StoredSession(session_id, found[0])
    parent = string(stored.row.get("parent_id"))
    if parent is not None:
        above = rows(connection, "SELECT * FROM session_metadata WHERE id = ?", (parent,))
        stored.parent = above[0] if above else None
    stored.checkpoints = _of_session(connection, "chat_checkpoints", session_id, "turn_number")
    mirror = _of_session(connection, "chat_messages", session_id, "created_at, id")
    stored.mirror = {str(row.get("id")): row for row in mirror}
    if "seq" in columns(connection, "session_events"):
        events = rows(
            connection, "SELECT * FROM session_events WHERE session_id = ?"
            " ORDER BY event_id DESC LIMIT 1", (session_id,),
        )  # fmt: skip
        stored.event = events[0] if events else None
    _read_traces(connection, stored)
    return stored


def _of_session(
    connection: sqlite3.Connection, table: str, session_id: str, order: str
) -> list[Row]:
    if "session_id" not in columns(connection, table):
        return []
    sql = f"SELECT * FROM {table} WHERE session_id = ? ORDER BY {order}"
    return rows(connection, sql, (session_id,))


def _read_traces(connection: sqlite3.Connection, stored: StoredSession) -> None:
    names = columns(connection, "diag_traces")
    key = "trace_id" if "trace_id" in names else "id"
    if not {"session_id", key} <= names:
        return
    # Their ids are drawn by chance.
    order = f"started_at, {key}" if "started_at" in names else key
    sql = f"SELECT * FROM diag_traces WHERE session_id = ? ORDER BY {order}"
    traces = {
        str(row[key]): Trace(str(row[key]), _plain(row))
        for row in rows(connection, sql, (stored.id,))
    }
    given = orjson.dumps(list(traces)).decode()
    for table, kept in (("diag_observations", "observations"), ("diag_scores", "scores")):
        has = columns(connection, table)
        if traces and "trace_id" in has:
            order = "sequence, rowid" if "sequence" in has else "rowid"
            for row in rows(
                connection, f"SELECT * FROM {table} WHERE trace_id IN"
                f" (SELECT value FROM json_each(?)) ORDER BY {order}", (given,),
            ):  # fmt: skip
                getattr(traces[str(row["trace_id"])], kept).append(_plain(row))
    stored.traces = list(traces.values())


def _plain(row: Row) -> Row:
    """Return a row with its JSON decoded, without what gives access to a model."""
    return {key: _without_secrets(decoded(value)) for key, value in row.items()}


def _without_secrets(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    if isinstance(value, dict):
        return {
            key: _without_secrets(item)
            for key, item in value.items()
            if not _SECRET.search(str(key))
        }
    return value
