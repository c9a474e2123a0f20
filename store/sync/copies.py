"""Several files with the same session id: identical copies, and copies that diverged.

A backup, a conflicted copy or a second root can contain a session again. An identical copy,
or one that is a prefix, is stored once. Of files that diverged one is the session; the others
are stored as separate sessions: forks with the same source id. Names and content decide which
one it is (``_rank``), not which was read first: a file that comes later may take its place, and
what was stored becomes a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from store.conversation.copy_marks import COPY_OF, FOUND_AT
from store.conversation.gone_marks import GONE, PARTIAL
from store.engine.connection import Connection
from store.ids import derived_session_id, derived_tail
from store.sources.base.one_file import is_named_as_copy, name_order
from store.sync.blocks import Block
from store.sync.jsontext import json_text
from store.sync.server_places import is_one_place, is_there
from store.sync.session_rows import MessageTuple, PartTuple, PreparedSession
from store.usage import Rollups

_STAMPED = len("msg_") + 12
"""Characters of an id before its tail."""
_Mark = tuple[str, int, str]
"""Source id, time and text of a message; in some sources the id is only the position."""


class ToWrite(NamedTuple):
    """What is written for a file.

    Attributes:
        session: The same session, or a copy with new ids.
        displaced: The stored session as the copy that it becomes, because this file is the
            session now.
        superseded: Ids of stored copies that have no message beyond those of this one.
    """

    session: PreparedSession
    displaced: PreparedSession | None = None
    superseded: Sequence[str] = ()


def session_to_write(
    connection: Connection, prepared: PreparedSession, read_from: Collection[str]
) -> ToWrite | None:
    """Return what to write for a file, or None if it adds nothing.

    Args:
        connection: In a transaction.
        prepared: The session as read.
        read_from: Paths of the files that it was read from.

    Returns:
        None where another file already provided all of its messages.
    """
    row = connection.execute(
        "SELECT json_extract(metadata_json, '$.source') FROM chat_sessions WHERE id = ?",
        (prepared.id,),
    ).fetchone()
    source = orjson.loads(row[0]) if row is not None and row[0] is not None else {}
    path = source.get("path")
    if path is None or path == prepared.path or source.get(PARTIAL) or prepared.partial:
        return ToWrite(prepared)
    if prepared.first_record or prepared.holds_stored:
        return ToWrite(prepared)
    before = _stored_marks(connection, prepared.id)
    stored = frozenset(before)
    ever = frozenset(_stored_marks(connection, prepared.id, with_gone=True))
    found_at = _found_at(connection, prepared)
    if found_at is not None:
        return ToWrite(_copy(prepared, ever, found_at))
    if path in read_from or is_one_place(connection, path, prepared.path):
        return ToWrite(prepared)
    marks = _marks(prepared)
    own = frozenset(marks)
    superseded = []
    if not own <= stored:
        for copy, at, has_user in _other_copies(connection, prepared):
            there = frozenset(_stored_marks(connection, copy))
            if own < there or (own == there and name_order(at) < name_order(prepared.path)):
                return None
            if there <= own and not has_user:
                superseded.append(copy)
    if not is_there(connection, path):
        return ToWrite(prepared)
    if own == stored:
        return ToWrite(prepared) if _is_preferred(connection, prepared, path) else None
    if own < stored:
        return None
    if stored < own:
        return ToWrite(prepared)
    if _rank(prepared.path, marks) < _rank(path, before):
        displaced = _copy(_stored_session(connection, prepared, path), own, path)
        return ToWrite(prepared, displaced)
    return ToWrite(_copy(prepared, ever, prepared.path), superseded=superseded)


def _rank(path: str, marks: Sequence[_Mark]) -> tuple[object, ...]:
    """Return what the files of one session are ordered by: the least one is the session.

    Names that programs give to copies come last. Then the file comes first whose messages went
    on earlier where the files part; appending to them does not change that.
    """
    on = [(at, name, text) for name, at, text in marks]
    return is_named_as_copy(path), [*on, (_NEVER, "", "")]


_NEVER = 1 << 62


def _other_copies(
    connection: Connection, prepared: PreparedSession
) -> list[tuple[str, str, bool]]:
    """Return id, path, and whether the user marked it, of the stored copies that have a file."""
    rows = connection.execute(
        "SELECT s.id, json_extract(s.metadata_json, '$.source.path'),"
        " json_extract(s.metadata_json, '$.user') IS NOT NULL FROM session_links l"
        " JOIN chat_sessions s ON s.id = l.session_id WHERE l.parent_id = ?"
        " AND json_extract(s.metadata_json, ?) = ? ORDER BY s.id",
        (prepared.id, f"$.source.{COPY_OF}", prepared.id),
    )
    return [(copy, path, bool(user)) for copy, path, user in rows if is_there(connection, path)]


def copies_of(connection: Connection, session_id: str) -> list[str]:
    """Return the ids of a session's stored copies."""
    rows = connection.execute(
        "SELECT s.id FROM session_links l JOIN chat_sessions s ON s.id = l.session_id"
        " WHERE l.parent_id = ? AND json_extract(s.metadata_json, ?) = ? ORDER BY s.id",
        (session_id, f"$.source.{COPY_OF}", session_id),
    )
    return [copy for (copy,) in rows]


def _stored_session(
    connection: Connection, prepared: PreparedSession, path: str
) -> PreparedSession:
    """Return a session's stored rows, as they were read from another file.

    Args:
        connection: In a transaction.
        prepared: The same session as another file has it.
        path: The file that the stored rows are of.
    """
    agent, workspace, model, text, *totals = connection.execute(
        f"SELECT agent, workspace_root, model_json, metadata_json, {', '.join(Rollups._fields)},"
        " created_at, updated_at FROM chat_sessions WHERE id = ?",
        (prepared.id,),
    ).fetchone()
    metadata = {key: value for key, value in orjson.loads(text).items() if key != "user"}
    messages = connection.execute(
        "SELECT id, session_id, role, metadata_json, created_at, updated_at FROM chat_messages"
        " WHERE session_id = ? ORDER BY created_at, id",
        (prepared.id,),
    ).fetchall()
    sources = [orjson.loads(row[3])["source"] for row in messages]
    blocks = connection.execute(
        "SELECT first, count, checksum, body FROM original_records WHERE session_id = ?"
        " ORDER BY first",
        (prepared.id,),
    ).fetchall()
    lineage = metadata.get("lineage") or {}
    return replace(
        prepared,
        path=path, agent=agent, workspace_root=workspace, model_json=model, metadata=metadata,
        rollups=Rollups(*totals[:7]), created_at=totals[7], updated_at=totals[8],
        archived_at=None, parent_id=None, parent_message=None, lineage_kind=lineage.get("kind"),
        messages=messages,
        message_names=[str(source["id"]) for source in sources],
        inherited={
            place: source["inherited_from"] for place, source in enumerate(sources)
            if "inherited_from" in source
        },
        parts=connection.execute(
            'SELECT id, message_id, session_id, "index", type, data_json, tool_call_id,'
            " tool_state, created_at, updated_at FROM chat_parts WHERE session_id = ?"
            ' ORDER BY message_id, "index"',
            (prepared.id,),
        ).fetchall(),
        refs=connection.execute(
            "SELECT message_id, records_json FROM record_refs WHERE message_id IN"
            " (SELECT id FROM chat_messages WHERE session_id = ?)",
            (prepared.id,),
        ).fetchall(),
        blocks=[Block(first, count, checksum, None, body)
                for first, count, checksum, body in blocks],
        attachments=[],
    )  # fmt: skip


def _is_preferred(connection: Connection, prepared: PreparedSession, path: str) -> bool:
    """Return whether this file, not the stored one, should be the session's file.

    The messages are the same, but one file may be truncated within the last answer. Of equal
    files the better name wins, whichever was read first.
    """
    parts, tokens = connection.execute(
        "SELECT (SELECT count(*) FROM chat_parts p WHERE p.session_id = s.id), s.total_tokens"
        " FROM chat_sessions s WHERE s.id = ?",
        (prepared.id,),
    ).fetchone()
    own = len(prepared.parts), prepared.rollups[5]
    if own != (parts, tokens):
        return own > (parts, tokens)
    named = is_named_as_copy(prepared.path), *name_order(prepared.path)
    return named < (is_named_as_copy(path), *name_order(path))


def _name(prepared: PreparedSession, found_at: str) -> str:
    return f"{prepared.metadata['source']['id']}\0{found_at}"


def _found_at(connection: Connection, prepared: PreparedSession) -> str | None:
    """Return the first path of a file that is stored as a copy; None if it is not.

    The copy's ids are derived from that path. A moved file, or another copy of one that is gone,
    is recognized by its messages.
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
        if is_there(connection, path):
            continue
        if frozenset(_stored_marks(connection, copy)) <= frozenset(_marks(prepared)):
            return str(found_at)
    return None


def _stored_marks(
    connection: Connection, session_id: str, *, with_gone: bool = False
) -> list[_Mark]:
    """Return the comparison key of each stored message that its source has, in order.

    Args:
        connection: In a transaction.
        session_id: The session.
        with_gone: Whether to add those that its source no longer has.
    """
    texts = _texts(
        connection.execute(
            "SELECT message_id, data_json FROM chat_parts WHERE session_id = ? AND type = 'text'"
            ' ORDER BY message_id, "index"',
            (session_id,),
        )
    )
    rows = connection.execute(
        "SELECT id, role, metadata_json, created_at FROM chat_messages WHERE session_id = ?"
        " ORDER BY created_at, id",
        (session_id,),
    )
    found = (
        (orjson.loads(metadata)["source"], message_id, role, at)
        for message_id, role, metadata, at in rows
    )
    return [
        _mark(source, role, at, texts.get(message_id, ""))
        for source, message_id, role, at in found
        if with_gone or GONE not in source
    ]


def _marks(prepared: PreparedSession) -> list[_Mark]:
    """Return the comparison key of each message."""
    texts = _texts((row[1], row[5]) for row in prepared.parts if row[4] == "text")
    return [
        _mark(orjson.loads(row[3])["source"], row[2], row[4], texts.get(row[0], ""))
        for row in prepared.messages
    ]


def _mark(source: dict[str, Any], role: str, at: int, text: str) -> _Mark:
    """Return a message's comparison key.

    Answers are compared by their ids where they have a request id: their text may be
    truncated in a copy.
    """
    answer = source.get("answer")
    if role == "assistant" and isinstance(answer, list) and len(answer) > 1 and answer[1]:
        text = f"{answer[0]} {answer[1]}"
    return str(source["id"]), at, text


def _texts(parts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the text of each message, by its id."""
    found: dict[str, str] = {}
    for message_id, data in parts:
        text = orjson.loads(data).get("text")
        found[message_id] = f"{found.get(message_id, '')}\n{text}"
    return found


def _copy(
    prepared: PreparedSession, stored: frozenset[_Mark], found_at: str
) -> PreparedSession:
    """Return a session as a fork of the stored one, with ids derived from its path."""
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
