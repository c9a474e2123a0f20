"""Several files with the same session id: identical copies, and copies that diverged.

A backup, a conflicted copy or a second root can contain a session again. An identical copy,
or one that is a prefix, is stored once. Of files that diverged one is the session; the others
are stored as separate sessions: forks with the same source id. Which one it is depends on whether
a file is named as a copy, and on the messages (``_is_before``); what ids the others have, on the
messages (``_branch``); neither on folders nor on which file was read first. A file that comes later
may take the place of a stored one, which becomes a further copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from store.conversation.copy_marks import BRANCH, COPY_OF, branch_naming, branch_of
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
        displaced: The stored session or copy, as the further copy that it becomes, because this
            file takes its place now.
        superseded: Ids of stored copies that have no message beyond those of this one.
    """

    session: PreparedSession
    displaced: PreparedSession | None = None
    superseded: Sequence[str] = ()


class _Stored(NamedTuple):
    """What the store has of one of the files that claim to be a session.

    Attributes:
        id: The session, or the copy.
        branch: Names the copy; empty for the session itself.
        path: The file that it was read from.
        there: Whether the file is still there.
        ever: The messages that it has or had.
        now: Those that its file has.
        marked: Whether the user marked it.
    """

    id: str
    branch: str
    path: str
    there: bool
    ever: frozenset[_Mark]
    now: frozenset[_Mark]
    marked: bool


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
    if prepared.first_record or prepared.holds_stored or BRANCH in prepared.metadata["source"]:
        return ToWrite(prepared)
    places = _places(connection, prepared.id)
    own = frozenset(_marks(prepared))
    known = _known_place(places, prepared, own)
    if known is not None and known.there and known.path != prepared.path:
        better = own == known.now and _is_preferred(connection, prepared, known)
        return ToWrite(_at(prepared, places, known.branch)) if better else None
    if known is not None:
        return ToWrite(_at(prepared, places, known.branch))
    if path in read_from or is_one_place(connection, path, prepared.path):
        return ToWrite(prepared)
    branch, place, passed = "", places.get(""), list[str]()
    if grown := [one for one in places.values() if one.now <= own]:
        branch, place = max(grown, key=lambda one: len(one.now)).branch, None
    while place is not None:
        if _is_before(prepared.path, own, place):
            shared = places[""].ever if branch else own
            stored = _stored_session(connection, prepared, place)
            displaced = _copy(stored, shared, _branch(place.now, own))
            return ToWrite(_at(prepared, places, branch), displaced)
        passed.append(branch)
        branch = _branch(own, place.now)
        if branch in passed:
            # What named the place is gone from its file.
            branch = f"{branch}~{len(passed)}"
        place = places.get(branch)
    return ToWrite(
        _at(prepared, places, branch),
        superseded=[
            one.id for one in places.values()
            if one.branch not in ("", branch) and one.there and one.ever <= own and not one.marked
        ],
    )  # fmt: skip


def _known_place(
    places: dict[str, _Stored], prepared: PreparedSession, own: frozenset[_Mark]
) -> _Stored | None:
    """Return the place of a file that was read before, at its path or another one.

    Args:
        places: What is stored.
        prepared: The session as the file has it.
        own: Its messages.

    Returns:
        The place of a file that is there where that one has all of the messages too.
    """
    everyone = places.values()
    names = {mark[:2] for mark in own}
    ways: tuple[Callable[[_Stored], bool], ...] = (
        lambda one: one.path == prepared.path,
        lambda one: not one.there and one.ever <= own,
        lambda one: one.there and own <= one.now,
        lambda one: not one.there and own <= one.ever,
        # A message was edited, and the path changed.
        lambda one: not one.there and len(one.ever) > 1 and {m[:2] for m in one.ever} <= names,
        # The only file went elsewhere, and was rewound there.
        lambda one: not one.there and len(everyone) == 1,
    )
    return next((one for way in ways for one in everyone if way(one)), None)


def _is_before(path: str, own: frozenset[_Mark], other: _Stored) -> bool:
    """Return whether a file goes before another one from which it diverged.

    The one that has its agent's own name does, as the agent goes on with it. Of two such, or two
    that are named as copies, the one does whose messages went on earlier where the two part.
    Neither a move nor appending to either changes that.

    Args:
        path: The path of the file.
        own: Its messages.
        other: The other file.
    """
    named, others = is_named_as_copy(path), is_named_as_copy(other.path)
    if named != others:
        return others
    return min(own ^ other.now, key=_order) in own


def _branch(own: frozenset[_Mark], other: frozenset[_Mark]) -> str:
    """Return what names a copy: the first message that the file that goes before it lacks.

    The text counts only where the place and time of the message do not tell it apart: an answer
    that is being written is one message.
    """
    first = min(own - other, key=_order)
    shared = any(mark[:2] == first[:2] for mark in other)
    said = orjson.dumps(first if shared else first[:2])
    return hashlib.blake2b(said, digest_size=12).hexdigest()


def _order(mark: _Mark) -> tuple[int, str, str]:
    name, at, text = mark
    return at, name, text


def _places(connection: Connection, session_id: str) -> dict[str, _Stored]:
    """Return what is stored of the files that claim to be a session, by branch."""
    found = {}
    for one in (session_id, *copies_of(connection, session_id)):
        (text,) = connection.execute(
            "SELECT metadata_json FROM chat_sessions WHERE id = ?", (one,)
        ).fetchone()
        metadata = orjson.loads(text)
        source = metadata["source"]
        branch = "" if one == session_id else branch_of(source)
        found[branch] = _Stored(
            one, branch, source["path"], is_there(connection, source["path"]),
            frozenset(_stored_marks(connection, one, with_gone=True)),
            frozenset(_stored_marks(connection, one)), "user" in metadata,
        )  # fmt: skip
    return found


def _at(prepared: PreparedSession, places: dict[str, _Stored], branch: str) -> PreparedSession:
    """Return a session as it is written at a place: itself, or a copy."""
    return _copy(prepared, places[""].ever, branch) if branch else prepared


def copies_of(connection: Connection, session_id: str) -> list[str]:
    """Return the ids of a session's stored copies."""
    rows = connection.execute(
        "SELECT s.id FROM session_links l JOIN chat_sessions s ON s.id = l.session_id"
        " WHERE l.parent_id = ? AND json_extract(s.metadata_json, ?) = ? ORDER BY s.id",
        (session_id, f"$.source.{COPY_OF}", session_id),
    )
    return [copy for (copy,) in rows]


def _stored_session(
    connection: Connection, prepared: PreparedSession, place: _Stored
) -> PreparedSession:
    """Return the stored rows of a session or copy, as they were read from another file.

    Args:
        connection: In a transaction.
        prepared: The same session as another file has it.
        place: What the stored rows are of.
    """
    agent, workspace, model, text, *totals = connection.execute(
        f"SELECT agent, workspace_root, model_json, metadata_json, {', '.join(Rollups._fields)},"
        " created_at, updated_at FROM chat_sessions WHERE id = ?",
        (place.id,),
    ).fetchone()
    metadata = {key: value for key, value in orjson.loads(text).items() if key != "user"}
    messages = connection.execute(
        "SELECT id, session_id, role, metadata_json, created_at, updated_at FROM chat_messages"
        " WHERE session_id = ? ORDER BY created_at, id",
        (place.id,),
    ).fetchall()
    if place.branch:
        messages = [(*row[:3], _without_inheriting(row[3]), *row[4:]) for row in messages]
        if isinstance(title := metadata.get("title"), str):
            metadata["title"] = title.removesuffix(_COPY)
    sources = [orjson.loads(row[3])["source"] for row in messages]
    blocks = connection.execute(
        "SELECT first, count, checksum, body FROM original_records WHERE session_id = ?"
        " ORDER BY first",
        (place.id,),
    ).fetchall()
    lineage = metadata.get("lineage") or {}
    return replace(
        prepared,
        path=place.path, agent=agent, workspace_root=workspace, model_json=model, metadata=metadata,
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
            (place.id,),
        ).fetchall(),
        refs=connection.execute(
            "SELECT message_id, records_json FROM record_refs WHERE message_id IN"
            " (SELECT id FROM chat_messages WHERE session_id = ?)",
            (place.id,),
        ).fetchall(),
        blocks=[Block(first, count, checksum, None, body)
                for first, count, checksum, body in blocks],
        attachments=[],
    )  # fmt: skip


def _is_preferred(connection: Connection, prepared: PreparedSession, place: _Stored) -> bool:
    """Return whether this file, not the stored one, should be the session's file.

    The messages are the same, but one file may be truncated within the last answer. Of equal
    files the better name wins, whichever was read first.
    """
    parts, tokens = connection.execute(
        "SELECT (SELECT count(*) FROM chat_parts p WHERE p.session_id = s.id), s.total_tokens"
        " FROM chat_sessions s WHERE s.id = ?",
        (place.id,),
    ).fetchone()
    own = len(prepared.parts), prepared.rollups[5]
    if own != (parts, tokens):
        return own > (parts, tokens)
    named = is_named_as_copy(prepared.path), *name_order(prepared.path)
    return named < (is_named_as_copy(place.path), *name_order(place.path))


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


def _copy(prepared: PreparedSession, stored: frozenset[_Mark], branch: str) -> PreparedSession:
    """Return a session as a fork of the stored one, with ids derived from its branch."""
    naming = branch_naming(prepared.metadata["source"]["id"], branch)
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
        metadata=_metadata(prepared, shared is not None, branch),
        messages=messages,
        parts=[_part(row, session_id, ids, tails) for row in prepared.parts],
        refs=[(ids[message], records) for message, records in prepared.refs],
        inherited=inherited,
        **_lineage(prepared, shared),
    )


_COPY = " (copy)"
"""What the title of a copy ends with."""


def _metadata(prepared: PreparedSession, is_fork: bool, branch: str) -> dict[str, Any]:
    metadata = dict(prepared.metadata)
    metadata["source"] = {**metadata["source"], COPY_OF: prepared.id, BRANCH: branch}
    if isinstance(title := metadata.get("title"), str):
        metadata["title"] = title + _COPY
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


def _without_inheriting(metadata_json: str) -> str:
    """Return what ``_inheriting`` was given."""
    metadata = orjson.loads(metadata_json)
    source = metadata["source"]
    if source.get("inherited_from") == source["id"]:
        del source["inherited_from"]
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
