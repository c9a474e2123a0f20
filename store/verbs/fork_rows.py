"""Rows of sessions outside the three tables: of undone forks, and of deleted sessions."""

from __future__ import annotations

from store.engine.database import Database
from store.engine.side_tables import ATTACHMENT_COLUMNS
from store.verbs.log import Kept, kept_table


def columns_of(db: Database, table: str) -> list[str]:
    """Return the names of a table's columns, whatever form the store has."""
    return list(db.form.columns.get(table) or ATTACHMENT_COLUMNS)


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
        db.connection.execute(
            f"INSERT INTO {kept_table(db, table, kept)} SELECT $1, * FROM main.{table}"
            f" WHERE {column} = $2",
            {"1": seq, "2": session_id},
        )
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
    rows = kept_table(db, "chat_sessions", kept)
    sql = (f"SELECT 1 FROM main.chat_sessions s WHERE s.id IN"
           f" (SELECT id FROM {rows} WHERE verb_seq = $1)")
    return db.connection.execute(sql, {"1": seq}).fetchone() is not None


def bring_back(db: Database, seq: int, kept: Kept = "undone") -> list[str]:
    """Move the rows of a verb back to the three tables; returns the ids of their sessions.

    Args:
        db: The store.
        seq: The entry of the verb log that they belong to.
        kept: Why they were kept.
    """
    source = kept_table(db, "chat_sessions", kept)
    found = db.connection.execute(
        f"SELECT id FROM {source} WHERE verb_seq = $1 ORDER BY {db.sql.row_order}",
        {"1": seq}).fetchall()
    for table in kept_tables(db):
        rows = kept_table(db, table, kept)
        names = ", ".join(f'"{name}"' for name in columns_of(db, table))
        db.connection.execute(
            f"INSERT INTO main.{table}({names}) SELECT {names} FROM {rows} WHERE verb_seq = $1",
            {"1": seq},
        )
        db.connection.execute(f"DELETE FROM {rows} WHERE verb_seq = $1", {"1": seq})
    return [row[0] for row in found]
