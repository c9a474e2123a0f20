"""Converts what SQLite returns to row objects of the three tables."""

from __future__ import annotations

from collections.abc import Callable

from store.engine.database import Database
from store.engine.schema import REQUIRED_COLUMNS
from store.engine.values import Column, amount, number, number_or_none, text
from store.rows import MessageRow, PartRow, SessionRow


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


def message_maker(db: Database) -> Callable[..., MessageRow]:
    """Return what makes a ``MessageRow`` of the values of ``message_columns``."""
    return MessageRow if db.has_types else lambda *row: message_row(row)


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


def part_maker(db: Database) -> Callable[..., PartRow]:
    """Return what makes a ``PartRow`` of the values of ``PART_COLUMNS``."""
    return PartRow if db.has_types else lambda *row: part_row(row)


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
