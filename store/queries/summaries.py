"""What ``sessions --json`` says of each session: the row, and what is computed beside it.

One element has the contract's columns by name (JSON columns decoded and named without
``_json``: ``model``, ``permissions``, ``metadata``) and

- ``title``: the user's own, else the source's, else null;
- ``source``: ``{"kind", "id", "path"}`` or null;
- ``lineage``: ``{"kind", "parent_id", "parent_message_id"}`` or null; kind is ``fork``,
  ``subagent``, ``continuation`` or ``unknown``;
- ``activity``: ``idle``, ``running``, ``waiting-approval``, ``waiting-input``, ``queued``,
  ``retrying``, ``interrupted``, ``error``, ``ended`` or ``unknown``, and ``activity_from``:
  ``stored`` or ``guessed``;
- ``message_count``: visible messages, without queued ones; ``hidden_count``;
  ``queued_count``; ``turn_count``: visible messages that a human sent; all null while the session
  is listed and not read yet.

Times are epoch ms.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import fields
from typing import Any

from store.activity.judgement import judged_all, known_of, live_activities
from store.conversation.outline_marks import is_outline
from store.engine.database import Database
from store.queries import counting, sessions
from store.rows import SessionRow
from store.text.exact_json import column_value

Summary = dict[str, Any]
Keep = Callable[[Sequence[str]], Container[str]]
_BATCH = 256
_COUNTS = ("message_count", "hidden_count", "queued_count", "turn_count")
_COLUMNS = tuple(field.name for field in fields(SessionRow) if field.name != "title")


def summaries(
    db: Database,
    filter: sessions.SessionFilter,
    *,
    now: int,
    before: sessions.Cursor | None = None,
    limit: int | None = None,
    keep: Keep | None = None,
) -> Iterator[Summary]:
    """Yield the summaries of a list, newest first, reading as it goes.

    Args:
        db: The store.
        filter: Which sessions.
        now: The present, epoch ms; what runs is guessed by it.
        before: ``(updated_at, id)`` of the last row of the page before.
        limit: How many; None for all.
        keep: Returns the ids of those that are wanted, of a batch; None for all.
    """
    left = limit
    while left is None or left > 0:
        wanted = _BATCH if left is None or keep is not None else min(_BATCH, left)
        rows = sessions.page(db, filter, before=before, limit=wanted)
        kept = keep([row.id for row in rows]) if keep is not None else None
        found = [row for row in rows if kept is None or row.id in kept][:left]
        yield from summaries_of(db, found, now=now)
        if len(rows) < wanted:
            return
        before = (rows[-1].updated_at, rows[-1].id)
        left = None if left is None else left - len(found)


def summaries_of(db: Database, rows: Sequence[SessionRow], *, now: int) -> list[Summary]:
    """Return the summaries of these sessions.

    Args:
        db: The store.
        rows: The rows of the sessions.
        now: The present, epoch ms.
    """
    ids = [row.id for row in rows]
    counts = counting.counts(db, ids)
    live = live_activities(db, ids)
    judged = judged_all(db, [known_of(row, live.get(row.id)) for row in rows], now)
    found = []
    for row in rows:
        summary = _row(row)
        metadata = summary["metadata"] if isinstance(summary["metadata"], dict) else {}
        source = metadata.get("source")
        activity, _ = judged[row.id]
        summary |= {
            "title": row.title,
            "source": source if isinstance(source, dict) else None,
            "lineage": _lineage(db, row, metadata),
            "activity": activity.state,
            "activity_from": activity.from_,
            "message_count": counts[row.id].messages,
            "hidden_count": counts[row.id].hidden,
            "queued_count": counts[row.id].queued,
            "turn_count": counts[row.id].turns,
        }
        if is_outline(metadata):
            summary |= dict.fromkeys(_COUNTS)
        found.append(summary)
    return found


def _row(row: SessionRow) -> Summary:
    summary: Summary = {}
    for name in _COLUMNS:
        value = getattr(row, name)
        if name.endswith("_json"):
            summary[name.removesuffix("_json")] = column_value(value)
        else:
            summary[name] = value
    return summary


def _lineage(db: Database, row: SessionRow, metadata: dict[str, Any]) -> Summary | None:
    if row.parent_id is None:
        return None
    stored = metadata.get("lineage")
    kind = stored.get("kind") if isinstance(stored, dict) else None
    if not isinstance(kind, str):
        # A fork's copies keep their times, so they are older than the fork itself.
        (first,) = db.connection.execute(
            "SELECT min(created_at) FROM chat_messages WHERE session_id = $1", {"1": row.id}
        ).fetchone()
        kind = "fork" if isinstance(first, int) and first < row.created_at else "unknown"
    return {
        "kind": kind, "parent_id": row.parent_id, "parent_message_id": row.parent_message_id,
    }
