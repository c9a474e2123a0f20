"""Examines an event log for the doctor, and mends it without losing an event."""

from __future__ import annotations

from collections.abc import Sequence

from store.engine.database import Database, in_transaction
from store.engine.transactions import unmoving
from store.events import sql
from store.events.log import snapshot
from store.events.rebuilding import differing

_GAPS = (
    "SELECT stream_id FROM events GROUP BY stream_id HAVING max(seq) - min(seq) + 1 <> count(*)"
)


def with_gaps(db: Database) -> list[str]:
    """Return the sessions of whose events some are missing."""
    return [row[0] for row in db.connection.execute(_GAPS)]


def not_as_told(db: Database) -> list[str]:
    """Return the sessions that the log makes other than they are."""
    with unmoving(db):
        return differing(db)


def mend(db: Database, sessions: Sequence[str], now: int) -> None:
    """Number the events of sessions without gaps, and add a snapshot of each.

    Args:
        db: The library, open for writing.
        sessions: Their ids.
        now: Epoch ms.
    """
    for session in sessions:
        in_transaction(db, _mend_one, session, now)


def _mend_one(db: Database, session: str, now: int) -> None:
    connection = db.connection
    (last,) = connection.execute(
        "SELECT max(seq) FROM events WHERE stream_id = ?", (session,)).fetchone()
    if last is not None:
        events = connection.execute(
            "SELECT id FROM events WHERE stream_id = ? ORDER BY seq", (session,)).fetchall()
        first = int(last) - len(events) + 1
        connection.executemany(
            "UPDATE events SET seq = ? WHERE id = ?",
            ((-first - place, number) for place, (number,) in enumerate(events)))
        connection.execute(
            "UPDATE events SET seq = -seq WHERE stream_id = ? AND seq < 0", (session,))
    if session == sql.STORE_STREAM:
        return
    values = {"session": session, "at": now}
    if connection.execute("SELECT 1 FROM chat_sessions WHERE id = :session", values).fetchone():
        snapshot(db, session, now)
    else:
        connection.execute(sql.DELETED, values)
