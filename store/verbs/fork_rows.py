"""Rows of sessions outside the three tables: of undone forks, and of deleted sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from store.engine.database import Database
from store.engine.dialect import SQLITE
from store.engine.schema import REQUIRED_COLUMNS
from store.engine.side_tables import ATTACHMENT_COLUMNS
from store.errors import Refused
from store.verbs.log import Kept, kept_table, log_of


def columns_of(db: Database, table: str, *, copied: bool = False) -> list[str]:
    """Return the names of a table's columns that can be written, whatever form the store has.

    Args:
        db: The store.
        table: The table.
        copied: Without those that number the rows, as a copy has a number of its own.
    """
    known = list(db.form.columns.get(table) or ATTACHMENT_COLUMNS)
    if db.server is None:
        return known
    from store.engine.server.schema import columns_now, computed_columns

    names = list(columns_now(db.remote, table)) if db.form.name == "own" else known
    computed = computed_columns(db.remote, table)
    return [name for name in names if name not in computed or (computed[name] and not copied)]


def fingerprint(db: Database, session_id: str) -> str:
    """Return what changes when a session grows, shrinks, changes or gets a child."""
    (messages, newest) = db.connection.execute(
        "SELECT count(*), max(updated_at) FROM chat_messages WHERE session_id = $1",
        {"1": session_id},
    ).fetchone()
    (parts, touched) = db.connection.execute(
        "SELECT count(*), max(updated_at) FROM chat_parts WHERE session_id = $1",
        {"1": session_id},
    ).fetchone()
    (children,) = db.connection.execute(
        "SELECT count(*) FROM chat_sessions WHERE parent_id = $1", {"1": session_id}
    ).fetchone()
    return f"{messages} {newest} {parts} {touched} {children}"


def kept_tables(db: Database) -> dict[str, str]:
    """Return the tables of a session's rows, each with its column of the session's id."""
    tables = {"chat_sessions": "id", "chat_messages": "session_id", "chat_parts": "session_id"}
    return tables | {"attachments": "session_id"} if db.form.name == "own" else tables


def exists(db: Database, session_id: str) -> bool:
    """Return whether a session is there."""
    sql = "SELECT 1 FROM chat_sessions WHERE id = $1"
    return db.connection.execute(sql, {"1": session_id}).fetchone() is not None


def why_kept(db: Database, session_id: str, made_as: str | None) -> str | None:
    """Return why a fork cannot be undone any more; None where it can.

    Nothing that was added to a fork may be lost.

    Args:
        db: The store.
        session_id: The fork's id.
        made_as: Its fingerprint when it was made.
    """
    if not exists(db, session_id):
        return "the fork is no longer there"
    if fingerprint(db, session_id) == made_as:
        return None
    (children,) = db.connection.execute(
        "SELECT count(*) FROM chat_sessions WHERE parent_id = $1", {"1": session_id}
    ).fetchone()
    what = "has sessions of its own now" if children else "has grown since it was made"
    return f"the fork {what}, so it stays; it can be archived instead"


def take_back(db: Database, seq: int, session_id: str, kept: Kept = "undone") -> None:
    """Move a session's rows out of the three tables.

    Args:
        db: The store.
        seq: The entry of the verb log that they belong to.
        session_id: The session.
        kept: Why they are kept.
    """
    tables = kept_tables(db)
    for table, column in tables.items():
        rows = kept_table(db, table, kept)
        if db.server is None:
            db.connection.execute(
                f"INSERT INTO {rows} SELECT $1, * FROM main.{table} WHERE {column} = $2",
                {"1": seq, "2": session_id})
            continue
        names = columns_of(db, table)
        if log_of(db) is db.connection:
            db.connection.execute(
                f"INSERT INTO {rows}(verb_seq, {_listed(names)})"
                f" SELECT $1, {_listed(names)} FROM main.{table} WHERE {column} = $2",
                {"1": seq, "2": session_id})
            continue
        values = ", ".join(
            f'"{name}"' if name in REQUIRED_COLUMNS[table] else f'CAST("{name}" AS text)'
            for name in names)
        found = db.connection.execute(
            f"SELECT {values} FROM {table} WHERE {column} = $1", {"1": session_id})
        log_of(db).executemany(
            f"INSERT INTO {rows}(verb_seq, {_listed(names)})"
            f" VALUES (?{', ?' * len(names)})", [(seq, *row) for row in found.fetchall()])
    # A host's tables may be without ON DELETE CASCADE. In a library all goes with the session's
    # row, which is one event of its log.
    for table, column in tables.items() if db.form.name == "own" else reversed(tables.items()):
        db.connection.execute(f"DELETE FROM {table} WHERE {column} = $1", {"1": session_id})


def is_there_again(db: Database, seq: int, kept: Kept = "undone") -> bool:
    """Return whether one of the sessions that are kept for a verb is in the store, as by an import.

    Args:
        db: The store.
        seq: The entry of the verb log that they belong to.
        kept: Why they are kept.
    """
    return any(exists(db, session_id) for session_id in kept_sessions(db, seq, kept))


def kept_sessions(db: Database, seq: int, kept: Kept) -> list[str]:
    """Return the ids of the sessions that are kept for a verb, as they were taken.

    Args:
        db: The store.
        seq: The entry of the verb log that they belong to.
        kept: Why they are kept.
    """
    rows, log = kept_table(db, "chat_sessions", kept), log_of(db)
    order = db.sql.row_order if log is db.connection else SQLITE.row_order
    return [row[0] for row in log.execute(
        f"SELECT id FROM {rows} WHERE verb_seq = $1 ORDER BY {order}", {"1": seq}).fetchall()]


def bring_back(db: Database, seq: int, kept: Kept = "undone") -> list[str]:
    """Move the rows of a verb back to the three tables; returns the ids of their sessions.

    Args:
        db: The store.
        seq: The entry of the verb log that they belong to.
        kept: Why they were kept.

    Raises:
        Refused: A column of another program does not take what it held then.
    """
    found, log = kept_sessions(db, seq, kept), log_of(db)
    numbered = "" if db.server is None else " OVERRIDING SYSTEM VALUE"
    for table in kept_tables(db):
        rows = kept_table(db, table, kept)
        columns = columns_of(db, table)
        names, chosen = _listed(columns), f"FROM {rows} WHERE verb_seq = $1"
        try:
            if log is db.connection:
                values = ", ".join(_as_now(db, table, columns, f"{kept}_{table}"))
                db.connection.execute(
                    f"INSERT INTO main.{table}({names}){numbered} SELECT {values} {chosen}",
                    {"1": seq})
            else:
                values = ", ".join(_as_now(db, table, columns))
                db.connection.executemany(
                    f"INSERT INTO {table}({names}){numbered} VALUES ({values})",
                    log.execute(f"SELECT {names} {chosen}", {"1": seq}).fetchall())
        except sqlite3.DataError as error:
            raise Refused(
                f"a column of {table} has another type now, which does not take what is brought"
                f" back: {error}") from error
        log.execute(f"DELETE {chosen}", {"1": seq})
    return found


def _as_now(
    db: Database, table: str, columns: Sequence[str], kept: str | None = None
) -> list[str]:
    """Return SQL of the values that are brought back, in the types that the columns have now.

    Args:
        db: The store.
        table: The table that they go to.
        columns: Its columns.
        kept: The table that they come from; None where they are given as parameters.
    """
    if db.server is None:
        return [f'"{name}"' for name in columns]
    from store.engine.server.schema import columns_now

    now = columns_now(db.remote, table)
    if kept is None:
        return ["?" if name in REQUIRED_COLUMNS[table] or name not in now
                else f"CAST(CAST(? AS text) AS {now[name]})" for name in columns]
    then = columns_now(db.remote, kept)
    return [f'"{name}"' if then.get(name) == now[name] else f'CAST("{name}" AS {now[name]})'
            for name in columns]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
