"""The context view: what the model would be sent now, as opposed to all that happened.

The visible rows; and after a compaction its marker, the tail from ``tail_start_id``
(where that names a visible row of this session before the marker), and what came later.
"""

from __future__ import annotations

from store.database import Database


def visible_ids(db: Database, session_id: str) -> list[str]:
    """Return the ids of a session's visible messages in display order."""
    rows = db.connection.execute(
        f"SELECT m.id FROM chat_messages m WHERE m.session_id = $1 AND {db.form.shown('m')}"
        " ORDER BY m.created_at, m.id",
        {"1": session_id},
    )
    return [row[0] for row in rows]


def _newest_marker(db: Database, session_id: str) -> tuple[str, str | None] | None:
    """Return the newest visible compaction marker: its message id and its tail_start_id."""
    row: tuple[str, str | None] | None = db.connection.execute(
        "SELECT m.id, CASE WHEN json_valid(p.data_json)"
        " THEN json_extract(p.data_json, '$.data.tail_start_id') END"
        " FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id"
        " WHERE p.session_id = $1 AND p.type = 'data-compaction'"
        f" AND m.session_id = $1 AND {db.form.shown('m')}"
        " ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
        {"1": session_id},
    ).fetchone()
    return row


def context_ids(db: Database, session_id: str) -> list[str]:
    """Return the ids of the messages that the model would be sent now, in their order.

    After a compaction the marker comes first, whose summary stands for what it replaced.
    """
    ids = visible_ids(db, session_id)
    marker = _newest_marker(db, session_id)
    if marker is None:
        return ids
    marker_id, tail_start = marker
    at = ids.index(marker_id)
    tail = ids[ids.index(tail_start) : at] if tail_start in ids[:at] else []
    return [marker_id, *tail, *ids[at + 1 :]]
