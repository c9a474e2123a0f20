"""Links between imported sessions: parents, the message a child starts from, copies.

A child can be read before its parent, and a parent can be added, changed or removed later.
Children refer to parents by source ids. These are stored, and resolved to ids of the store
whenever either side is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

import orjson

from store.engine.connection import Connection, dialect_of
from store.engine.database import Database
from store.exports.noting import note_imported
from store.ids import derived_session_id
from store.sync.jsontext import json_text
from store.sync.prepared import PreparedSession
from store.verbs.titles import continued_title

_HELPER = "helper"
_CHILD = '"child_session_id"'
NO_PARENT = ""
"""Stands for the parent of a helper's run that names none."""


@dataclass(slots=True)
class Links:
    """A child's resolved links: ids in the store; None where the target is not stored.

    Attributes:
        originals: Source ids of copied messages to the ids of their originals.
        pending: Whether some of the targets are not stored yet.
    """

    parent_id: str | None = None
    parent_message_id: str | None = None
    originals: dict[str, str] | None = None
    pending: bool = False


def adopt_exported(database: Database, prepared: PreparedSession) -> PreparedSession:
    """Return a session that an agent continued from an exported file, linked to what was exported.

    The session is a continuation of the one that the user exported, even if its copied
    records name older ones. If both have the same title, it is numbered like a fork's.

    If the exported session is a fork made here that contains only copied messages, the
    session takes the fork's place, with its parent, title and marks.
    """
    row = database.connection.execute(
        "SELECT session_id FROM exported_sessions WHERE imported_id = ?", (prepared.id,)
    ).fetchone() or _exported_file(database, prepared)
    if row is None:
        return prepared
    fork = continued_fork(database.connection, prepared.id)
    kind = "continuation" if fork is None else "fork"
    metadata = {**prepared.metadata, "lineage": {"kind": kind}}
    title = metadata.get("title")
    if fork is not None:
        if fork.title and metadata.get("title_from") == "first-prompt":
            # This agent does not store titles in its files.
            metadata["title"] = fork.title
            del metadata["title_from"]
        if fork.marks and not _is_in_store(database, prepared.id):
            metadata["user"] = fork.marks
    elif isinstance(title, str):
        metadata["title"] = continued_title(
            database, prepared.id, row[0], title, _title_before(database, prepared.id)
        )
    return replace(prepared, parent_id=row[0], lineage_kind=kind, metadata=metadata)


@dataclass(frozen=True, slots=True)
class ContinuedFork:
    """A fork that was made here and contains only copied messages.

    Attributes:
        parent_id: The session it was forked from; ``parent_message_id`` is the fork point.
        title: Its title, apart from one set by the user.
        marks: The user's title, star and tags.
    """

    id: str
    parent_id: str | None
    parent_message_id: str | None
    title: str | None
    marks: dict[str, object]


def continued_fork(connection: Connection, session_id: str) -> ContinuedFork | None:
    """Return the fork that a session continues; None if it does not continue a fork."""
    row = connection.execute(
        "SELECT f.id, f.parent_id, f.parent_message_id, f.metadata_json FROM exported_sessions e"
        " JOIN chat_sessions f ON f.id = e.session_id WHERE e.imported_id = ?"
        " AND json_extract(f.metadata_json, '$.lineage.kind') = 'fork'"
        " AND json_extract(f.metadata_json, '$.source') IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM chat_messages m WHERE m.session_id = f.id"
        " AND json_extract(m.metadata_json, '$.inherited_from') IS NULL)",
        (session_id,),
    ).fetchone()
    if row is None:
        return None
    metadata = orjson.loads(row[3])
    user, title = metadata.get("user"), metadata.get("title")
    # Labels name messages of the fork.
    marks = {key: user[key] for key in user if key != "labels"} if isinstance(user, dict) else {}
    return ContinuedFork(row[0], row[1], row[2], title if isinstance(title, str) else None, marks)


def archive_continued_fork(connection: Connection, session_id: str, now: int) -> str | None:
    """Archive the fork that a new session continues, so that lists show only one of them.

    Args:
        connection: In a transaction.
        session_id: The new session.
        now: Milliseconds since the epoch.

    Returns:
        The fork's id if it was archived now, else None.
    """
    fork = continued_fork(connection, session_id)
    if fork is None:
        return None
    put = connection.execute(
        "UPDATE chat_sessions SET archived_at = ? WHERE id = ? AND archived_at IS NULL",
        (now, fork.id),
    )
    return fork.id if put.rowcount else None


def _is_in_store(database: Database, session_id: str) -> bool:
    found = database.connection.execute(
        "SELECT 1 FROM chat_sessions WHERE id = ?", (session_id,)
    ).fetchone()
    return found is not None


def _exported_file(database: Database, prepared: PreparedSession) -> tuple[str] | None:
    """Return the session whose exported file an agent copied under a new id.

    The file name is the id the session would have had; the copy's metadata names the file.
    """
    path = prepared.metadata.get("imported_from")
    if not isinstance(path, str):
        return None
    name = derived_session_id(prepared.kind, PurePath(path).stem)
    row: tuple[str] | None = database.connection.execute(
        "SELECT session_id FROM exported_sessions WHERE imported_id = ?", (name,)
    ).fetchone()
    if row is not None:
        note_imported(database, prepared.id, row[0])
    return row


def _title_before(database: Database, session_id: str) -> str | None:
    """Return the title from the last sync, ignoring a title set by the user."""
    row = database.connection.execute(
        "SELECT json_extract(metadata_json, '$.title') FROM chat_sessions WHERE id = ?",
        (session_id,),
    ).fetchone()
    return row[0] if row is not None and isinstance(row[0], str) else None


def resolve(connection: Connection, prepared: PreparedSession) -> Links:
    """Return the links of a session that is about to be written, resolved to store ids."""
    if prepared.parent_id is None:
        return Links()
    found = _look_up(
        connection, prepared.parent_id, prepared.parent_message, set(prepared.inherited.values())
    )
    # A session that continues a fork has the fork's parent.
    fork = continued_fork(connection, prepared.id)
    if fork is not None:
        found.parent_id, found.parent_message_id = fork.parent_id, fork.parent_message_id
    return _without_loop(connection, (prepared.created_at, prepared.id), found)


def stored_links(connection: Connection, prepared: PreparedSession) -> Links:
    """Return a session's stored links if its references are unchanged, else resolve them."""
    row = connection.execute(
        "SELECT s.parent_id, s.parent_message_id, l.pending FROM session_links l "
        "JOIN chat_sessions s ON s.id = l.session_id WHERE l.session_id = ? "
        "AND (l.kind, l.parent_id, l.parent_message) IS (?, ?, ?)",
        (prepared.id, prepared.lineage_kind, prepared.parent_id, prepared.parent_message),
    ).fetchone()
    if row is None or prepared.inherited:
        return resolve(connection, prepared)
    return Links(row[0], row[1], pending=bool(row[2]))


def save(connection: Connection, prepared: PreparedSession, links: Links) -> None:
    """Store what a session refers to, for when its parent is written.

    Args:
        connection: In a transaction.
        prepared: The session.
        links: Its resolved links.
    """
    if prepared.parent_id is None and _kind_of(prepared) != _HELPER:
        connection.execute("DELETE FROM session_links WHERE session_id = ?", (prepared.id,))
        return
    connection.execute(
        "INSERT INTO session_links(session_id, kind, parent_id, parent_message, pending) "
        "VALUES (?, ?, ?, ?, ?) ON CONFLICT(session_id) DO UPDATE SET kind = excluded.kind, "
        "parent_id = excluded.parent_id, parent_message = excluded.parent_message, "
        "pending = excluded.pending WHERE (kind, parent_id, parent_message, pending) IS NOT "
        "(excluded.kind, excluded.parent_id, excluded.parent_message, excluded.pending)",
        (
            prepared.id,
            _kind_of(prepared),
            prepared.parent_id or NO_PARENT,
            prepared.parent_message,
            int(links.pending),
        ),
    )


def _kind_of(prepared: PreparedSession) -> str | None:
    """Return the kind of a session's link; lists leave ``helper`` out."""
    own = prepared.metadata.get("backscroll")
    is_helper = isinstance(own, dict) and "helper" in own
    return _HELPER if is_helper else prepared.lineage_kind


def relink_children(
    connection: Connection, parent_id: str, *, only_pending: bool
) -> dict[str, list[str]]:
    """Update the links of a session's children after it was written or removed.

    Args:
        connection: In a transaction.
        parent_id: The session that changed.
        only_pending: Only the children that have unresolved links to it.

    Returns:
        The changed children, each with the ids of its changed messages.
    """
    changed = {}
    children = connection.execute(
        "SELECT session_id, parent_message FROM session_links "
        "WHERE parent_id = ? AND pending >= ? ORDER BY session_id",
        (parent_id, int(only_pending)),
    ).fetchall()
    for child_id, parent_message in children:
        messages = _relink(connection, child_id, parent_id, parent_message)
        if messages is not None:
            changed[child_id] = messages
    return changed


def with_call(connection: Connection, prepared: PreparedSession) -> PreparedSession:
    """Return a subagent's session with the call that names it, if its parent is stored.

    As ``relink_calls`` does for a parent that is read later.

    Args:
        connection: In a transaction.
        prepared: A session whose stored call, if any, is not kept.
    """
    if prepared.lineage_kind != "subagent" or prepared.parent_message is not None:
        return prepared
    calls = connection.execute(
        "SELECT p.data_json, p.tool_call_id, json_extract(m.metadata_json, '$.source.id')"
        " FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id WHERE p.session_id = ?"
        " AND p.tool_call_id IS NOT NULL AND instr(p.data_json, ?)"
        ' ORDER BY p.created_at, p.message_id, p."index"',
        (prepared.parent_id, prepared.id),
    )
    for text, call, name in calls:
        if _child_of(text) == prepared.id and isinstance(name, str):
            lineage = {**(prepared.metadata.get("lineage") or {}), "tool_call_id": call}
            return replace(prepared, parent_message=name,
                           metadata={**prepared.metadata, "lineage": lineage})  # fmt: skip
    return prepared


def relink_calls(connection: Connection, parent: PreparedSession) -> list[str]:
    """Link subagents to the calls that started them, if they were read before those.

    Args:
        connection: In a transaction.
        parent: A session that was written, or only its new messages.

    Returns:
        Ids of the subagent sessions that changed.
    """
    changed: list[str] = []
    started = [
        (part, child) for part in parent.parts
        if part[6] is not None and _CHILD in part[5]
        and (child := _child_of(part[5])) is not None
    ]  # fmt: skip
    if not started:
        return changed
    names = {
        row[0]: name for row, name in zip(parent.messages, parent.message_names, strict=True)
    }
    for part, child in started:
        if part[1] not in names:
            continue
        found = connection.execute(
            "SELECT s.metadata_json FROM session_links l JOIN chat_sessions s"
            " ON s.id = l.session_id WHERE l.session_id = ? AND l.parent_id = ?"
            " AND l.kind = 'subagent' AND l.parent_message IS NULL",
            (child, parent.id),
        ).fetchone()
        if found is None:
            continue
        metadata = orjson.loads(found[0])
        metadata["lineage"] = {**(metadata.get("lineage") or {}), "tool_call_id": part[6]}
        connection.execute(
            "UPDATE chat_sessions SET metadata_json = ?, parent_message_id = ? WHERE id = ?",
            (json_text(metadata), part[1], child),
        )
        connection.execute(
            "UPDATE session_links SET parent_message = ? WHERE session_id = ?",
            (names[part[1]], child),
        )
        changed.append(child)
    return changed


def _child_of(text: str) -> str | None:
    """Return the session that a call started, from its part's JSON."""
    if _CHILD not in text:
        return None
    extras = orjson.loads(text).get("resultProviderMetadata")
    own = extras.get("backscroll") if isinstance(extras, dict) else None
    child = own.get("child_session_id") if isinstance(own, dict) else None
    return child if isinstance(child, str) else None


def follow_moved(
    connection: Connection, session_id: str, moved: Mapping[str, str]
) -> list[str]:
    """Update message ids in the user's forks and labels after they changed.

    An id changes when the source inserts a message before others of the same millisecond.

    Args:
        connection: In a transaction.
        session_id: The session of the messages.
        moved: Old ids to new ids.

    Returns:
        The forks whose rows changed.
    """
    children = connection.execute(
        "SELECT id, parent_message_id FROM chat_sessions WHERE parent_id = ?", (session_id,)
    ).fetchall()
    follow = [(moved[message], child) for child, message in children if message in moved]
    connection.executemany("UPDATE chat_sessions SET parent_message_id = ? WHERE id = ?", follow)
    (text,) = connection.execute(
        "SELECT metadata_json FROM chat_sessions WHERE id = ?", (session_id,)
    ).fetchone()
    metadata = orjson.loads(text)
    user = metadata.get("user")
    labels = user.get("labels") if isinstance(user, dict) else None
    if isinstance(labels, dict) and not moved.keys().isdisjoint(labels):
        user["labels"] = {moved.get(name, name): label for name, label in labels.items()}
        connection.execute(
            "UPDATE chat_sessions SET metadata_json = ? WHERE id = ?",
            (json_text(metadata), session_id),
        )
    return [child for _, child in follow]


def _relink(
    connection: Connection, child_id: str, parent_id: str, parent_message: str | None
) -> list[str] | None:
    sql = dialect_of(connection)
    original_of = sql.fact("m.metadata_json", "source.inherited_from")
    copies = connection.execute(
        f"SELECT m.id, m.metadata_json, {original_of} FROM chat_messages m"
        f" WHERE m.session_id = ? AND {original_of} IS NOT NULL",
        (child_id,),
    ).fetchall()
    (created_at,) = connection.execute(
        "SELECT created_at FROM chat_sessions WHERE id = ?", (child_id,)
    ).fetchone()
    links = _look_up(connection, parent_id, parent_message, {row[2] for row in copies})
    links = _without_loop(connection, (created_at, child_id), links)
    connection.execute(
        "UPDATE session_links SET pending = ? WHERE session_id = ? AND pending <> ?",
        (int(links.pending), child_id, int(links.pending)),
    )
    moved = connection.execute(
        "UPDATE chat_sessions SET parent_id = ?, parent_message_id = ?"
        f" WHERE id = ? AND (parent_id, parent_message_id) {sql.other} (?, ?)",
        (links.parent_id, links.parent_message_id, child_id,
         links.parent_id, links.parent_message_id),
    ).rowcount  # fmt: skip
    updates = []
    for message_id, text, name in copies:
        metadata = orjson.loads(text)
        original = (links.originals or {}).get(name)
        if metadata.get("inherited_from") != original:
            updates.append((json_text(_with_original(metadata, original)), message_id))
    connection.executemany("UPDATE chat_messages SET metadata_json = ? WHERE id = ?", updates)
    return [row[1] for row in updates] if moved or updates else None


def _without_loop(connection: Connection, child: tuple[int, str], found: Links) -> Links:
    """Return links without cycles: no session becomes its own ancestor.

    If files describe a cycle of parents, its oldest session gets no parent.

    Args:
        connection: In a transaction.
        child: Creation time and id of the session.
        found: Its resolved links.
    """
    members, at = [child], found.parent_id
    while at is not None and at != child[1]:
        row = connection.execute(
            "SELECT created_at, parent_id FROM chat_sessions WHERE id = ?", (at,)
        ).fetchone()
        if row is None or (row[0], at) in members:
            return found
        members.append((row[0], at))
        at = row[1]
    if at is None:
        return found
    oldest = min(members)
    if oldest == child:
        return replace(found, parent_id=None, parent_message_id=None)
    connection.execute(
        "UPDATE chat_sessions SET parent_id = NULL, parent_message_id = NULL WHERE id = ?",
        (oldest[1],),
    )
    return found


def _with_original(metadata: dict[str, object], original: str | None) -> dict[str, object]:
    """Set or remove ``inherited_from``; as the last key, as in a newly written message."""
    metadata.pop("inherited_from", None)
    if original is None:
        return metadata
    return {**metadata, "inherited_from": original}


def _look_up(
    connection: Connection,
    parent_id: str,
    parent_message: str | None,
    copied: set[str],
) -> Links:
    wanted = copied | ({parent_message} if parent_message is not None else set())
    there = connection.execute("SELECT 1 FROM chat_sessions WHERE id = ?", (parent_id,)).fetchone()
    if there is None:
        return Links(pending=True)
    found: dict[str, str] = {}
    if wanted:
        name_of = dialect_of(connection).fact("m.metadata_json", "source.id")
        rows = connection.execute(
            f"SELECT {name_of}, m.id FROM chat_messages m WHERE m.session_id = ?",
            (parent_id,),
        )
        # An exported file names a message without a source by its id in the store.
        for name, message_id in rows:
            found.update({key: message_id for key in (name, message_id) if key in wanted})
    return Links(
        parent_id,
        None if parent_message is None else found.get(parent_message),
        {name: found[name] for name in copied if name in found},
        pending=len(found) < len(wanted),
    )
