"""Counts sessions into tables, with the sessions that hold the same answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from store.engine.database import Database
from store.queries.shared_answers import SharedAnswers, shared_answers
from store.stats import tables
from store.stats.facts import SessionInfo, count_session, covered_subagents, session_infos

Stop = Callable[[], bool]
Progress = Callable[[int, int], None]
"""Takes how many sessions are counted, of how many."""


def no_progress(counted: int, total: int) -> None:
    """Take no note."""


def count_all(
    db: Database, connection: sqlite3.Connection, *, stopped: Stop = lambda: False,
    progress: Progress = no_progress,
) -> int:  # fmt: skip
    """Count every session into empty tables, the newest first; return how many are left.

    Args:
        db: The store.
        connection: With the tables.
        stopped: Called before each session; True ends the counting.
        progress: Called before each session.
    """
    names = tables.Names(connection)
    shared = shared_answers(db)
    write_shares(connection, shared.together)
    rows = db.connection.execute(
        "SELECT id FROM chat_sessions ORDER BY updated_at DESC, id DESC").fetchall()
    for place, (session_id,) in enumerate(rows):
        if stopped():
            return len(rows) - place
        progress(place, len(rows))
        for info in session_infos(db, [session_id]):
            tables.write_session(connection, names, info, count_session(db, info, shared))
    return 0


def write_shares(connection: sqlite3.Connection, together: Iterable[Collection[str]]) -> None:
    """Note which sessions hold answers of each other, within a transaction.

    Args:
        connection: With the tables.
        together: Sessions that hold the same answer, for each such answer.
    """
    pairs = {
        (one, other) for sessions in together
        for one in sessions for other in sessions if one != other
    }  # fmt: skip
    numbers = {
        session: tables.known_number(connection, session)
        for pair in pairs for session in pair
    }  # fmt: skip
    connection.executemany(
        "INSERT OR IGNORE INTO main.shares VALUES (?, ?)",
        [(numbers[one], numbers[other]) for one, other in pairs],
    )


def connected(connection: sqlite3.Connection, session_ids: Iterable[str]) -> set[str]:
    """Return some sessions and all that share answers with them, directly or through others.

    Args:
        connection: With the tables.
        session_ids: The sessions.
    """
    found, waiting = set[str](), set(session_ids)
    while waiting:
        found |= waiting
        more = set[str]()
        for session_id in waiting:
            more.update(row[0] for row in connection.execute(
                "SELECT o.id FROM session s JOIN shares ON shares.session = s.number"
                " JOIN session o ON o.number = shares.other WHERE s.id = ?", (session_id,)
            ))  # fmt: skip
        waiting = more - found
    return found


def shared_around(
    db: Database, connection: sqlite3.Connection, session_ids: Iterable[str]
) -> tuple[set[str], SharedAnswers]:
    """Return the sessions to count again where some changed, and how their answers are shared.

    Args:
        db: The store.
        connection: With the tables, as they were before the change.
        session_ids: The sessions that changed.
    """
    changed = set(session_ids)
    sessions = connected(connection, changed | covered_subagents(db, changed))
    while True:
        shared = shared_answers(db, sorted(sessions))
        more = connected(connection, set().union(*shared.together) - sessions) - sessions
        if not more:
            return sessions, shared
        sessions |= more


def infos_of(db: Database, session_ids: Sequence[str]) -> Iterator[tuple[str, SessionInfo | None]]:
    """Yield each session with what it is grouped by; None where it is gone."""
    for session_id in session_ids:
        yield session_id, next(iter(session_infos(db, [session_id])), None)
