"""What a live view reads again of a session that has changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import orjson

from store.activity.judgement import Activity, current
from store.engine.database import Database
from store.engine.values import number
from store.queries.sessions import get
from store.queries.transcript import Child, Keyset, Outline, children, outline_page, rows_of
from store.rows import MessageRow, PartRow, SessionRow

Span = tuple[str, int, int]
"""``(message id, first index, last index)``, both ends included."""


@dataclass(slots=True)
class Facts:
    """A session as it is now.

    Attributes:
        places: ``(created_at, id)`` of the messages that were asked for and exist.
    """

    session: SessionRow
    activity: Activity
    children: list[Child] = field(default_factory=list)
    places: dict[str, Keyset] = field(default_factory=dict)


def facts(
    db: Database, session_id: str, now: int, message_ids: Collection[str] = ()
) -> Facts | None:
    """Return a session's row, its activity and children, and the places of some messages.

    Args:
        db: The store.
        session_id: The session.
        now: Epoch ms.
        message_ids: The messages whose places are wanted.

    Returns:
        None where the session is no longer in the store.
    """
    session = get(db, session_id)
    if session is None:
        return None
    activity = current(db, session, now)
    places = {
        message_id: (number(created_at), message_id)
        for message_id, created_at in db.connection.execute(
            # By the few ids: SQLite would rather walk through all messages of the session.
            f"SELECT m.id, m.created_at FROM {db.sql.texts('$1', 'ids')}"
            f" {db.sql.then_join} chat_messages m ON m.id = ids.value"
            f" WHERE {db.sql.walked('m.session_id')} = $2",
            {"1": orjson.dumps(list(message_ids)).decode(), "2": session_id},
        ).fetchall()
    } if message_ids else {}
    return Facts(session, activity, children(db, session_id), places)


@dataclass(slots=True)
class SessionEnd:
    """The end of a session, read again.

    Attributes:
        whole: False where the session goes on beyond what was read.
    """

    outlines: list[Outline]
    whole: bool
    messages: list[MessageRow]
    parts: list[PartRow]


def end_after(
    db: Database, session_id: str, after: Keyset | None, limit: int, spans: Sequence[Span],
    last: int,
) -> SessionEnd:
    """Return what comes after a message, with some rows.

    Args:
        db: The store.
        session_id: The session.
        after: ``(created_at, id)`` of that message; None for the whole session.
        limit: At most so many messages.
        spans: Other rows that are wanted.
        last: How many of the last parts are wanted with their rows.
    """
    outlines = outline_page(db, session_id, after, limit + 1)
    whole = len({outline.message_id for outline in outlines}) <= limit
    wanted = [*spans, *_spans(outlines[-last:])] if whole and last else spans
    messages, parts = rows_of(db, wanted)
    return SessionEnd(outlines, whole, messages, parts)


def _spans(outlines: Sequence[Outline]) -> list[Span]:
    spans: list[Span] = []
    for outline in outlines:
        index = -1 if outline.position is None else outline.position
        if spans and spans[-1][0] == outline.message_id:
            spans[-1] = (outline.message_id, spans[-1][1], index)
        else:
            spans.append((outline.message_id, index, index))
    return spans
