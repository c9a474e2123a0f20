"""Verbs on sessions and messages by the names that a host has for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from store.engine.database import Database
from store.errors import Refused, no_message
from store.queries.sessions import resolve
from store.recorder.lookup import by_name

T = TypeVar("T")


def on_session(db: Database, verb: Callable[[Database, str], T], session: str) -> T:
    """Return the result of a verb on a session.

    Args:
        db: The store, inside a write transaction.
        verb: Takes the store and the session's id.
        session: The session's id, source id or an unambiguous beginning of one.

    Raises:
        NotFound: The store has no such session.
    """
    return verb(db, resolve(db, session).id)


def on_message(
    db: Database, verb: Callable[[Database, str, str], T], session: str, message: str | None
) -> T:
    """Return the result of a verb on a message.

    Args:
        db: The store, inside a write transaction.
        verb: Takes the store and the ids of the session and of the message's row.
        session: As for ``on_session``.
        message: The id of the row, or the stream's id of the message; None for the last one.

    Raises:
        NotFound: The store has no such session or message.
        Refused: The session has no message.
    """
    session_id = resolve(db, session).id
    if message is None:
        row = db.connection.execute(
            f"SELECT m.id FROM chat_messages m WHERE m.session_id = $1 AND {db.form.shown('m')}"
            " ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
            {"1": session_id},
        ).fetchone()
        if row is None:
            raise Refused(f"session {session_id} has no messages yet")
        return verb(db, session_id, str(row[0]))
    # A hidden or queued row is named by its own id; the verb refuses it with the reason.
    known = db.connection.execute(
        "SELECT 1 FROM chat_messages WHERE id = $1", {"1": message}).fetchone()
    found = message if known else by_name(db, session_id, message)
    if found is None:
        raise no_message(message, session_id)
    return verb(db, session_id, found)
