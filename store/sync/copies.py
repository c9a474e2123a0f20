"""Files that claim to be one session: copies, and those that went on by themselves.

A backup, a conflicted copy or a second root holds a session again. What it has in common is
stored once. Where it has messages that the stored one lacks, and lacks some itself, neither
stands for the other: it is kept as a session of its own, a fork with the same source id.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import orjson

from store.conversation.copy_marks import COPY_OF, FOUND_AT
from store.conversation.gone_marks import GONE, PARTIAL
from store.ids import derived_session_id, derived_tail
from store.sources.base.one_file import is_one_file, name_order
from store.sync.jsontext import json_text
from store.sync.session_rows import MessageTuple, PartTuple, PreparedSession

_STAMPED = len("msg_") + 12
"""Characters of an id before its tail."""
_Mark = tuple[str, int, str]
"""Source id, time and words of a message: some sources name messages by their place."""


def as_stored(
    connection: sqlite3.Connection, prepared: PreparedSession, read_from: Collection[str]
) -> PreparedSession | None:
    """Return a session as it is to be written.

    Args:
        connection: In a transaction.
        prepared: What was read.
        read_from: The files that it was read from.

    Returns:
        The same, or a copy of it with ids of its own; None where all of its messages are
        stored from another file.
    """
    row = connection.execute(
        "SELECT json_extract(metadata_json, '$.source') FROM chat_sessions WHERE id = ?",
        (prepared.id,),
    ).fetchone()
    source = orjson.loads(row[0]) if row is not None and row[0] is not None else {}
    path = source.get("path")
    if path is None or path == prepared.path or source.get(PARTIAL) or prepared.partial:
        return prepared
    if prepared.first_record:
        return prepared
    stored = _stored_marks(connection, prepared.id)
    found_at = _found_at(connection, prepared)
    if found_at is not None:
        return _copy(prepared, stored, found_at)
    if path in read_from or not os.path.exists(path) or is_one_file(path, prepared.path):
        return prepared
    own = frozenset(_marks(prepared))
    if own == stored:
        return prepared if _tells_more(connection, prepared, path) else None
    if own < stored:
        return None
    return prepared if stored < own else _copy(prepared, stored, prepared.path)


def _tells_more(connection: sqlite3.Connection, prepared: PreparedSession, path: str) -> bool:
    """Tell which of two files with the same messages is to be the session's.

    A copy may have been cut short within the last answer. Of files that say the same in one
    folder, or in folders beside each other, it is the one with the better name, whichever was
    read first; a backup elsewhere changes nothing.
    """
    parts, tokens = connection.execute(
        "SELECT (SELECT count(*) FROM chat_parts p WHERE p.session_id = s.id), s.total_tokens"
        " FROM chat_sessions s WHERE s.id = ?",
        (prepared.id,),
    ).fetchone()
    own = len(prepared.parts), prepared.rollups[5]
    if own != (parts, tokens):
        return own > (parts, tokens)
    near = os.path.dirname(os.path.dirname(prepared.path)) == os.path.dirname(os.path.dirname(path))
    return near and name_order(prepared.path) < name_order(path)


def _name(prepared: PreparedSession, found_at: str) -> str:
    return f"{prepared.metadata['source']['id']}\0{found_at}"


def _found_at(connection: sqlite3.Connection, prepared: PreparedSession) -> str | None:
    """Return where the file was first, of one that the store has as a copy already.

    The copy's ids follow from that path. A file that is moved keeps its name and what it says.
    """
    name = derived_session_id(prepared.kind, _name(prepared, prepared.path))
    if connection.execute("SELECT 1 FROM chat_sessions WHERE id = ?", (name,)).fetchone():
        return prepared.path
    copies = connection.execute(
        "SELECT s.id, json_extract(s.metadata_json, '$.source') FROM session_links l"
        " JOIN chat_sessions s ON s.id = l.session_id WHERE l.parent_id = ?"
        " AND json_extract(s.metadata_json, ?) = ? ORDER BY s.id",
        (prepared.id, f"$.source.{COPY_OF}", prepared.id),
    ).fetchall()
    for copy, text in copies:
        source = orjson.loads(text)
        path, found_at = source["path"], source.get(FOUND_AT) or source["path"]
        if path == prepared.path:
            return str(found_at)
        moved = os.path.basename(path) == os.path.basename(prepared.path)
        moved = moved and not os.path.exists(path)
        if moved and _stored_marks(connection, copy) <= frozenset(_marks(prepared)):
            return str(found_at)
    return None


def _stored_marks(connection: sqlite3.Connection, session_id: str) -> frozenset[_Mark]:
    texts = _texts(
        connection.execute(
            "SELECT message_id, data_json FROM chat_parts WHERE session_id = ? AND type = 'text'"
            ' ORDER BY message_id, "index"',
            (session_id,),
        )
    )
    rows = connection.execute(
        "SELECT id, role, metadata_json, created_at FROM chat_messages WHERE session_id = ?",
        (session_id,),
    )
    found = (
        (orjson.loads(metadata)["source"], message_id, role, at)
        for message_id, role, metadata, at in rows
    )
    return frozenset(
        _mark(source, role, at, texts.get(message_id, ""))
        for source, message_id, role, at in found
        if GONE not in source
    )


def _marks(prepared: PreparedSession) -> list[_Mark]:
    """Return the mark of each message."""
    texts = _texts((row[1], row[5]) for row in prepared.parts if row[4] == "text")
    return [
        _mark(orjson.loads(row[3])["source"], row[2], row[4], texts.get(row[0], ""))
        for row in prepared.messages
    ]


def _mark(source: dict[str, Any], role: str, at: int, text: str) -> _Mark:
    """Return a message's mark; an answer that names its request may be cut short in a copy."""
    answer = source.get("answer")
    if role == "assistant" and isinstance(answer, list) and len(answer) > 1 and answer[1]:
        text = f"{answer[0]} {answer[1]}"
    return str(source["id"]), at, text


def _texts(parts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the words of each message, by its id."""
    found: dict[str, str] = {}
    for message_id, data in parts:
        text = orjson.loads(data).get("text")
        found[message_id] = f"{found.get(message_id, '')}\n{text}"
    return found


def _copy(
    prepared: PreparedSession, stored: frozenset[_Mark], found_at: str
) -> PreparedSession:
    """Return a session as a fork of the stored one, under ids that its path tells apart."""
    naming = _name(prepared, found_at)
    session_id = derived_session_id(prepared.kind, naming)
    ids: dict[str, str] = {}
    tails: dict[str, str] = {}
    messages: list[MessageTuple] = []
    inherited = dict(prepared.inherited)
    shared: str | None = None
    marks = _marks(prepared)
    for place, (name, row) in enumerate(
        zip(prepared.message_names, prepared.messages, strict=True)
    ):
        tail = derived_tail(prepared.kind, naming, name)
        ids[row[0]] = row[0][:_STAMPED] + tail
        tails[row[0]] = tail
        text = row[3]
        if marks[place] in stored:
            shared, inherited[place] = name, name
            text = _inheriting(text, name)
        messages.append((ids[row[0]], session_id, row[2], text, *row[4:]))
    return replace(
        prepared,
        id=session_id,
        metadata=_metadata(prepared, shared is not None, found_at),
        messages=messages,
        parts=[_part(row, session_id, ids, tails) for row in prepared.parts],
        refs=[(ids[message], records) for message, records in prepared.refs],
        inherited=inherited,
        **_lineage(prepared, shared),
    )


def _metadata(prepared: PreparedSession, is_fork: bool, found_at: str) -> dict[str, Any]:
    metadata = dict(prepared.metadata)
    metadata["source"] = {**metadata["source"], COPY_OF: prepared.id}
    if found_at != prepared.path:
        metadata["source"][FOUND_AT] = found_at
    if isinstance(title := metadata.get("title"), str):
        metadata["title"] = f"{title} (copy)"
    if prepared.lineage_kind != "subagent":
        kind = "fork" if is_fork else "unknown"
        metadata["lineage"] = {"kind": kind, "parent_source_id": metadata["source"]["id"]}
    return metadata


def _lineage(prepared: PreparedSession, shared: str | None) -> dict[str, Any]:
    if prepared.lineage_kind == "subagent":
        return {}
    kind = "fork" if shared is not None else "unknown"
    return {"parent_id": prepared.id, "parent_message": shared, "lineage_kind": kind}


def _inheriting(metadata_json: str, name: str) -> str:
    metadata = orjson.loads(metadata_json)
    metadata["source"] = {**metadata["source"], "inherited_from": name}
    return json_text(metadata)


def _part(
    row: PartTuple, session_id: str, ids: dict[str, str], tails: dict[str, str]
) -> PartTuple:
    data = row[5]
    if row[4] == "data-compaction":
        part = orjson.loads(data)
        own = part.get("data")
        if isinstance(own, dict) and own.get("tail_start_id") in ids:
            own["tail_start_id"] = ids[own["tail_start_id"]]
            data = json_text(part)
    part_id = row[0][:_STAMPED] + tails[row[1]]
    return (part_id, ids[row[1]], session_id, *row[3:5], data, *row[6:])
