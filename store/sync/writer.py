"""Writes one imported session: only rows that differ, keeping the user's changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from store.conversation.gone_marks import GONE_MESSAGES, PARTIAL
from store.conversation.outline_marks import is_outline
from store.engine.connection import Connection
from store.engine.database import Database
from store.engine.schema import REQUIRED_COLUMNS
from store.rows import UNKNOWN_MODEL
from store.sources.base.drafts import SessionDraft
from store.sync import copies, gone, links, user_overrides
from store.sync.blocks import write_attachments, write_blocks, write_blocks_from
from store.sync.grown import what_differs
from store.sync.jsontext import json_text
from store.sync.known_lineage import with_known_lineage
from store.sync.message_rows import WrittenRows, write_messages
from store.sync.prepared import PreparedSession, prepare
from store.sync.server_places import is_there
from store.system.clock import Clock, system_clock

CHANGES_KEPT = 10_000
"""Rows kept in ``changes``; a reader further behind reads everything again."""
CHANGES_PER_SESSION = 64
"""With more changed messages than this, one row marks the whole session as changed."""

ELSEWHERE = "all of it was read from another file"
"""``Written.skipped`` of a session of which this file has nothing more."""

FORGOTTEN = "forgotten"
"""``Written.skipped`` of a session that the user deleted permanently."""

SESSION_COLUMNS = ", ".join(REQUIRED_COLUMNS["chat_sessions"])


@dataclass(slots=True)
class Written:
    """Result of writing one session.

    Attributes:
        session_id: The session's id in the store.
        skipped: Why nothing was written, or None.
        new: Whether the session was not in the store before.
        changed: Ids of the sessions that changed: this one, and relinked children.
        moved: Whether its file has moved since the last reading.
        again: Whether other files that claim to be the session are to be read again.
        superseded: Ids of stored copies that have nothing beyond this one, to be deleted.
    """

    session_id: str
    skipped: str | None = None
    new: bool = False
    changed: list[str] = field(default_factory=list)
    moved: bool = False
    again: bool = False
    superseded: Sequence[str] = ()


def write_session(
    database: Database,
    kind: str,
    draft: SessionDraft,
    *,
    clock: Clock = system_clock,
    keep_originals: bool = True,
    keep_gone: bool = True,
) -> Written:
    """Write a session from its draft and return the result; call it in a transaction.

    Args:
        database: The library, open for writing.
        kind: The source's kind.
        draft: The session as its source has it now.
        clock: Gives the time for the change log only; the session's rows do not use it.
        keep_originals: Whether to keep the original records.
        keep_gone: Whether to keep what the source no longer has, marked as gone.
    """
    prepared = prepare(kind, draft, keep_originals=keep_originals, compress=False)
    return write_prepared(database, prepared, clock=clock, keep_gone=keep_gone)


def write_prepared(
    database: Database,
    prepared: PreparedSession,
    *,
    clock: Clock = system_clock,
    before: PreparedSession | None = None,
    read_from: Collection[str] = (),
    keep_gone: bool = True,
    same_mapping: bool = True,
) -> Written:
    """Write a session's prepared rows and return the result; call it in a transaction.

    Args:
        database: The library, open for writing.
        prepared: The session's rows.
        clock: Gives the time for the change log only.
        before: The stored rows, if known from the last sync; then only rows that differ
            from them are compared.
        read_from: Paths of the files that it was read from; a stored session of one of
            them is replaced by this reading and not treated as another copy.
        keep_gone: Whether to keep messages that the source no longer has, marked as gone.
        same_mapping: Whether the stored rows come from the same mapping version; then a
            workspace, model or parent that the source no longer has is kept too.
    """
    connection = database.connection
    reason = _forgotten(database, prepared)
    if reason is not None:
        return Written(prepared.id, skipped=reason)
    chosen = copies.session_to_write(connection, prepared, read_from, keep_gone)
    if chosen is None:
        return Written(prepared.id, skipped=ELSEWHERE)
    changed = [
        one for move in chosen.before
        for one in _write_place(database, move, clock, None, keep_gone, same_mapping).changed
    ]
    written = Written(prepared.id, skipped=ELSEWHERE)
    if chosen.own is not None:
        same = chosen.own.session is prepared and not chosen.before
        written = _write_place(
            database, chosen.own, clock, before if same else None, keep_gone, same_mapping,
            read_from,
        )  # fmt: skip
    written.changed += changed
    for move in chosen.after:
        moved = _write_place(database, move, clock, None, keep_gone, same_mapping)
        written.changed += moved.changed
    written.superseded = chosen.superseded
    written.again = written.again or chosen.again
    return written


def _write_place(
    database: Database,
    move: copies.Move,
    clock: Clock,
    before: PreparedSession | None,
    keep_gone: bool,
    same_mapping: bool,
    read_from: Collection[str] = (),
) -> Written:
    """Write a session or copy, as ``write_prepared``.

    Args:
        database: The library, in a transaction.
        move: The rows, and whether they are of the file whose rows are stored there.
        clock: Gives the time for the change log only.
        before: The stored rows, if known.
        keep_gone: Whether to keep messages that the source no longer has.
        same_mapping: Whether the stored rows come from the same mapping version.
        read_from: Paths of the files that it was read from.
    """
    connection, prepared = database.connection, move.session
    reason = _forgotten(database, prepared)
    if reason is not None:
        return Written(prepared.id, skipped=reason)
    if not move.keeps:
        keep_gone = False
        connection.execute("DELETE FROM attachments WHERE session_id = ?", (prepared.id,))
    # Done first, because the stored session it is compared with was adopted too.
    prepared = links.adopt_exported(database, prepared)
    known = _in_store(connection, prepared.id)
    if known is not None and known.outline:
        # What the first look told is replaced by what the file says; only the row's place and
        # what the user did with it stay.
        keep_gone = False
    if keep_gone:
        prepared = with_known_lineage(connection, prepared, same_mapping=same_mapping)
    if known is None or not (keep_gone and same_mapping):
        prepared = links.with_call(connection, prepared)
    if prepared.first_record:
        return _write_added(database, prepared, clock, keep_gone, same_mapping)
    if known is not None and prepared.partial and not known.partial and (
        keep_gone or known.path not in read_from
    ):
        return Written(prepared.id, skipped="the session's own files told more")
    if before is not None and known is not None and known.grows(prepared):
        return _write_grown(database, prepared, before, clock, keep_gone)
    renamed: Mapping[str, str] | None = None
    keep_gone = keep_gone and not (known is not None and known.partial and not prepared.partial)
    if keep_gone and known is not None:
        merged = gone.merged(connection, prepared, same_mapping=same_mapping)
        prepared, renamed = merged.prepared, merged.moved
    has_less = (
        known is not None and not known.outline
        and _has_less(connection, known, prepared, keep_gone)
    )
    found = links.resolve(connection, prepared)
    new, moved = _write_session_row(database, prepared, found, keep_gone, same_mapping)
    new = new or (known is not None and known.outline)
    _write_prompts(database, prepared)
    before_rows = connection.total_changes
    rows = write_messages(database, prepared, found, new, moved=renamed, keep_links=keep_gone)
    if prepared.blocks or not new:
        write_blocks(connection, prepared.id, prepared.blocks)
    files = write_attachments(connection, prepared.id, prepared.attachments)
    links.save(connection, prepared, found)
    written = Written(prepared.id, new=new, moved=_has_moved(connection, known, prepared))
    written.again = has_less
    _log(database, prepared, written, rows, clock, moved=moved or files, before=before_rows)
    fork = links.archive_continued_fork(connection, prepared.id, clock()) if new else None
    if fork is not None:
        log_changes(database, fork, (), clock)
        written.changed.append(fork)
    _relink(database, prepared, written, rows, clock)
    return written


def _has_less(
    connection: Connection, known: _Known, prepared: PreparedSession, keep_gone: bool
) -> bool:
    """Return whether a source has lost messages or parts since the last reading.

    Args:
        connection: The library's, before the session is written.
        known: The stored session.
        prepared: The session as it is written.
        keep_gone: Whether it has what the source lost, marked as gone.
    """
    if keep_gone:
        gone: int = prepared.metadata["source"].get(GONE_MESSAGES, 0)
        return gone > known.gone
    (parts,) = connection.execute(
        "SELECT count(*) FROM chat_parts WHERE session_id = ?", (prepared.id,)
    ).fetchone()
    return known.path == prepared.path and len(prepared.parts) < int(parts)


def _log(
    database: Database,
    prepared: PreparedSession,
    written: Written,
    rows: WrittenRows,
    clock: Clock,
    *,
    moved: bool,
    before: int,
) -> None:
    """Log what was written of a session, and the forks that name its messages by new ids.

    Args:
        database: The library, in a transaction.
        prepared: The session.
        written: Takes the sessions that changed.
        rows: What was written of its messages.
        clock: Gives the time for the change log.
        moved: Whether its own row or a file beside it changed.
        before: The connection's ``total_changes`` before its messages were written.
    """
    if written.new or moved or rows.touched:
        log_changes(database, prepared.id, () if written.new else rows.touched, clock)
        written.changed.append(prepared.id)
    elif database.connection.total_changes > before:
        # Only original records changed, which a store of a team has too. It is logged as a change
        # of the last message: who follows the log reads that one again, and not a whole session.
        last = [row[0] for row in prepared.messages[-1:]]
        log_changes(database, prepared.id, last, clock)
    for fork in rows.forks:
        log_changes(database, fork, (), clock)
        written.changed.append(fork)


def _relink(
    database: Database,
    prepared: PreparedSession,
    written: Written,
    rows: WrittenRows,
    clock: Clock,
) -> None:
    """Link other sessions to the messages and calls of one that was written."""
    connection = database.connection
    if written.new or rows.removed or rows.added:
        only_pending = not written.new and not rows.removed
        children = links.relink_children(connection, prepared.id, only_pending=only_pending)
        for child, messages in children.items():
            log_changes(database, child, messages, clock)
            written.changed.append(child)
    for child in links.relink_calls(connection, prepared):
        log_changes(database, child, (), clock)
        written.changed.append(child)


def is_read(database: Database, session_id: str) -> bool:
    """Return whether a session is in the store with its messages, not only listed."""
    known = _in_store(database.connection, session_id)
    return known is not None and not known.outline


def can_continue(database: Database, prepared: PreparedSession) -> bool:
    """Return whether the stored part before a session's new messages is unchanged."""
    connection = database.connection
    if _forgotten(database, prepared) is not None:
        return True
    known = _in_store(connection, prepared.id)
    if known is None or not known.grows(prepared):
        return False
    if prepared.keeps_records:
        return True
    # Without records a removed message cannot be distinguished from a renamed one.
    return _stored_from(connection, prepared) <= {row[0] for row in prepared.messages}


def _write_added(
    database: Database, prepared: PreparedSession, clock: Clock, keep_gone: bool, same_mapping: bool
) -> Written:
    """Write a session's messages from ``first_record`` on; earlier ones stay.

    The source still has all records, so a missing message has become another one, such as
    a queued prompt that was sent.
    """
    connection = database.connection
    found = links.stored_links(connection, prepared)
    _, moved = _write_session_row(database, prepared, found, keep_gone, same_mapping)
    _write_prompts(database, prepared)
    stored = _stored_from(connection, prepared)
    renamed = _renamed(connection, prepared, stored)
    before_rows = connection.total_changes
    rows = write_messages(
        database, prepared, found, False, only=stored, moved=renamed, keep_links=keep_gone
    )
    if prepared.records:
        write_blocks_from(connection, prepared.id, prepared.first_record, prepared.records)
    files = write_attachments(connection, prepared.id, prepared.attachments)
    links.save(connection, prepared, found)
    written = Written(prepared.id)
    _log(database, prepared, written, rows, clock, moved=moved or files, before=before_rows)
    _relink(database, prepared, written, rows, clock)
    return written


def _renamed(
    connection: Connection, prepared: PreparedSession, stored: frozenset[str]
) -> dict[str, str]:
    """Return missing stored messages with the new messages that have their records."""
    missing = sorted(stored - {row[0] for row in prepared.messages})
    if not missing:
        return {}
    owners = {
        number: message for message, text in prepared.refs for number in _numbers_in(text)
    }
    moved = {}
    for old in missing:
        row = connection.execute(
            "SELECT records_json FROM record_refs WHERE message_id = ?", (old,)
        ).fetchone()
        now = [owners[each] for each in _numbers_in(row[0]) if each in owners] if row else []
        if now:
            moved[old] = now[0]
    return moved


def _numbers_in(records_json: str) -> list[int]:
    return [number for group in orjson.loads(records_json) for number in group]


def _stored_from(connection: Connection, prepared: PreparedSession) -> frozenset[str]:
    """Return the ids of stored messages from the session's first new one on."""
    if not prepared.messages:
        return frozenset()
    first, at = prepared.messages[0][0], prepared.messages[0][4]
    rows = connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ? AND (created_at, id) >= (?, ?)",
        (prepared.id, at, first),
    )
    return frozenset(row[0] for row in rows)


def _write_grown(
    database: Database,
    prepared: PreparedSession,
    before: PreparedSession,
    clock: Clock,
    keep_gone: bool,
) -> Written:
    """Write what differs from the rows that were written before."""
    if prepared == before:
        return Written(prepared.id)
    connection = database.connection
    grown = what_differs(connection, prepared, before)
    if grown is None:
        return _write_place(database, copies.Move(prepared), clock, None, keep_gone, True)
    found = links.resolve(connection, prepared)
    _, moved = _write_session_row(database, prepared, found, keep_gone, True)
    _write_prompts(database, prepared)
    messages = frozenset(row[0] for row in grown.messages)
    before_rows = connection.total_changes
    rows = write_messages(
        database, grown, found, False, only=messages, keep_links=keep_gone
    )
    write_blocks(connection, prepared.id, prepared.blocks)
    files = write_attachments(connection, prepared.id, grown.attachments)
    links.save(connection, prepared, found)
    written = Written(prepared.id)
    _log(database, prepared, written, rows, clock, moved=moved or files, before=before_rows)
    _relink(database, grown, written, rows, clock)
    return written


def log_changes(
    database: Database, session_id: str, message_ids: Iterable[str], clock: Clock
) -> None:
    """Add changes to the change log.

    Args:
        database: The library, in a transaction.
        session_id: The session that changed.
        message_ids: Its changed messages; with none or too many, one row with a NULL message
            stands for the whole session.
        clock: Gives ``changed_at``.
    """
    messages = list(message_ids)
    rows: list[str | None] = [*messages] if 0 < len(messages) <= CHANGES_PER_SESSION else [None]
    now = clock()
    database.connection.executemany(
        "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, ?)",
        ((session_id, message, now) for message in rows),
    )


def trim_changes(database: Database) -> None:
    """Delete all but the newest rows of the change log."""
    database.connection.execute(
        "DELETE FROM changes WHERE seq <= (SELECT max(seq) FROM changes) - ?", (CHANGES_KEPT,)
    )


def _forgotten(database: Database, prepared: PreparedSession) -> str | None:
    ids = [prepared.id]
    if prepared.lineage_kind == "subagent" and prepared.parent_id is not None:
        ids.append(prepared.parent_id)
    return FORGOTTEN if any(is_forgotten(database, session_id) for session_id in ids) else None


def is_forgotten(database: Database, session_id: str) -> bool:
    """Return whether a session was deleted permanently from a library."""
    return database.connection.execute(
        "SELECT 1 FROM forgotten_sessions WHERE session_id = ?", (session_id,)
    ).fetchone() is not None


@dataclass(frozen=True, slots=True)
class _Known:
    """Facts about a stored session.

    Attributes:
        path: The file that it was read from.
        gone: How many messages it has, whole or in part, that its source no longer has.
        partial: As in ``SessionDraft``.
        outline: Whether it is only listed so far, without its messages.
    """

    path: str | None
    gone: int
    partial: bool
    outline: bool

    def grows(self, prepared: PreparedSession) -> bool:
        """Return whether a reading may be compared only with the previous one."""
        same = self.path == prepared.path and self.partial == prepared.partial
        return same and not self.gone


def _has_moved(
    connection: Connection, known: _Known | None, prepared: PreparedSession
) -> bool:
    before = known.path if known is not None else None
    return bool(before) and before != prepared.path and not is_there(connection, str(before))


def _in_store(connection: Connection, session_id: str) -> _Known | None:
    row = connection.execute(
        "SELECT json_extract(metadata_json, '$.source') FROM chat_sessions WHERE id = ?",
        (session_id,),
    ).fetchone()
    if row is None:
        return None
    source = orjson.loads(row[0]) if row[0] is not None else {}
    return _Known(
        source.get("path"), source.get(GONE_MESSAGES, 0), bool(source.get(PARTIAL)),
        is_outline({"source": source}),
    )  # fmt: skip


def _write_session_row(
    database: Database,
    prepared: PreparedSession,
    found: links.Links,
    keep_gone: bool,
    same_mapping: bool,
) -> tuple[bool, bool]:
    """Write the session's row; return whether it is new, and whether the row changed.

    Args:
        database: The library.
        prepared: The session.
        found: Its resolved links.
        keep_gone: Whether to keep what the source no longer has.
        same_mapping: Whether to keep workspace and model too.
    """
    connection = database.connection
    same_mapping = keep_gone and same_mapping
    stored = connection.execute(
        f"SELECT {SESSION_COLUMNS} FROM chat_sessions WHERE id = ?", (prepared.id,)
    ).fetchone()
    archived, permissions, metadata = prepared.archived_at, "[]", None
    workspace, model = prepared.workspace_root, prepared.model_json
    if stored is not None:
        permissions, metadata = stored[6], stored[7]
        said_before = user_overrides.said_archived_at(metadata)
        archived = user_overrides.archived_at(archived, said_before, stored[17])
        if same_mapping:
            workspace = workspace or stored[2]
            model = stored[3] if model == json_text(UNKNOWN_MODEL) else model
    row = (
        prepared.id,
        prepared.agent,
        workspace,
        model,
        found.parent_id,
        found.parent_message_id,
        permissions,
        user_overrides.session_metadata(
            prepared.metadata, metadata, keep_title=keep_gone and not prepared.tells_title
        ),
        *prepared.rollups,
        prepared.created_at,
        prepared.updated_at,
        archived,
    )
    if stored is None:
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO chat_sessions({SESSION_COLUMNS}) VALUES ({marks})", row)
    elif tuple(stored) != row:
        # Other columns would have SQLite write their indexes anew.
        different = [place for place, value in enumerate(row) if value != stored[place]]
        marks = ", ".join(f"{REQUIRED_COLUMNS['chat_sessions'][place]} = ?" for place in different)
        connection.execute(
            f"UPDATE chat_sessions SET {marks} WHERE id = ?",
            (*(row[place] for place in different), prepared.id),
        )
    return stored is None, stored is None or tuple(stored) != row


def insert_outline(database: Database, prepared: PreparedSession) -> bool:
    """Write the row of a session that is not read yet, in a transaction.

    Returns:
        False where the session is in the store already, or was forgotten.
    """
    if _forgotten(database, prepared) is not None or _in_store(database.connection, prepared.id):
        return False
    found = links.resolve(database.connection, prepared)
    _write_session_row(database, prepared, found, keep_gone=False, same_mapping=False)
    links.save(database.connection, prepared, found)
    return True


def _write_prompts(database: Database, prepared: PreparedSession) -> None:
    if prepared.system_prompts:
        database.connection.executemany(
            "INSERT OR IGNORE INTO system_prompts(digest, body) VALUES (?, ?)",
            prepared.system_prompts.items(),
        )
