"""A session of lionagi as its rows are, before it is mapped.

Tables and columns: the lionagi format page. Absent JSON is the text ``null``. An agent's
model settings, which may hold keys, and the embeddings are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.databases import decoded, record_bytes
from store.sources.base.protocol import Problem
from store.sources.base.row_reader import Row, RowReader, bound_ids
from store.sources.base.values import mapping, string, utc_ms

_SECRET = ("chat_model", "parse_model")
_LEFT_OUT = "embedding"
_SIDE = {
    "session_signals": ("session_id = $1", "seq"),
    "session_controls": ("session_id = $1", "created_at"),
    "status_transitions": ("entity_type = 'session' AND entity_id = $1", "created_at"),
    "run_tags": ("session_id = $1", "tag"),
    "approvals": ("session_id = $1", "proposed_at"),
}
"""Which rows are of a session, and the column that orders them."""


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
        sides: The session's rows of other tables, by table.
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


def read_stored(reader: RowReader, session_id: str, path: str) -> StoredSession | None:
    """Read a session's rows; None when it is not there any more.

    Args:
        reader: Runs the statements.
        session_id: The session's id at the source.
        path: The database, for problems.
    """
    found = reader.rows("SELECT * FROM sessions WHERE id = $1", session_id)
    if not found:
        return None
    row = found[0]
    stored = StoredSession(session_id, row, mapping(decoded(row.get("node_metadata"))), path)
    stored.ids = _collection(reader, stored, row.get("progression_id")) or []
    branches = reader.rows("SELECT * FROM branches WHERE session_id = $1", session_id)
    for branch in in_sequence(branches, "created_at", "id"):
        _take_branch(reader, stored, branch)
    _take_relatives(reader, stored)
    _take_messages(reader, stored)
    for table, (condition, column) in _SIDE.items():
        if reader.columns(table):
            sides = reader.rows(f"SELECT * FROM {table} WHERE {condition}", session_id)
            stored.sides[table] = in_sequence(sides, column)
    project = string(row.get("project"))
    if project is not None and "path" in reader.columns("projects"):
        known = reader.rows("SELECT path FROM projects WHERE name = $1", project)
        stored.project_path = string(known[0]["path"]) if known else None
    return stored


def in_sequence(rows: Iterable[Row], *columns: str) -> list[Row]:
    """Return rows in the order of some columns, NULL first, texts by their code points."""
    return sorted(rows, key=lambda row: [_rank(row.get(one)) for one in columns])


def _rank(value: Any) -> tuple[int, Any]:
    """Return what orders values of whatever types as SQLite does."""
    if value is None:
        return 0, 0
    if isinstance(value, int | float):
        return 1, value
    return (2, value) if isinstance(value, str) else (3, bytes(value))


_FORKED = ("parent_branch_id", "forked_at_ord")


def _take_branch(reader: RowReader, stored: StoredSession, row: Row) -> None:
    # Its design wants the place of a fork in columns of its own some day.
    places = {key: row[key] for key in _FORKED if row.get(key) is not None}
    metadata = places | mapping(decoded(row.get("node_metadata")))
    ids = _collection(reader, stored, row.get("progression_id"))
    if ids is None:
        stored.complain(f"branch {row['id']} has no progression")
    stored.branches[str(row["id"])] = StoredBranch(str(row["id"]), row, metadata, ids or [])


def _take_relatives(reader: RowReader, stored: StoredSession) -> None:
    """Read the branches of other sessions that branches here were made from."""
    wanted = list(stored.branches.values())
    while wanted:
        parent = parent_of(wanted.pop())
        if parent is None or parent in stored.branches:
            continue
        for row in reader.rows("SELECT * FROM branches WHERE id = $1", parent):
            _take_branch(reader, stored, row)
            wanted.append(stored.branches[parent])


def parent_of(branch: StoredBranch) -> str | None:
    """Return the branch that one was made from."""
    clone = mapping(branch.metadata.get("clone_from"))
    return string(clone.get("id")) or string(branch.metadata.get("parent_branch_id"))


def _collection(reader: RowReader, stored: StoredSession, progression: Any) -> list[str] | None:
    found = reader.rows("SELECT collection FROM progressions WHERE id = $1", progression)
    if not found:
        return None
    ids = decoded(found[0]["collection"])
    if not isinstance(ids, list):
        stored.complain(f"progression {progression} holds no list")
        return []
    return [one for one in ids if isinstance(one, str)]


def _take_messages(reader: RowReader, stored: StoredSession) -> None:
    """Read all messages that the branches name, and those that these are copies of."""
    types = reader.rows("SELECT type_id, lion_class FROM message_types")
    names = {row["type_id"]: str(row["lion_class"]) for row in types}
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
        for row in _message_rows(reader, wanted):
            message = _message(stored, row, names)
            stored.messages[message.id] = message
        wanted = {m.clone_from for m in stored.messages.values() if m.clone_from is not None}


def _message_rows(reader: RowReader, ids: Iterable[str]) -> list[Row]:
    names = ", ".join(f'"{name}"' for name in sorted(reader.columns("messages") - {_LEFT_OUT}))
    sql = f"SELECT {names} FROM messages WHERE id {reader.any_of(1)}"
    return reader.rows(sql, bound_ids(sorted(ids)))


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
    """Return a row as an original record, without what may hold keys.

    Args:
        table: Its table.
        row: The row.
        metadata: Its decoded ``node_metadata``.
    """
    kept = {key: decoded(value) for key, value in row.items() if key != _LEFT_OUT}
    if metadata is not None:
        kept["node_metadata"] = {k: v for k, v in metadata.items() if k not in _SECRET}
    return record_bytes({"table": table, **kept})
