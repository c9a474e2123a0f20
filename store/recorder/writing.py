"""The SQL of the recorder: runs in one transaction on the writing connection."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from functools import cache

from store.engine.database import Database
from store.engine.json_edits import set_json
from store.errors import NotFound
from store.recorder.batch import Batch, MessageWrite, PartWrite, Reserved, SessionWrite
from store.recorder.json_text import dump
from store.recorder.large_json import pieces
from store.rows import UNKNOWN_MODEL
from store.usage import COLUMNS, KEYS

CHANGES_KEPT = 10_000
"""Rows of ``changes`` that are kept; a poller further behind reads everything again."""
_TRIM_EVERY = 1_024
_DEFAULT_TITLE = "New Chat"

_INSERT_SESSION = (
    "INSERT INTO chat_sessions(id, agent, workspace_root, model_json, metadata_json, created_at,"
    " updated_at, parent_id, parent_message_id, permissions_json)"
    " VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, $9)"
)
_INSERT_MESSAGE = (
    "INSERT INTO chat_messages(id, session_id, role, metadata_json, created_at, updated_at)"
    " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO NOTHING"
)
_KEEPING_HIDDEN = (
    "CASE WHEN json_extract($json, '$.hidden_at') IS NULL THEN $2"
    " ELSE json_set($2, '$.hidden_at', json_extract($json, '$.hidden_at')) END"
)
_TOUCH_MESSAGE = "UPDATE chat_messages SET updated_at = ? WHERE id = ?"
_LARGE_TABLE = "CREATE TEMP TABLE IF NOT EXISTS large_json(n INTEGER PRIMARY KEY, piece TEXT)"
_LARGE_VALUE = (
    "(SELECT group_concat(piece, '') FROM (SELECT piece FROM temp.large_json ORDER BY n))"
)


@cache
def _insert_part(data_json: str) -> str:
    return (
        'INSERT INTO chat_parts(id, message_id, session_id, "index", type, data_json, tool_call_id,'
        f" tool_state, created_at, updated_at) VALUES (?, ?, ?, ?, ?, {data_json}, ?, ?, ?, ?)"
        " ON CONFLICT(id) DO UPDATE SET data_json = excluded.data_json, type = excluded.type,"
        " tool_call_id = excluded.tool_call_id, tool_state = excluded.tool_state,"
        " updated_at = excluded.updated_at"
    )


@cache
def _grow_part(data_json: str) -> str:
    return f"UPDATE chat_parts SET data_json = {data_json}, updated_at = ? WHERE id = ?"


_LOG_CHANGE = "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, ?)"
RESERVE = (
    "CASE WHEN has_sequence_privilege(CAST($sequence AS oid), 'USAGE')"
    " THEN nextval(CAST(CAST($sequence AS oid) AS regclass)) END"
)
"""A number of ``changes`` that nobody else gets.

NULL where the role may not take one, or there is no sequence.
"""
_LOG_AND_RESERVE = (
    "INSERT INTO changes(session_id, message_id, changed_at) VALUES ($session, $message, $at)"
    f" RETURNING seq, CAST(CAST(written_by AS text) AS bigint), {RESERVE}"
)


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that is to be made.

    Attributes:
        workspace: The folder that it is about; None for none.
        parent: The session that started it; None for none.
    """

    id: str
    agent: str
    workspace: str | None
    metadata_json: str
    at: int
    model_json: str = dump(UNKNOWN_MODEL)
    parent: str | None = None
    parent_message: str | None = None
    permissions_json: str = "[]"


def insert_session(db: Database, session: NewSession) -> None:
    """Make a session without messages."""
    parameters = (session.id, session.agent, session.workspace, session.model_json,
                  session.metadata_json, session.at, session.parent, session.parent_message,
                  session.permissions_json)
    numbered = {str(place): value for place, value in enumerate(parameters, 1)}
    db.connection.execute(_INSERT_SESSION, numbered)
    log_change(db, session.id, None, session.at)


def newest_message_at(db: Database, session_id: str) -> int:
    """Return the ``created_at`` of the session's last message of any kind, 0 without one."""
    found = db.connection.execute(
        "SELECT max(created_at) FROM chat_messages WHERE session_id = $1", {"1": session_id}
    ).fetchone()
    return int(found[0] or 0)


def write(db: Database, batch: Batch) -> None:
    """Write a batch.

    Raises:
        NotFound: The session or the message is not there any more.
    """
    if batch.session is not None:
        _write_session(db, batch.session_id, batch.session, batch.at)
    if batch.message is not None:
        _write_message(db, batch.session_id, batch.message, batch.at)
    if batch.removed:
        db.connection.executemany(
            "DELETE FROM chat_parts WHERE id = ?", [(row_id,) for row_id in batch.removed]
        )
        db.connection.execute(_TOUCH_MESSAGE, (batch.at, batch.message_id))
    for part in batch.parts:
        _write_part(db, batch, part)
    if db.server is None:
        number = log_change(db, batch.session_id, batch.message_id, batch.at)
        batch.logged = None if number is None else (number, None)
    else:
        _log_and_reserve(db, batch)


def is_written(db: Database, batch: Batch) -> bool:
    """Return whether a batch was committed, of which nothing else is known.

    Args:
        db: The store, in a transaction: one that writes begins after that of the batch.
        batch: The batch.
    """
    if batch.logged is None:
        return batch.reserved is not None and _has_used(db, batch)
    seq, by = batch.logged
    if by is None:
        return _is_logged(db, batch, seq)
    row = db.connection.execute(
        "SELECT 1 FROM changes WHERE seq = $1 AND session_id = $2"
        " AND written_by = CAST(CAST($3 AS text) AS xid8)",
        {"1": seq, "2": batch.session_id, "3": by},
    ).fetchone()
    return row is not None


def _has_used(db: Database, batch: Batch) -> bool:
    """Return whether a batch has used its reserved number; if not, it cannot be written any more.

    Args:
        db: The store, in a transaction that writes.
        batch: It was sent with a reserved number.
    """
    assert batch.reserved is not None
    number = batch.reserved.number
    taken = db.connection.execute(
        "INSERT INTO changes(seq, session_id, message_id, changed_at) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT DO NOTHING RETURNING 1", _entry(batch, number)).fetchone()
    return taken is None and _is_logged(db, batch, number)


def _is_logged(db: Database, batch: Batch, number: int) -> bool:
    """Return whether an entry of ``changes`` is that of a batch.

    Args:
        db: The store.
        batch: The batch.
        number: That of the entry.
    """
    return db.connection.execute(
        "SELECT 1 FROM changes WHERE seq = $1 AND session_id = $2"
        f" AND message_id {db.sql.same} $3 AND changed_at = $4", _entry(batch, number),
    ).fetchone() is not None


def _entry(batch: Batch, number: int) -> dict[str, object]:
    return {"1": number, "2": batch.session_id, "3": batch.message_id, "4": batch.at}


def _write_part(db: Database, batch: Batch, write: PartWrite) -> None:
    large = write.data_json is None
    data_json, value = ("?", (write.data_json,)) if not large else _sent(db, write)
    part = write.part
    if write.new or write.moved:
        row = (part.row_id, batch.message_id, batch.session_id, part.index, write.columns[0],
               *value, *write.columns[1:], part.created_at, batch.at)
        try:
            db.connection.execute(_insert_part(data_json), row)
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
                raise
            raise _message_gone(batch) from error
    else:
        grown = db.connection.execute(_grow_part(data_json), (*value, batch.at, part.row_id))
        if not grown.rowcount:
            raise _message_gone(batch)
    if large and db.server is None:
        db.connection.execute("DELETE FROM temp.large_json")


def _message_gone(batch: Batch) -> NotFound:
    return NotFound(
        f"message {batch.message_id} of session {batch.session_id} is no longer in the store")


def _sent(db: Database, write: PartWrite) -> tuple[str, tuple[object, ...]]:
    """Return an expression for the JSON of a large part, which is sent in pieces, and its values.

    Args:
        db: The store, in a transaction.
        write: The part.
    """
    if db.server is not None:
        from store.engine.server.large_texts import SENT_JSON, send

        return SENT_JSON, (send(db.connection, pieces(write.data)),)
    db.connection.execute(_LARGE_TABLE)
    db.connection.executemany(
        "INSERT INTO temp.large_json VALUES (?, ?)", enumerate(pieces(write.data)))
    return _LARGE_VALUE, ()


def _write_message(db: Database, session_id: str, message: MessageWrite, at: int) -> None:
    if message.new:
        db.connection.execute(
            _INSERT_MESSAGE,
            (message.id, session_id, message.role, message.metadata_json, message.created_at, at),
        )
        return
    values = {"2": message.metadata_json, "3": at}
    if not set_json(
        db, "chat_messages", message.id, _KEEPING_HIDDEN, values, also="updated_at = $3, "
    ):
        raise NotFound(f"message {message.id} is no longer in the store")


_ADD_USED = ", ".join(
    f"{column} = {column} + ${place}"
    for place, column in enumerate(
        (*COLUMNS, "total_tokens"), 3,
    )
)


def _write_session(db: Database, session_id: str, session: SessionWrite, at: int) -> None:
    used = [session.used[bucket] for bucket in KEYS]
    parameters = (session_id, at, *used, sum(used), session.model_json, session.activity_json)
    numbered = {str(place): value for place, value in enumerate(parameters, 1)}
    newest = db.sql.greatest("updated_at", "$2")
    sets = f"updated_at = {newest}, {_ADD_USED}, model_json = coalesce($9, model_json)"
    if session.activity_json is None:
        changed = db.connection.execute(
            f"UPDATE chat_sessions SET {sets} WHERE id = $1", numbered).rowcount
    else:
        changed = set_json(
            db, "chat_sessions", session_id, "json_set($json, '$.activity', json($10))", numbered,
            also=f"{sets}, ")
    if not changed:
        raise NotFound(f"session {session_id} is no longer in the store")
    if session.title is not None:
        _set_title(db, session_id, session.title)


def _set_title(db: Database, session_id: str, title: str) -> None:
    """Name a session that has no title yet."""
    if db.form.title_column:
        sql = "UPDATE chat_sessions SET title = $2 WHERE id = $1 AND title = $3"
        db.connection.execute(sql, {"1": session_id, "2": title, "3": _DEFAULT_TITLE})
        return
    set_json(
        db, "chat_sessions", session_id,
        "CASE WHEN json_extract($json, '$.title') IS NULL"
        " THEN json_set($json, '$.title', $2, '$.title_from', 'prompt') ELSE $json END",
        {"2": title})


def mark_interrupted(db: Database, session_id: str, at: int) -> None:
    """Stamp the message that a run which died left open with ``interrupted_at``.

    Args:
        db: The store.
        session_id: The session's id.
        at: Epoch ms.
    """
    metadata = "m.metadata_json"
    found = db.connection.execute(
        "SELECT m.id FROM chat_messages m WHERE m.id = (SELECT id FROM chat_messages"
        " WHERE session_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1)"
        " AND m.role = 'assistant'"
        f" AND NOT {db.sql.is_there(metadata, 'backscroll.finish_reason')}"
        f" AND NOT {db.sql.is_there(metadata, 'backscroll.aborted_at')}",
        {"1": session_id},
    ).fetchone()
    if found is not None:
        set_json(
            db, "chat_messages", found[0],
            "json_set($json, '$.backscroll', json_set(coalesce("
            "json_extract($json, '$.backscroll'), json('{}')), '$.interrupted_at', $2))",
            {"2": at}, also="updated_at = $2, ")


def log_change(
    db: Database, session_id: str, message_id: str | None, at: int
) -> int | None:
    """Add a change to a library's change log; return its number, None for another file.

    Args:
        db: The store.
        session_id: The session's id.
        message_id: The message that changed; None for the whole session.
        at: Epoch ms.
    """
    if db.form.name != "own":
        return None
    values = session_id, message_id, at
    if db.server is None:
        seq = db.file.execute(_LOG_CHANGE, values).lastrowid or 0
    else:
        (seq,) = db.connection.execute(f"{_LOG_CHANGE} RETURNING seq", values).fetchone()
    trim_now_and_then(db, seq)
    return int(seq)


def is_trimmed_at(newest: int) -> bool:
    """Return whether old rows of the change log are deleted with a row of this number."""
    return newest % _TRIM_EVERY == 0


def trim_now_and_then(db: Database, newest: int) -> None:
    """Now and then, delete all but the newest rows of the change log.

    Args:
        db: The store.
        newest: The number of the row that was just added.
    """
    if is_trimmed_at(newest):
        db.connection.execute("DELETE FROM changes WHERE seq <= ?", (newest - CHANGES_KEPT,))


def _log_and_reserve(db: Database, batch: Batch) -> None:
    """Add a batch to the change log of a store on a server, and reserve a number for the next."""
    if db.form.name != "own":
        return
    sequence = db.remote.changes_sequence
    seq, by, number = db.connection.execute(_LOG_AND_RESERVE, {
        "session": batch.session_id, "message": batch.message_id, "at": batch.at,
        "sequence": sequence}).fetchone()
    batch.logged = seq, by
    if sequence is not None and number is not None:
        batch.following = Reserved(number, sequence, time.monotonic())
    trim_now_and_then(db, seq)
