"""How many messages a session has, counted at once or bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from store.engine.database import Database


@dataclass(slots=True)
class Counts:
    """How many messages a session has.

    Attributes:
        messages: Visible, without queued and cancelled ones.
        hidden: Hidden by a rewind (cancelled ones are neither).
        turns: Visible messages that begin a turn (``store.conversation.turns``).
        queued: Waiting, no transcript yet.
    """

    messages: int = 0
    hidden: int = 0
    turns: int = 0
    queued: int = 0


def counts(db: Database, ids: Sequence[str]) -> dict[str, Counts]:
    """Return the counts of each of these sessions; one without messages has zeros."""
    sql = _counting(db, "chat_messages m WHERE m.session_id = $1")
    found = {}
    for session_id in ids:
        counted = found[session_id] = Counts()
        _add_counts(counted, db.connection.execute(sql, {"1": session_id}).fetchall())
    return found


def add_counts(
    db: Database, session_id: str, counted: Counts, after: tuple[int, str] | None, limit: int
) -> tuple[int, str] | None:
    """Add some of a session's messages to its counts, so that other reads go in between.

    Args:
        db: The store.
        session_id: The session.
        counted: What was counted so far; added to.
        after: ``(created_at, id)`` of the last message that was counted; None at first.
        limit: How many messages are counted.

    Returns:
        Of the last one that is counted now; None where none is left.
    """
    values: dict[str, Any] = {"1": session_id, "2": limit - 1}
    beyond = ""
    if after is not None:
        beyond = "AND (m.created_at, m.id) > ($3, $4)"
        values |= {"3": after[0], "4": after[1]}
    some = f"chat_messages m WHERE m.session_id = $1 {beyond}"
    last = db.connection.execute(
        f"SELECT m.created_at, m.id FROM {some} ORDER BY m.created_at, m.id LIMIT 1 OFFSET $2",
        values,
    ).fetchone()
    if last is not None:
        some += " AND (m.created_at, m.id) <= ($5, $6)"
        values |= {"5": last[0], "6": last[1]}
    del values["2"]
    _add_counts(counted, db.connection.execute(_counting(db, some), values).fetchall())
    return None if last is None else (last[0], last[1])


def _counting(db: Database, some: str) -> str:
    form = db.form
    # Grouped by what each row is, so that its metadata is looked at once.
    return f"""
        SELECT CASE WHEN {form.cancelled("m")} THEN 'cancelled'
                    WHEN {form.hidden_at("m")} IS NOT NULL THEN 'hidden'
                    WHEN {form.queued("m")} THEN 'queued' ELSE 'shown' END AS state,
               {form.starts_turn("m")} AS asks,
               count(*)
        FROM {some} GROUP BY 1, 2"""


def _add_counts(counted: Counts, found: Sequence[tuple[str, int, int]]) -> None:
    for state, asks, rows in found:
        if state == "shown":
            counted.messages += rows
            counted.turns += rows if asks else 0
        elif state == "hidden":
            counted.hidden += rows
        elif state == "queued":
            counted.queued += rows
