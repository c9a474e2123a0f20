"""A session of lionagi as its rows are, before it is mapped.

Tables and columns: the lionagi format page. Absent JSON is the text ``null``. An agent's
model settings, which may hold keys, and the embeddings are left out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from store.sources.databases import Row, columns, decoded, record_bytes, rows
from store.sources.protocol import Problem
from store.sources.values import mapping, string, utc_ms

_SECRET = ("chat_model", "parse_model")
_LEFT_OUT = "embedding"
_SIDE = {
    "session_signals": "session_id = ? ORDER BY seq",
    "session_controls": "session_id = ? ORDER BY created_at",
    "status_transitions": "entity_type = 'session' AND entity_id = ? ORDER BY created_at",
    "run_tags": "session_id = ? ORDER BY tag",
    "approvals": "session_id = ? ORDER BY proposed_at",
}


@dataclass(slots=True)
class StoredMessage:
    """One row of ``messages``.

    Attributes:
        kind: The last word of its class: ``System``, ``Instruction``, ...; empty where unknown.
        clone_from: The message that it is a copy of.
        at: Epoch ms.
        record: Number of its original record.
    """

    id: str
    kind: str
    role: str
    content: dict[str, Any]
    clone_from: str | None
    at: int
    row: Row
    record: int = -1


@dataclass(slots=True)
class StoredBranch:
    """One row of ``branches``, with the ids of its own progression.

    Attributes:
        metadata: ``node_metadata``.
        record: Number of its original record.
    """

    id: str
    row: Row
    metadata: dict[str, Any]
    ids: list[str]
    record: int = -1


@dataclass(slots=True)
class StoredSession:
    """One row of ``sessions``, and all that belongs to it.

    Attributes:
        ids: Of its own progression.
        messages: By id; those that any of its branches names.
        sides: Rows of other tables that tell of the session, by table.
        project_path: The folder of its project, where that is known.
    """

    id: str
    row: Row
    metadata: dict[str, Any]
    path: str
    ids: list[str] = field(default_factory=list)
    branches: dict[str, StoredBranch] = field(default_factory=dict)
    messages: dict[str, StoredMessage] = field(default_factory=dict)
    sides: dict[str, list[Row]] = field(default_factory=dict)
    project_path: str | None = None
    problems: list[Problem] = field(default_factory=list)

    def complain(self, reason: str) -> None:
        """Note what is damaged in the session."""
        self.problems.append(Problem(self.path, 0, f"session {self.id}: {reason}"))


def read_stored(connection: sqlite3.Connection, session_id: str, path: str) -> StoredSession | None:
    """Read a session's rows; None when it is not there any more."""
    found = rows(connection, "SELECT * FROM sessions WHERE id = ?", (session_id,))
    if not found:
        return None
    row = found[0]
    stored = StoredSession(session_id, row, mapping(decoded(row.get("node_metadata"))), path)
    stored.ids = _collection(connection, stored, row.get("progression_id")) or []
    for branch in rows(
        connection, "SELECT * FROM branches WHERE session_id = ? ORDER BY created_at, id",
        (session_id,),
    ):  # fmt: skip
        _take_branch(connection, stored, branch)
    _take_relatives(connection, stored)
    _take_messages(connection, stored)
    for table, condition in _SIDE.items():
        if columns(connection, table):
            sql = f"SELECT * FROM {table} WHERE {condition}"
            stored.sides[table] = rows(connection, sql, (session_id,))
    project = string(row.get("project"))
    if project is not None and "path" in columns(connection, "projects"):
        known = rows(connection, "SELECT path FROM projects WHERE name = ?", (project,))
        stored.project_path = string(known[0]["path"]) if known else None
    return stored


def _take_branch(connection: sqlite3.Connection, stored: StoredSession, row: Row) -> None:
    metadata = mapping(decoded(row.get("node_metadata")))
    ids = _collection(connection, stored, row.get("progression_id"))
    if ids is None:
        stored.complain(f"branch {row['id']} has no progression")
    stored.branches[str(row["id"])] = StoredBranch(str(row["id"]), row, metadata, ids or [])


def _take_relatives(connection: sqlite3.Connection, stored: StoredSession) -> None:
    """Read the branches of other sessions that branches here were made from."""
    wanted = list(stored.branches.values())
    while wanted:
        parent = parent_of(wanted.pop())
        if parent is None or parent in stored.branches:
            continue
        for row in rows(connection, "SELECT * FROM branches WHERE id = ?", (parent,)):
            _take_branch(connection, stored, row)
            wanted.append(stored.branches[parent])


def parent_of(branch: StoredBranch) -> str | None:
    """Return the branch that one was made from."""
    clone = mapping(branch.metadata.get("clone_from"))
    return string(clone.get("id")) or string(branch.metadata.get("parent_branch_id"))


def _collection(
    connection: sqlite3.Connection, stored: StoredSession, progression: Any
) -> list[str] | None:
    found = connection.execute(
        "SELECT collection FROM progressions WHERE id = ?", (progression,)
    ).fetchone()
    if found is None:
        return None
    ids = decoded(found[0])
    if not isinstance(ids, list):
        stored.complain(f"progression {progression} holds no list")
        return []
    return [one for one in ids if isinstance(one, str)]


def _take_messages(connection: sqlite3.Connection, stored: StoredSession) -> None:
    """Read all messages that the branches name, and those that these are copies of."""
    names = {
        row[0]: str(row[1])
        for row in connection.execute("SELECT type_id, lion_class FROM message_types")
    }
    wanted = set(stored.ids)
    for branch in stored.branches.values():
        wanted.update(branch.ids)
        system = string(branch.row.get("system_msg_id"))
        clone = mapping(branch.metadata.get("clone_from")).get("progression")
        listed = clone if isinstance(clone, list) else ()
        wanted.update(one for one in (system, *listed) if isinstance(one, str))
    asked: set[str] = set()
    while wanted := wanted - asked:
        asked |= wanted
        for row in _message_rows(connection, wanted):
            message = _message(stored, row, names)
            stored.messages[message.id] = message
        wanted = {m.clone_from for m in stored.messages.values() if m.clone_from is not None}


def _message_rows(connection: sqlite3.Connection, ids: Iterable[str]) -> list[Row]:
    names = sorted(columns(connection, "messages") - {_LEFT_OUT})
    given = orjson.dumps(sorted(ids)).decode()
    return rows(
        connection, f"SELECT {', '.join(names)} FROM messages WHERE id IN"
        " (SELECT value FROM json_each(?))", (given,),
    )  # fmt: skip


def _message(stored: StoredSession, row: Row, names: dict[Any, str]) -> StoredMessage:
    metadata, content = mapping(decoded(row.get("node_metadata"))), decoded(row.get("content"))
    name = string(metadata.get("lion_class")) or names.get(row.get("lion_class"), "")
    kind = name.rpartition(".")[2] if "." in name else ""
    if not isinstance(content, dict):
        stored.complain(f"message {row['id']} holds no JSON object")
        kind, content = "", {"unreadable": content}
    row = {**row, "node_metadata": metadata, "content": content}
    return StoredMessage(
        str(row["id"]), kind, str(row.get("role")), content, string(metadata.get("clone_from")),
        utc_ms(row.get("created_at")) or 0, row,
    )  # fmt: skip


def plain_row(table: str, row: Row, metadata: dict[str, Any] | None = None) -> bytes:
    """Return a row as an original record, without what may hold keys."""
    kept = {key: decoded(value) for key, value in row.items() if key != _LEFT_OUT}
    if metadata is not None:
        kept["node_metadata"] = {k: v for k, v in metadata.items() if k not in _SECRET}
    return record_bytes({"table": table, **kept})
