"""How many messages a session has, and which of them begin a turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from store.engine.database import Database

Beginning = tuple[str, bool]
"""The id of a message, and whether it begins a turn."""


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


def beginning_page(
    db: Database, session_id: str, after: tuple[int, str] | None, limit: int
) -> tuple[list[Beginning], tuple[int, str] | None]:
    """Return some of a session's messages, each with whether it begins a turn.

    Args:
        db: The store.
        session_id: The session.
        after: ``(created_at, id)`` of the last message of the page before; None at first.
        limit: How many messages.

    Returns:
        Those messages, and the last one's place; None in its stead where none is left.
    """
    values: dict[str, Any] = {"1": session_id, "2": limit}
    beyond = ""
    if after is not None:
        beyond = "AND (m.created_at, m.id) > ($3, $4)"
        values |= {"3": after[0], "4": after[1]}
    rows = db.connection.execute(
        f"SELECT m.id, {_begins(db)}, m.created_at FROM chat_messages m"
        f" WHERE m.session_id = $1 {beyond} ORDER BY m.created_at, m.id LIMIT $2", values,
    ).fetchall()
    more = len(rows) == limit
    return [(row[0], bool(row[1])) for row in rows], (rows[-1][2], rows[-1][0]) if more else None


def beginnings(
    db: Database, asked: Mapping[str, Collection[str]]
) -> dict[str, list[Beginning]]:
    """Return by session those messages that it has, each with whether it begins a turn.

    Args:
        db: The store.
        asked: Ids of messages by session; also of messages that it does not have.
    """
    found: dict[str, list[Beginning]] = {session_id: [] for session_id in asked}
    pairs = [{"s": session_id, "m": message_id}
             for session_id, message_ids in asked.items() for message_id in message_ids]
    if not pairs:
        return found
    message, session = (db.sql.fact("ids.value", key) for key in ("m", "s"))
    is_asked = f"m.id = {message} AND {db.sql.walked('m.session_id')} = {session}"
    for session_id, message_id, begins in db.connection.execute(
        f"SELECT m.session_id, m.id, {_begins(db)} FROM {db.sql.texts('$1', 'ids')}"
        f"{db.sql.found('chat_messages', 'm', is_asked)}", {"1": orjson.dumps(pairs).decode()},
    ).fetchall():
        found[session_id].append((message_id, bool(begins)))
    return found


def _begins(db: Database) -> str:
    return f"({db.form.shown('m')} AND {db.form.starts_turn('m')})"


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
