"""Converts SQLite values to row objects, whatever types a host has written."""

from __future__ import annotations

from typing import Any

from store.engine.database import Database
from store.engine.schema import REQUIRED_COLUMNS
from store.rows import MessageRow, PartRow, SessionRow
from store.text.stored_json import DamagedJson, loads

Column = str | int | float | bytes | None


def text(value: Column) -> str | None:
    """Return a value as text; invalid UTF-8 in bytes becomes U+FFFD."""
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def number(value: Column) -> int:
    """Return a value as an integer; 0 if it is not a number."""
    if type(value) is int:
        return value
    return int(value) if isinstance(value, float) and abs(value) < 2**63 else 0


def number_or_none(value: Column) -> int | None:
    """Return a value as an integer, and NULL as None."""
    return None if value is None else number(value)


def amount(value: Column) -> float:
    """Return a value as an int or float; 0 if it is not a number."""
    return value if isinstance(value, (int, float)) else 0.0


def decoded(text: str | None) -> dict[str, Any]:
    """Return a JSON column as a dict; empty if it is not a valid JSON object."""
    try:
        value = loads(text or "{}")
    except DamagedJson:
        return {}
    return value if isinstance(value, dict) else {}


def tag_names(marks: Any) -> tuple[str, ...]:
    """Return the tags among a user's marks of a session; empty if they are not a list."""
    tags = marks.get("tags") if isinstance(marks, dict) else None
    return tuple(str(tag) for tag in tags) if isinstance(tags, list) else ()


def session_columns(db: Database, table: str = "s") -> str:
    """Return the select list that ``session_row`` reads."""
    columns = REQUIRED_COLUMNS["chat_sessions"]
    return ", ".join([db.form.title(table), *(f"{table}.{name}" for name in columns)])


def session_row(row: tuple[Column, ...]) -> SessionRow:
    """Return a ``SessionRow`` from a row of ``session_columns``; further columns are ignored."""
    (title, session_id, agent, workspace_root, model_json, parent_id, parent_message_id,
     permissions_json, metadata_json, prompt_tokens, completion_tokens, reasoning_tokens,
     cache_read, cache_write, total_tokens, cost_usd, created_at, updated_at,
     archived_at, *_) = row  # fmt: skip
    return SessionRow(
        id=text(session_id) or "",
        title=text(title),
        agent=text(agent) or "",
        workspace_root=text(workspace_root),
        model_json=text(model_json),
        parent_id=text(parent_id),
        parent_message_id=text(parent_message_id),
        permissions_json=text(permissions_json) or "[]",
        metadata_json=text(metadata_json) or "{}",
        prompt_tokens=number(prompt_tokens),
        completion_tokens=number(completion_tokens),
        reasoning_tokens=number(reasoning_tokens),
        cache_read=number(cache_read),
        cache_write=number(cache_write),
        total_tokens=number(total_tokens),
        cost_usd=float(amount(cost_usd)),
        created_at=number(created_at),
        updated_at=number(updated_at),
        archived_at=number_or_none(archived_at),
    )


def message_columns(db: Database, table: str = "m") -> str:
    """Return the select list that ``message_row`` reads."""
    return (
        f"{table}.id, {table}.session_id, {table}.role, {table}.metadata_json,"
        f" {db.form.hidden_at(table)}, {table}.created_at, {table}.updated_at"
    )


def message_row(row: tuple[Column, ...]) -> MessageRow:
    """Return a ``MessageRow`` from a row of ``message_columns``."""
    message_id, session_id, role, metadata_json, hidden_at, created_at, updated_at = row
    return MessageRow(
        text(message_id) or "",
        text(session_id) or "",
        text(role) or "",
        text(metadata_json) or "{}",
        number_or_none(hidden_at),
        number(created_at),
        number(updated_at),
    )


PART_COLUMNS = (
    'p.id, p.message_id, p.session_id, p."index", p.type, p.data_json, p.tool_call_id,'
    " p.tool_state, p.created_at, p.updated_at"
)
"""The select list that ``part_row`` reads."""


def part_row(row: tuple[Column, ...]) -> PartRow:
    """Return a ``PartRow`` from a row of ``PART_COLUMNS``."""
    (part_id, message_id, session_id, index, kind, data_json, call_id, state, created_at,
     updated_at) = row  # fmt: skip
    return PartRow(
        text(part_id) or "",
        text(message_id) or "",
        text(session_id) or "",
        number(index),
        text(kind) or "",
        text(data_json) or "{}",
        text(call_id),
        text(state),
        number(created_at),
        number(updated_at),
    )
