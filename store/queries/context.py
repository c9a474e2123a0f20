"""The context view: what the model would be sent now, as opposed to all that happened.

The visible rows; and after a compaction its marker, the tail from ``tail_start_id``
(where that names a visible row of this session before the marker) or what ``kept_ids`` names,
and what came later. Codex keeps the prompts of before (``kept_prompts``: how many, or ``all``),
which the summary comes after.
A summary of what came after a point (``direction`` is ``from``) comes after its tail.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Compactions:
    """The visible compactions: their messages, and what the newest one says."""

    ids: list[str]
    data: dict[str, Any]


def _compactions(db: Database, session_id: str) -> _Compactions | None:
    rows = db.connection.execute(
        f"SELECT m.id, {db.sql.text('p.data_json')}"
        " FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id"
        " WHERE p.session_id = $1 AND p.type = 'data-compaction'"
        f" AND m.session_id = $1 AND {db.form.shown('m')}"
        ' ORDER BY m.created_at, m.id, p."index"',
        {"1": session_id},
    ).fetchall()
    if not rows:
        return None
    return _Compactions([row[0] for row in rows], as_dict(as_dict(decode(rows[-1][1])).get("data")))


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
    found = _compactions(db, session_id)
    if found is None:
        return ids
    marker = found.ids[-1]
    at = ids.index(marker)
    keeps_prompts = "kept_prompts" in found.data
    kept = (_kept_prompts(db, session_id, ids[:at], found) if keeps_prompts
            else _kept(ids[:at], found))
    is_last = keeps_prompts or found.data.get("direction") == "from"
    before, after = (kept, []) if is_last and not marker_first else ([], kept)
    return [*before, marker, *after, *ids[at + 1 :]]


def _kept_prompts(
    db: Database, session_id: str, before: list[str], found: _Compactions
) -> list[str]:
    """Return the newest prompts of a person before a compaction, as many as it kept."""
    rows = db.connection.execute(
        "SELECT m.id FROM chat_messages m WHERE m.session_id = $1 AND m.role = 'user'"
        f" AND coalesce({db.form.fact('m', 'origin')}, 'human') = 'human'",
        {"1": session_id},
    )
    asked = {row[0] for row in rows}
    prompts = [one for one in before if one in asked and one not in found.ids]
    most = found.data["kept_prompts"]
    return prompts[max(0, len(prompts) - most) :] if isinstance(most, int) else prompts


def _kept(before: list[str], found: _Compactions) -> list[str]:
    """Return the messages before a compaction that it kept, in their order."""
    named = found.data.get("kept_ids")
    if isinstance(named, list):
        there = set(before)
        return [one for one in named if one in there]
    start, end = found.data.get("tail_start_id"), found.data.get("tail_end_id")
    if start not in before:
        return []
    return before[before.index(start) : before.index(end) + 1 if end in before else None]
