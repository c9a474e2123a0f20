"""A session of the hub as its rows are, before it is mapped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.databases import decoded, record_bytes
from store.sources.base.ordering import in_order
from store.sources.base.protocol import Problem
from store.sources.base.row_reader import Row, RowReader
from store.sources.base.values import mapping, ms_or_0, string, utc_ms


@dataclass(slots=True)
class StoredPart:
    """One row of ``parts``.

    Attributes:
        data: The decoded column.
        created_at: Epoch ms.
        record: Number of its original record.
    """

    id: str
    type: str
    data: dict[str, Any]
    created_at: int
    updated_at: int
    record: int = -1


@dataclass(slots=True)
class StoredMessage:
    """One row of ``messages``, with its parts in order."""

    id: str
    role: str
    data: dict[str, Any]
    created_at: int
    updated_at: int
    records: tuple[int, ...] = ()
    parts: list[StoredPart] = field(default_factory=list)


@dataclass(slots=True)
class StoredSession:
    """One row of ``sessions``, and all that belongs to it.

    Attributes:
        row: The row, JSON columns decoded.
        records: The original rows, as JSON.
    """

    id: str
    row: Row
    path: str
    messages: list[StoredMessage] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def keep(self, table: str, row: Row) -> int:
        """Keep an original row; return its number."""
        self.records.append(record_bytes({"table": table, **row}))
        return len(self.records) - 1

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
    row = {**found[0], **{key: decoded(found[0].get(key)) for key in ("metadata", "data")}}
    stored = StoredSession(session_id, row, path)
    stored.keep("sessions", row)
    _read_messages(reader, stored)
    return stored


def _read_messages(reader: RowReader, stored: StoredSession) -> None:
    """Read messages and parts; parts without a message are in one of their own."""
    messages: dict[str, StoredMessage] = {}
    originals: dict[str, Row] = {}
    for row in reader.rows("SELECT * FROM messages WHERE session_id = $1", stored.id):
        message = _message(stored, row)
        messages[message.id] = message
        originals[message.id] = {**row, "data": message.data}
    # Two halves with an index each: for an OR, PostgreSQL reads the whole table.
    by_message = (
        "SELECT * FROM parts WHERE session_id = $1 UNION ALL"
        " SELECT parts.* FROM messages JOIN parts ON parts.message_id = messages.id"
        " WHERE messages.session_id = $1"
        " AND (parts.session_id IS NULL OR parts.session_id <> $1)"
    )
    for row in reader.rows(by_message, stored.id):
        part = _take_part(stored, messages, row)
        originals[part.id] = {**row, "data": part.data}
    stored.messages = in_order(messages.values(), lambda m: m.id, lambda m: m.created_at)
    for message in stored.messages:
        if message.id in originals:
            message.records = (stored.keep("messages", originals[message.id]),)
        message.parts = in_order(message.parts, lambda p: p.id, lambda p: p.created_at)
        for part in message.parts:
            part.record = stored.keep("parts", originals[part.id])


def _message(stored: StoredSession, row: Row) -> StoredMessage:
    data = _object(stored, "message", row)
    at = utc_ms(row.get("created_at")) or ms_or_0(mapping(data.get("time")).get("created"))
    role = string(row.get("role")) or ""
    return StoredMessage(str(row["id"]), role, data, at, utc_ms(row.get("updated_at")) or at)


def _take_part(stored: StoredSession, messages: dict[str, StoredMessage], row: Row) -> StoredPart:
    at, message_id = utc_ms(row.get("created_at")) or 0, str(row.get("message_id"))
    message = messages.get(message_id)
    if message is None:
        stored.complain(f"part {row['id']} belongs to message {message_id}, which is missing")
        message = messages[message_id] = StoredMessage(message_id, "", {}, at, at)
    data, kind = _object(stored, "part", row), string(row.get("type")) or "part"
    part = StoredPart(str(row["id"]), kind, data, at, utc_ms(row.get("updated_at")) or at)
    message.parts.append(part)
    return part


def _object(stored: StoredSession, what: str, row: Row) -> dict[str, Any]:
    data = decoded(row.get("data"))
    if isinstance(data, dict):
        return data
    stored.complain(f"{what} {row.get('id')} holds no JSON object")
    return {"unreadable": row.get("data")}
