"""The log of verbs that undo and redo act on.

In a library it is a side table. For a host's file it is in a separate file in the data
folder, attached to the writing connection, so that the host's file gets no table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from store.engine.connection import Connection
from store.engine.database import Database
from store.engine.dialect import quoted
from store.engine.side_tables import VERB_LOG
from store.system.locations import data_dir
from store.system.paths import real_path

State = Literal["done", "undone", "dropped", "kept"]
"""``dropped``: can no longer be redone; ``kept``: could not be undone, so undo went past it."""
BESIDE = "beside"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One verb that was done.

    Attributes:
        summary: What a toast says, such as ``archived 3 sessions``.
        edits_json: The verb's cell edits, as ``store.verbs.cells`` dumps them.
        created_session: The session that the verb made (fork), else None.
    """

    seq: int
    verb: str
    session_id: str
    summary: str
    edits_json: str
    created_session: str | None
    created_fingerprint: str | None
    state: State


def beside_path(store_path: Path) -> Path:
    """Return our own file for what belongs beside a host's store file."""
    name = hashlib.sha256(str(real_path(store_path)).encode("utf-8", "surrogateescape")).hexdigest()
    return data_dir() / "beside" / f"{name[:32]}.sqlite"


def log_of(db: Database) -> Connection:
    """Return the connection on which the verb log is, and the rows that undo can bring back.

    That is the store's own, but for a host's database on a server: it gets no further table,
    so they are in a file on this machine, whose transaction ends with that of the server.
    """
    if db.server is None or db.form.name == "own":
        return db.connection
    path = beside_path(db.path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    return db.remote.beside(path)


def log_schema(db: Database) -> str:
    """Return the attached schema that holds the verb log, made when it is missing."""
    if db.form.name == "own":
        return "main"
    if db.server is not None:
        log_of(db).execute(VERB_LOG.replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS "))
        return "main"
    attached = {row[1] for row in db.connection.execute("PRAGMA database_list")}
    if BESIDE not in attached:
        path = beside_path(db.path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        db.connection.execute(f"ATTACH $1 AS {BESIDE}", {"1": str(path)})
    db.connection.execute(
        VERB_LOG.replace("CREATE TABLE ", f"CREATE TABLE IF NOT EXISTS {BESIDE}.")
    )
    return BESIDE


Kept = Literal["undone", "deleted"]
"""``undone``: rows of forks that were undone; ``deleted``: of sessions that were deleted."""


def kept_table(db: Database, table: str, kept: Kept = "undone") -> str:
    """Return the table that keeps rows outside the three tables, made when missing.

    Args:
        db: The store, inside a write transaction.
        table: The table that the rows are from.
        kept: Why they are kept.
    """
    where = log_schema(db)
    name = f"{where}.{kept}_{table}"
    if db.server is not None and db.form.name == "own":
        _add_missing(db, table, f"{kept}_{table}")
        return name
    if db.server is not None:
        columns = ", ".join(f'"{each}"' for each in db.form.columns[table])
        log_of(db).execute(f"CREATE TABLE IF NOT EXISTS {name} (verb_seq, {columns})")
        return name
    db.connection.execute(
        f"CREATE TABLE IF NOT EXISTS {name} AS SELECT 0 AS verb_seq, * FROM main.{table} WHERE 0"
    )
    return name


def _add_missing(db: Database, table: str, kept: str) -> None:
    """Add the columns that a table of a server got since its rows are kept.

    One whose type changed is kept as text, which each type can be read from.
    """
    from store.engine.server.schema import columns_now

    there = columns_now(db.remote, kept)
    for column, kind in columns_now(db.remote, table).items():
        name = quoted(column)
        if column not in there:
            db.connection.execute(f"ALTER TABLE {kept} ADD COLUMN {name} {kind}")
        elif there[column] not in (kind, "text"):
            db.connection.execute(
                f"ALTER TABLE {kept} ALTER COLUMN {name} TYPE text USING CAST({name} AS text)")


def deleted_session(db: Database, name: str) -> list[str]:
    """Return the sessions that one deletion took out of a library and that undo can bring back.

    Args:
        db: The store.
        name: The id of the session that was deleted, or of one of its subagents.

    Returns:
        The session and its subagents, or the subagent alone; nothing if it is not kept.
    """
    kept = "deleted_chat_sessions"
    if db.form.name != "own" or kept not in _kept_tables(db):
        return []
    return [row[0] for row in db.connection.execute(
        f"SELECT id FROM {kept} WHERE id = $1 OR verb_seq IN (SELECT k.verb_seq FROM {kept} k"
        " JOIN verb_log l ON l.seq = k.verb_seq AND l.session_id = k.id WHERE k.id = $1)"
        " ORDER BY id <> $1, id", {"1": name}).fetchall()]


def drop_kept(db: Database, session_ids: Sequence[str]) -> None:
    """Delete the rows of a library that are kept for undo and belong to forgotten sessions.

    Args:
        db: The library, in a transaction; the entries of the sessions are no longer in the log.
        session_ids: The sessions.
    """
    for table in _kept_tables(db):
        column = "id" if table.endswith("_chat_sessions") else "session_id"
        db.connection.executemany(
            f"DELETE FROM {table} WHERE {column} = ?", ((one,) for one in session_ids))
        db.connection.execute(
            f"DELETE FROM {table} WHERE verb_seq NOT IN (SELECT seq FROM verb_log)")


def _kept_tables(db: Database, where: str = "main") -> list[str]:
    """Return the tables of a library that keep rows for undo."""
    if db.server is not None and db.form.name == "own":
        from store.engine.server.schema import KEPT_TABLES

        return list(KEPT_TABLES)
    return [row[0] for row in log_of(db).execute(
        f"SELECT name FROM {where}.sqlite_master WHERE type = 'table'"
        " AND (name GLOB 'undone_*' OR name GLOB 'deleted_*') ORDER BY name")]


def record(
    db: Database,
    verb: str,
    session_id: str,
    summary: str,
    edits_json: str,
    now: int,
    *,
    created_session: str | None = None,
    created_fingerprint: str | None = None,
) -> int:
    """Add a verb to the log; what was undone before can no longer be redone.

    Args:
        db: The store, inside a write transaction.
        verb: Its name, such as ``rewind``.
        session_id: The session's id.
        summary: What a toast says.
        edits_json: Its cell edits, as JSON.
        now: Epoch ms.
        created_session: The session that it made.
        created_fingerprint: The fingerprint of that session.

    Returns:
        The verb's sequence number.
    """
    where = log_schema(db)
    _drop_undone(db, where)
    cursor = log_of(db).execute(
        f"INSERT INTO {where}.verb_log(verb, session_id, summary, edits_json, created_session,"
        " created_fingerprint, state, logged_at) VALUES ($1, $2, $3, $4, $5, $6, 'done', $7)"
        " RETURNING seq",
        {
            "1": verb, "2": session_id, "3": summary, "4": edits_json,
            "5": created_session, "6": created_fingerprint, "7": now,
        },
    )  # fmt: skip
    return int(cursor.fetchone()[0])


def _drop_undone(db: Database, where: str) -> None:
    log_of(db).execute(f"UPDATE {where}.verb_log SET state = 'dropped' WHERE state = 'undone'")
    for table in _kept_tables(db, where):
        if table.startswith("undone_"):
            log_of(db).execute(f"DELETE FROM {where}.{table}")


def _entry(db: Database, where: str, condition: str) -> LogEntry | None:
    row = log_of(db).execute(
        "SELECT seq, verb, session_id, summary, edits_json, created_session,"
        f" created_fingerprint, state FROM {where}.verb_log WHERE {condition} LIMIT 1"
    ).fetchone()
    return LogEntry(*row) if row else None


def newest_done(db: Database) -> LogEntry | None:
    """Return the verb that undo takes back."""
    return _entry(db, log_schema(db), "state = 'done' ORDER BY seq DESC")


def oldest_undone(db: Database) -> LogEntry | None:
    """Return the verb that redo does again."""
    return _entry(db, log_schema(db), "state = 'undone' ORDER BY seq")


def set_state(db: Database, seq: int, state: State) -> None:
    """Say what became of a verb.

    Args:
        db: The store.
        seq: The log entry's number.
        state: Its new state.
    """
    log_of(db).execute(
        f"UPDATE {log_schema(db)}.verb_log SET state = $1 WHERE seq = $2", {"1": state, "2": seq}
    )


def set_edits(db: Database, seq: int, edits_json: str) -> None:
    """Set the cell edits of an entry that was just recorded.

    Args:
        db: The store.
        seq: The log entry's number.
        edits_json: As ``store.verbs.cells`` dumps them.
    """
    log_of(db).execute(
        f"UPDATE {log_schema(db)}.verb_log SET edits_json = $1 WHERE seq = $2",
        {"1": edits_json, "2": seq},
    )


def note_change(db: Database, session_id: str, now: int, message_id: str | None = None) -> None:
    """Add a change to a library's change log, so that pollers read it again.

    Args:
        db: The store.
        session_id: The session's id.
        now: The present, epoch ms.
        message_id: The message that changed; None for the whole session.
    """
    if db.form.name == "own":
        db.connection.execute(
            "INSERT INTO changes(session_id, message_id, changed_at) VALUES ($1, $2, $3)",
            {"1": session_id, "2": message_id, "3": now},
        )
