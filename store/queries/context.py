"""The context view: what the model would be sent now, as opposed to all that happened.

The visible rows; and after a compaction its marker, the tail from ``tail_start_id``
(where that names a visible row of this session before the marker) or what ``kept_ids`` names,
and what came later. Codex keeps the prompts of before (``kept_prompts``: how many, or ``all``),
which the summary comes after.
A summary of what came after a point (``direction`` is ``from``) comes after its tail.
"""

from __future__ import annotations

from typing import Any

from store.conversation.readable import decode
from store.engine.database import Database
from store.text.stored_json import as_dict


def visible_ids(db: Database, session_id: str) -> list[str]:
    """Return the ids of a session's visible messages in display order."""
    rows = db.connection.execute(
        f"SELECT m.id FROM chat_messages m WHERE m.session_id = $1 AND {db.form.shown('m')}"
        " ORDER BY m.created_at, m.id",
        {"1": session_id},
    )
    return [row[0] for row in rows]


def _newest_compaction(db: Database, session_id: str) -> tuple[str, dict[str, Any]] | None:
    """Return the message of the newest visible compaction, and the data of its part."""
    row = db.connection.execute(
        f"SELECT m.id, {db.sql.text('p.data_json')}"
        " FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id"
        " WHERE p.session_id = $1 AND p.type = 'data-compaction'"
        f" AND m.session_id = $1 AND {db.form.shown('m')}"
        ' ORDER BY m.created_at DESC, m.id DESC, p."index" DESC LIMIT 1',
        {"1": session_id},
    ).fetchone()
    return None if row is None else (row[0], as_dict(as_dict(decode(row[1])).get("data")))


def context_ids(db: Database, session_id: str, *, marker_first: bool = False) -> list[str]:
    """Return the ids of the messages that the model would be sent now, in their order.

    After a compaction the marker comes first, whose summary stands for what it replaced;
    where it replaced the end of the talk, or prompts were kept, the marker comes after what it
    left.

    Args:
        db: The store.
        session_id: The session's id.
        marker_first: Whether the marker always comes first.
    """
    ids = visible_ids(db, session_id)
    found = _newest_compaction(db, session_id)
    if found is None:
        return ids
    marker, data = found
    at = ids.index(marker)
    keeps_prompts = "kept_prompts" in data
    kept = (_kept_prompts(db, session_id, ids[:at], data["kept_prompts"]) if keeps_prompts
            else _kept(ids[:at], data))
    is_last = keeps_prompts or data.get("direction") == "from"
    before, after = (kept, []) if is_last and not marker_first else ([], kept)
    return [*before, marker, *after, *ids[at + 1 :]]


def _kept_prompts(db: Database, session_id: str, before: list[str], most: object) -> list[str]:
    """Return the newest prompts of a person before a compaction, as many as it kept."""
    rows = db.connection.execute(
        "SELECT m.id FROM chat_messages m WHERE m.session_id = $1 AND m.role = 'user'"
        f" AND coalesce({db.form.fact('m', 'origin')}, 'human') = 'human'"
        " AND NOT EXISTS (SELECT 1 FROM chat_parts p WHERE p.message_id = m.id"
        " AND p.session_id = $1 AND p.type = 'data-compaction')",
        {"1": session_id},
    )
    asked = {row[0] for row in rows}
    prompts = [one for one in before if one in asked]
    return prompts[max(0, len(prompts) - most) :] if isinstance(most, int) else prompts


def _kept(before: list[str], data: dict[str, Any]) -> list[str]:
    """Return the messages before a compaction that it kept, in their order."""
    named = data.get("kept_ids")
    if isinstance(named, list):
        there = set(before)
        return [one for one in named if isinstance(one, str) and one in there]
    start, end = data.get("tail_start_id"), data.get("tail_end_id")
    if start not in before:
        return []
    return before[before.index(start) : before.index(end) + 1 if end in before else None]
