"""The context view: what the model would be sent now, as opposed to all that happened.

The visible rows; and after a compaction its marker, the tail from ``tail_start_id``
(where that names a visible row of this session before the marker), and what came later.
A summary of what came after a point (``direction`` is ``from``) comes after its tail.
"""

from __future__ import annotations

from dataclasses import dataclass

from store.engine.database import Database


def visible_ids(db: Database, session_id: str) -> list[str]:
    """Return the ids of a session's visible messages in display order."""
    rows = db.connection.execute(
        f"SELECT m.id FROM chat_messages m WHERE m.session_id = $1 AND {db.form.shown('m')}"
        " ORDER BY m.created_at, m.id",
        {"1": session_id},
    )
    return [row[0] for row in rows]


@dataclass(frozen=True, slots=True)
class _Marker:
    """The newest visible compaction: its message, and what it left standing."""

    id: str
    tail_start: str | None
    tail_end: str | None
    direction: str | None


def _newest_marker(db: Database, session_id: str) -> _Marker | None:
    named = ", ".join(
        db.sql.fact("p.data_json", f"data.{key}")
        for key in ("tail_start_id", "tail_end_id", "direction")
    )
    row = db.connection.execute(
        f"SELECT m.id, {named}"
        " FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id"
        " WHERE p.session_id = $1 AND p.type = 'data-compaction'"
        f" AND m.session_id = $1 AND {db.form.shown('m')}"
        " ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
        {"1": session_id},
    ).fetchone()
    return None if row is None else _Marker(*row)


def context_ids(db: Database, session_id: str) -> list[str]:
    """Return the ids of the messages that the model would be sent now, in their order.

    After a compaction the marker comes first, whose summary stands for what it replaced;
    where it replaced the end of the talk, the marker comes after what it left.
    """
    ids = visible_ids(db, session_id)
    marker = _newest_marker(db, session_id)
    if marker is None:
        return ids
    at = ids.index(marker.id)
    before = ids[:at]
    start = before.index(marker.tail_start) if marker.tail_start in before else at
    end = before.index(marker.tail_end) + 1 if marker.tail_end in before else at
    tail, later = ids[start:end], ids[at + 1 :]
    return [*tail, marker.id, *later] if marker.direction == "from" else [marker.id, *tail, *later]
