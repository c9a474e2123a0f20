"""Finds the stored message that a stream goes on with, and reads it back for going on."""

from __future__ import annotations

from dataclasses import dataclass

from store.engine.database import Database
from store.engine.large_parts import data_columns, large_data
from store.recorder.json_text import parse, storable
from store.recorder.parts import Part
from store.recorder.reading import OWN_KEY

_LIVE_STATES = "('approval-responded')"


@dataclass(slots=True)
class StoredMessage:
    """A message as it is stored.

    Attributes:
        metadata: Decoded.
        parts: Their rows, in order.
    """

    id: str
    role: str
    created_at: int
    metadata: dict[str, object]
    parts: list[Part]


def by_name(db: Database, session_id: str, name: str) -> str | None:
    """Return the id of the newest visible message with this row id or stream id.

    Args:
        db: The store.
        session_id: The session's id.
        name: The row's id, or the stream's id of the message.
    """
    found = db.connection.execute(
        "SELECT m.id FROM chat_messages m WHERE m.session_id = $1 AND (m.id = $2 OR"
        f" {db.form.fact('m', f'{OWN_KEY}.sdk_message_id')} = $2)"
        f" AND {db.form.shown('m')} ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
        {"1": session_id, "2": storable(name)},
    ).fetchone()
    return None if found is None else str(found[0])


def last_by_name(db: Database, session_id: str, name: str) -> str | None:
    """Return the id of the last visible message, where it has this row id or stream id.

    As the SDK does: a stream whose message is further up gets a new one, so
    that no answer comes before its question.

    Args:
        db: The store.
        session_id: The session's id.
        name: The row's id, or the stream's id of the message.
    """
    found = db.connection.execute(
        "SELECT m.id, m.id = $2 OR coalesce("
        f"{db.form.fact('m', f'{OWN_KEY}.sdk_message_id')} = $2, FALSE)"
        f" FROM chat_messages m WHERE m.session_id = $1 AND {db.form.shown('m')}"
        " ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
        {"1": session_id, "2": storable(name)},
    ).fetchone()
    return str(found[0]) if found is not None and found[1] else None


def by_call(db: Database, session_id: str, call_id: str) -> str | None:
    """Return the id of the newest visible message with this tool call.

    Args:
        db: The store.
        session_id: The session's id.
        call_id: The tool call's id.
    """
    found = db.connection.execute(
        "SELECT m.id FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id"
        " WHERE p.tool_call_id = $2 AND p.session_id = $1"
        f" AND {db.form.shown('m')} ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
        {"1": session_id, "2": storable(call_id)},
    ).fetchone()
    return None if found is None else str(found[0])


def by_approval(db: Database, session_id: str, approval_id: str) -> str | None:
    """Return the id of the newest visible message with a request for this approval.

    Args:
        db: The store.
        session_id: The session's id.
        approval_id: The approval's id.
    """
    found = db.connection.execute(
        "SELECT m.id FROM chat_messages m JOIN chat_parts p ON p.message_id = m.id"
        " WHERE m.session_id = $1 AND p.tool_state IS NOT NULL"
        f" AND {db.sql.fact('p.data_json', 'approval.id')} = $2"
        f" AND {db.form.shown('m')} ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
        {"1": session_id, "2": storable(approval_id)},
    ).fetchone()
    return None if found is None else str(found[0])


def answered_last(db: Database, session_id: str) -> str | None:
    """Return the id of the last visible message, where the user has answered its calls."""
    continues = db.sql.is_set("m.metadata_json", f"{OWN_KEY}.continues")
    found = db.connection.execute(
        f"SELECT m.id, m.role, {continues} OR EXISTS (SELECT 1"
        f" FROM chat_parts p WHERE p.message_id = m.id AND p.tool_state IN {_LIVE_STATES})"
        f" FROM chat_messages m WHERE m.session_id = $1 AND {db.form.shown('m')}"
        " ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
        {"1": session_id},
    ).fetchone()
    return str(found[0]) if found is not None and found[1] == "assistant" and found[2] else None


def broken_off(db: Database, session_id: str) -> str | None:
    """Return the id of the last visible message if its recording was interrupted, or None."""
    ended = " AND ".join(
        f"NOT {_has(db, key)}"
        for key in ("finish_reason", "aborted_at", "protocol_error")
    )
    found = db.connection.execute(
        "SELECT m.id, m.role = 'assistant' AND"
        f" ({_has(db, 'interrupted_at')} OR ({ended}"
        f" AND ({_has(db, 'error')} OR EXISTS (SELECT 1"
        " FROM chat_parts p WHERE p.message_id = m.id AND p.tool_state = 'approval-requested'))))"
        f" FROM chat_messages m WHERE m.session_id = $1 AND {db.form.shown('m')}"
        " ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
        {"1": session_id},
    ).fetchone()
    return str(found[0]) if found is not None and found[1] else None


def _has(db: Database, key: str) -> str:
    return db.sql.is_there("m.metadata_json", f"{OWN_KEY}.{key}")


def load(db: Database, message_id: str) -> StoredMessage:
    """Return a message that is there, to go on with."""
    message = db.connection.execute(
        "SELECT role, created_at, metadata_json FROM chat_messages WHERE id = $1",
        {"1": message_id},
    ).fetchone()
    small, large = data_columns(db)
    rows = db.connection.execute(
        f'SELECT id, "index", {small}, {large}, type, tool_call_id, tool_state, created_at'
        ' FROM chat_parts WHERE message_id = $1 ORDER BY "index"',
        {"1": message_id},
    ).fetchall()
    parts = []
    for row_id, index, data_json, rowid, kind, call_id, state, created_at in rows:
        data = parse(data_json) if rowid is None else large_data(db, rowid, parse)
        shape = data if isinstance(data, dict) else {"data": data}
        shape.setdefault("type", kind)
        part = Part(shape, index, row_id, created_at)
        part.stored, part.dirty = (kind, call_id, state), False
        parts.append(part)
    metadata = parse(message[2])
    return StoredMessage(
        message_id, message[0], message[1], metadata if isinstance(metadata, dict) else {}, parts
    )
