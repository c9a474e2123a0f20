"""Writes those messages and parts of a session that differ from the stored ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from store.engine.database import Database
from store.sync import links, user_overrides
from store.sync.jsontext import json_text
from store.sync.session_rows import MessageTuple, PartTuple, PreparedSession

INSERT_MESSAGE = (
    "INSERT INTO chat_messages(id, session_id, role, metadata_json, created_at, updated_at) "
    "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET role = excluded.role, "
    "metadata_json = excluded.metadata_json, created_at = excluded.created_at, "
    "updated_at = excluded.updated_at"
)
INSERT_PART = (
    'INSERT INTO chat_parts(id, message_id, session_id, "index", type, data_json, tool_call_id, '
    "tool_state, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT(id) DO UPDATE SET type = excluded.type, data_json = excluded.data_json, "
    "tool_call_id = excluded.tool_call_id, tool_state = excluded.tool_state, "
    "created_at = excluded.created_at, updated_at = excluded.updated_at"
)
INSERT_REFS = (
    "INSERT INTO record_refs(message_id, records_json) VALUES (?, ?) "
    "ON CONFLICT(message_id) DO UPDATE SET records_json = excluded.records_json "
    "WHERE records_json <> excluded.records_json"
)


class WrittenRows(NamedTuple):
    """What was written of a session's messages.

    Attributes:
        touched: Ids of the messages that changed.
        removed: Whether any was removed; ``added``, whether any was added.
        forks: The forks that now name another message of the session.
    """

    touched: list[str]
    removed: bool
    added: bool
    forks: list[str]


def write_messages(
    database: Database,
    prepared: PreparedSession,
    found: links.Links,
    new: bool,
    only: Collection[str] | None = None,
    moved: Mapping[str, str] | None = None,
    keep_links: bool = False,
) -> WrittenRows:
    """Write a session's messages and parts; return what changed.

    Args:
        database: The library.
        prepared: The rows.
        found: The session's resolved links.
        new: Whether the session is not in the store yet.
        only: Ids of the messages whose rows may differ; None for all.
        moved: Stored message ids to new ids; None to match messages by source id.
        keep_links: Whether parts keep their stored links (see ``user_overrides``).
    """
    if new:
        return WrittenRows([], False, _write_new(database, prepared, found), [])
    connection = database.connection
    stored, names = _stored_messages(database, prepared.id, only)
    if moved is None:
        moved = {
            names[name]: row[0]
            for row, name in zip(prepared.messages, prepared.message_names, strict=True)
            if names.get(name, row[0]) != row[0]
        }
    texts = {moved.get(message_id, message_id): row[3] for message_id, row in stored.items()}
    messages = _linked(prepared, found, texts)
    now = {row[0] for row in messages}
    gone = [message_id for message_id in stored if message_id not in now]
    forks = links.follow_moved(connection, prepared.id, moved) if moved else []
    connection.executemany("DELETE FROM chat_messages WHERE id = ?", ((one,) for one in gone))
    different = [row for row in messages if stored.get(row[0]) != row]
    connection.executemany(INSERT_MESSAGE, different)
    touched = dict.fromkeys(gone)
    touched.update(dict.fromkeys(row[0] for row in different))
    touched.update(dict.fromkeys(_write_parts(database, prepared, only, keep_links)))
    if prepared.refs:
        connection.executemany(INSERT_REFS, prepared.refs)
    added = any(row[0] not in stored for row in different)
    return WrittenRows(list(touched), bool(gone), added, forks)


def _write_new(database: Database, prepared: PreparedSession, found: links.Links) -> bool:
    """Write the messages of a new session; return whether there are any."""
    messages = _linked(prepared, found, {})
    for statement, rows in (
        (INSERT_MESSAGE, messages),
        (INSERT_PART, prepared.parts),
        (INSERT_REFS, prepared.refs),
    ):
        database.connection.executemany(statement.partition(" ON CONFLICT")[0], rows)
    return bool(messages)


def _write_parts(
    database: Database,
    prepared: PreparedSession,
    only: Collection[str] | None,
    keep_links: bool,
) -> list[str]:
    """Write changed parts and delete missing ones; return the ids of their messages."""
    connection = database.connection
    stored = {
        row[0]: row
        for row in connection.execute(
            'SELECT id, message_id, session_id, "index", type, data_json, tool_call_id, '
            "tool_state, created_at, updated_at FROM chat_parts WHERE "
            + _rows_of("message_id", only),
            _bound(prepared.id, only),
        )
    }
    different = []
    for part in prepared.parts:
        before = stored.pop(part[0], None)
        if before is not None and before != part and keep_links and _same_part(before, part):
            part = (*part[:5], user_overrides.part_data(part[5], before[5]), *part[6:])
        if before != part:
            different.append(part)
    connection.executemany("DELETE FROM chat_parts WHERE id = ?", ((one,) for one in stored))
    connection.executemany(INSERT_PART, different)
    return [row[1] for row in stored.values()] + [row[1] for row in different]


def _same_part(one: PartTuple, other: PartTuple) -> bool:
    return (one[4], one[6]) == (other[4], other[6])


def _rows_of(column: str, only: Collection[str] | None) -> str:
    """Return the SQL condition for the rows of a session, or of some of its messages."""
    if only is None:
        return "session_id = ?"
    # The plus keeps SQLite from scanning the whole session by its index.
    return f"+session_id = ? AND {column} IN (SELECT value FROM json_each(?))"


def _bound(session_id: str, only: Collection[str] | None) -> tuple[str, ...]:
    """Return what is bound in the condition of ``_rows_of``; SQLite binds no more than so many."""
    return (session_id,) if only is None else (session_id, json_text(sorted(only)))


def _stored_messages(
    database: Database, session_id: str, only: Collection[str] | None
) -> tuple[dict[str, MessageTuple], dict[str, str]]:
    """Return the stored rows by id, and the ids by source id."""
    rows: dict[str, MessageTuple] = {}
    names: dict[str, str] = {}
    for name, *row in database.connection.execute(
        "SELECT json_extract(metadata_json, '$.source.id'), id, session_id, role, "
        "metadata_json, created_at, updated_at FROM chat_messages WHERE "
        + _rows_of("id", only),
        _bound(session_id, only),
    ):
        message_id, _, role, metadata, created, updated = row
        rows[message_id] = (message_id, session_id, role, metadata, created, updated)
        names[str(name)] = message_id
    return rows, names


def _linked(
    prepared: PreparedSession, found: links.Links, texts: Mapping[str, str]
) -> list[MessageTuple]:
    """Return the message rows with the parent's ids and the user's marks added.

    Args:
        prepared: The rows.
        found: The session's resolved links.
        texts: Stored ``metadata_json`` by the messages' new ids.
    """
    if not texts and not found.originals:
        return prepared.messages
    originals = found.originals or {}
    result = []
    for position, row in enumerate(prepared.messages):
        copied_from = originals.get(prepared.inherited.get(position, ""))
        stored = texts.get(row[0])
        metadata = user_overrides.message_metadata(row[3], stored, copied_from)
        result.append(row if metadata is row[3] else (*row[:3], metadata, *row[4:]))
    return result
