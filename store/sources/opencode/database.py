"""Reads one session out of ``opencode.db``.

Tables and columns: the opencode format page, section 2.2. Nothing is ever asked of
``account*``, ``credential`` and ``session_share`` (its ``secret``).
"""

from __future__ import annotations

import sqlite3
from typing import Any

from store.sources.base.databases import decoded, rows
from store.sources.base.values import mapping, ms_or_0, string
from store.sources.opencode.opening import columns, order_of
from store.sources.opencode.second_engine import read_second_engine, read_waiting
from store.sources.opencode.stored import (
    StoredMessage,
    StoredPart,
    StoredSession,
    in_order,
)

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
    connection: sqlite3.Connection, session_id: str, path: str
) -> StoredSession | None:
    """Read a session; None when it is not there any more.

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
    _messages(connection, stored)
    if columns(connection, "session_message"):
        order = order_of(connection, "session_message", "seq")
        second = rows(
            connection, f"SELECT * FROM session_message WHERE session_id = ? ORDER BY {order}, id",
            (session_id,),
        )  # fmt: skip
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


def _id_of(item: StoredMessage | StoredPart) -> str:
    return item.id


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


def _messages(connection: sqlite3.Connection, stored: StoredSession) -> None:
    """Read messages and parts in order; parts without a message are in one of their own."""
    messages: dict[str, StoredMessage] = {}
    by_id: dict[str, dict[str, Any]] = {}
    for row in rows(connection, "SELECT * FROM message WHERE session_id = ?", (stored.id,)):
        data = _object(stored, "message", row)
        at = ms_or_0(row.get("time_created")) or ms_or_0(mapping(data.get("time")).get("created"))
        name = str(row["id"])
        messages[name] = StoredMessage(name, data, at, ms_or_0(row.get("time_updated")) or at)
        by_id[name] = row
    for row in rows(connection, "SELECT * FROM part WHERE session_id = ?", (stored.id,)):
        _take_part(stored, messages, row)
        by_id[str(row["id"])] = row
    stored.messages = in_order(messages.values(), _id_of, lambda message: message.created_at)
    for message in stored.messages:
        if message.id in by_id:
            row = {"table": "message", **by_id[message.id], "data": message.data}
            message.records = (stored.keep(row),)
        message.parts = in_order(message.parts, _id_of, lambda part: 0)
        for part in message.parts:
            part.record = stored.keep({"table": "part", **by_id[part.id], "data": part.data})


def _take_part(
    stored: StoredSession, messages: dict[str, StoredMessage], row: dict[str, Any]
) -> None:
    message_id, at = str(row.get("message_id")), ms_or_0(row.get("time_created"))
    message = messages.get(message_id)
    if message is None:
        stored.complain(f"part {row['id']} belongs to message {message_id}, which is missing")
        message = messages[message_id] = StoredMessage(message_id, {}, at, at)
    updated = ms_or_0(row.get("time_updated")) or at
    data = _object(stored, "part", row)
    message.parts.append(StoredPart(str(row["id"]), data, at, updated, -1))


def _todos(connection: sqlite3.Connection, stored: StoredSession) -> None:
    todos = "SELECT * FROM todo WHERE session_id = ? ORDER BY position"
    for row in rows(connection, todos, (stored.id,)):
        stored.keep({"table": "todo", **row})
        stored.todos.append({key: row.get(key) for key in ("content", "status", "priority")})


def _object(stored: StoredSession, table: str, row: dict[str, Any]) -> dict[str, Any]:
    data = decoded(row.get("data"))
    if isinstance(data, dict):
        return data
    stored.complain(f"{table} {row.get('id')} holds no JSON object")
    return {"unreadable": string(row.get("data")) or ""}
