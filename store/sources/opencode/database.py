"""Reads one session out of ``opencode.db``.

Tables and columns: the opencode format page, section 2.2. Nothing is ever asked of
``account*``, ``credential`` and ``session_share`` (its ``secret``).
"""

from __future__ import annotations

import sqlite3
from typing import Any

from store.sources.base.databases import decoded, rows
from store.sources.opencode.kept_rows import SECOND_TABLE, KeptRows
from store.sources.opencode.opening import columns, order_of
from store.sources.opencode.second_engine import read_second_engine, read_waiting
from store.sources.opencode.stored import StoredSession

_JSON = ("revert", "permission", "model", "metadata", "summary_diffs")
_NAMES = {
    "project_id": "projectID",
    "workspace_id": "workspaceID",
    "parent_id": "parentID",
    "slug": "slug",
    "directory": "directory",
    "path": "path",
    "title": "title",
    "version": "version",
    "revert": "revert",
    "permission": "permission",
    "agent": "agent",
    "model": "model",
    "metadata": "metadata",
    "cost": "cost",
}
"""Columns of ``session``, and what the same is called in its info."""


def read_session(
    connection: sqlite3.Connection, session_id: str, path: str, kept: KeptRows
) -> StoredSession | None:
    """Read a session; None when it is not there any more.

    Args:
        connection: In a read transaction.
        session_id: Its id.
        path: The database's path, to name in what comes of it.
        kept: Its rows as of the last reading, if there was one.
    """
    stored = read_session_row(connection, session_id, path)
    if stored is None:
        return None
    messages, parts = (
        kept.read(connection, table, f"SELECT * FROM {table} WHERE session_id = ?", session_id)
        for table in ("message", "part")
    )
    kept.messages(stored, messages, parts)
    if columns(connection, SECOND_TABLE):
        order = order_of(connection, SECOND_TABLE, "seq")
        query = f"SELECT * FROM {SECOND_TABLE} WHERE session_id = ? ORDER BY {order}, id"
        second = kept.read(connection, SECOND_TABLE, query, session_id)
        if second:
            stored.engine = 1 if stored.messages else 2
            read_second_engine(stored, second)
    if columns(connection, "session_input"):
        order = order_of(connection, "session_input", "admitted_seq")
        waiting = f"SELECT * FROM session_input WHERE session_id = ? ORDER BY {order}, id"
        read_waiting(stored, rows(connection, waiting, (session_id,)))
    if columns(connection, "todo"):
        _todos(connection, stored)
    return stored


def read_session_row(
    connection: sqlite3.Connection, session_id: str, path: str
) -> StoredSession | None:
    """Read a session without its messages; None when it is not there any more.

    Args:
        connection: In a read transaction.
        session_id: Its id.
        path: The database's path, to name in what comes of it.
    """
    found = rows(connection, "SELECT * FROM session WHERE id = ?", (session_id,))
    if not found:
        return None
    row = {key: decoded(value) if key in _JSON else value for key, value in found[0].items()}
    stored = StoredSession(session_id, _info(row), path)
    stored.keep({"table": "session", **row})
    return stored


def _info(row: dict[str, Any]) -> dict[str, Any]:
    info = {name: row[column] for column, name in _NAMES.items() if row.get(column) is not None}
    info["id"] = row["id"]
    times = ("created", "updated", "archived", "compacting")
    info["time"] = {
        name: row[f"time_{name}"] for name in times if row.get(f"time_{name}") is not None
    }
    if row.get("share_url"):
        info["share"] = {"url": row["share_url"]}
    counted = ("additions", "deletions", "files")
    summary = {
        name: row[f"summary_{name}"] for name in counted if row.get(f"summary_{name}") is not None
    }
    if summary:
        info["summary"] = summary
    return info


def _todos(connection: sqlite3.Connection, stored: StoredSession) -> None:
    todos = "SELECT * FROM todo WHERE session_id = ? ORDER BY position"
    for row in rows(connection, todos, (stored.id,)):
        stored.keep({"table": "todo", **row})
        stored.todos.append({key: row.get(key) for key in ("content", "status", "priority")})
