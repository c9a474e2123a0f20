"""Keeps a session's stored lineage when its source can no longer provide it.

With some agents a fork is detected by comparing it with its parent. When the parent's file
or rows are gone, a reading has no lineage, or less than an earlier one. The stored lineage
is kept while the library has the parent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from store.engine.connection import Connection
from store.sync.jsontext import json_text
from store.sync.server_places import is_there
from store.sync.session_rows import PreparedSession


class _Known(NamedTuple):
    """The stored lineage of a session.

    Attributes:
        lineage: The session's ``metadata_json.lineage``.
        parent_path: The file that the parent was read from.
    """

    parent_id: str
    parent_message: str | None
    lineage: dict[str, Any]
    parent_path: str | None


def with_known_lineage(
    connection: Connection, prepared: PreparedSession, *, same_mapping: bool
) -> PreparedSession:
    """Return a session with its stored parent where the reading has none or knows less.

    Args:
        connection: In a transaction.
        prepared: The session as read. If it names another parent, that one is used, unless
            it was found only because the stored parent is gone.
        same_mapping: Whether the stored session comes from the same mapping version. A newer
            one may leave out a parent on purpose, so then the stored parent is kept only if
            its file is gone.
    """
    known = _known(connection, prepared.id)
    if known is None or known.parent_id == prepared.id:
        return prepared
    if prepared.parent_id is None and _parent_of(connection, known.parent_id) == prepared.id:
        # They were read the other way round while one of them was not whole.
        return prepared
    is_gone = known.parent_path is not None and not is_there(connection, known.parent_path)
    if not same_mapping and not is_gone:
        return prepared
    said = prepared.metadata.get("lineage") or {}
    if prepared.parent_id is None:
        lineage = known.lineage
    elif (prepared.parent_id, prepared.lineage_kind) == (known.parent_id, known.lineage["kind"]):
        lineage = {**known.lineage, **said}
    elif is_gone and not prepared.keeps_records:
        # The parent's file and records are gone, so its own parent was found instead.
        lineage = known.lineage
        prepared = replace(prepared, parent_message=None, inherited={})
    else:
        return prepared
    marks: dict[str, str] = {}
    may_have_copies = lineage["kind"] == "fork" or lineage != said
    if may_have_copies and not prepared.inherited and not prepared.first_record:
        marks = _inherited(connection, prepared.id)
    parent_message = prepared.parent_message or known.parent_message
    if not marks and (lineage, parent_message) == (said, prepared.parent_message):
        return prepared
    found = replace(
        prepared,
        parent_id=known.parent_id,
        parent_message=parent_message,
        lineage_kind=lineage["kind"],
        metadata=_with_lineage(prepared.metadata, lineage),
    )
    return _marked(found, marks) if marks else found


def _known(connection: Connection, session_id: str) -> _Known | None:
    """Return the stored lineage; None if there is none or the parent is not in the store."""
    row = connection.execute(
        "SELECT l.parent_id, l.parent_message, json_extract(s.metadata_json, '$.lineage'),"
        " json_extract(p.metadata_json, '$.source.path')"
        " FROM session_links l JOIN chat_sessions s ON s.id = l.session_id"
        " JOIN chat_sessions p ON p.id = l.parent_id WHERE l.session_id = ?",
        (session_id,),
    ).fetchone()
    if row is None or row[2] is None:
        return None
    lineage = orjson.loads(row[2])
    # The lineage of a session exported from here has no parent_source_id.
    return _Known(row[0], row[1], lineage, row[3]) if "parent_source_id" in lineage else None


def _parent_of(connection: Connection, session_id: str) -> str | None:
    row = connection.execute(
        "SELECT parent_id FROM session_links WHERE session_id = ?", (session_id,)
    ).fetchone()
    return None if row is None else str(row[0])


def _inherited(connection: Connection, session_id: str) -> dict[str, str]:
    """Return the source id of each stored copy with that of its original."""
    return dict(
        connection.execute(
            "SELECT json_extract(metadata_json, '$.source.id'),"
            " json_extract(metadata_json, '$.source.inherited_from') AS original"
            " FROM chat_messages WHERE session_id = ? AND original IS NOT NULL",
            (session_id,),
        )
    )


def _with_lineage(metadata: dict[str, Any], lineage: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata with its lineage replaced, right after ``source``."""
    found: dict[str, Any] = {}
    for key, value in metadata.items():
        if key != "lineage":
            found[key] = value
        if key == "source":
            found["lineage"] = lineage
    return found


def _marked(prepared: PreparedSession, marks: dict[str, str]) -> PreparedSession:
    """Return the session with ``inherited_from`` set on the copied messages."""
    inherited, messages = dict(prepared.inherited), list(prepared.messages)
    for place, name in enumerate(prepared.message_names):
        row = messages[place]
        if name in marks:
            inherited[place] = marks[name]
            messages[place] = (*row[:3], _inheriting(row[3], marks[name]), *row[4:])
    return replace(prepared, inherited=inherited, messages=messages)


def _inheriting(text: str, original: str) -> str:
    metadata = orjson.loads(text)
    own = metadata["source"]
    rest = {key: value for key, value in own.items() if key not in ("id", "inherited_from")}
    source = {"id": own["id"], "inherited_from": original, **rest}
    return json_text({**metadata, "source": source})
