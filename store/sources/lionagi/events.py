"""What happened to a session beside its messages: signals, changes of status, controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.plain_parts import data_part
from store.sources.base.row_reader import Row
from store.sources.base.values import string, utc_ms

Told = tuple[str, dict[str, Any]]
"""An event's name and its details."""


def event_parts(sides: Mapping[str, list[Row]], first_record: int) -> list[PartDraft]:
    """Return a session's events by time.

    Args:
        sides: The session's rows of other tables, by table.
        first_record: Number of the first original record of these rows.
    """
    found: list[PartDraft] = []
    number = first_record
    for table, rows in sides.items():
        tell = _TELLERS.get(table)
        for row in rows:
            if tell is not None:
                name, details = tell(row)
                at = utc_ms(row.get("ts" if table == "session_signals" else "created_at")) or 0
                kept = {key: value for key, value in details.items()
                        if value not in (None, "", [], {})}
                event = {"name": name, **({"details": kept} if kept else {})}
                found.append(data_part("event", event, at, number))
            number += 1
    return sorted(found, key=lambda part: part.created_at)


def put_events(
    messages: list[MessageDraft],
    events: list[PartDraft],
    session_id: str,
    gaps: frozenset[str] = frozenset(),
) -> None:
    """Put each event behind the last message that is not later; the number of messages stays.

    What happened behind a message whose row is gone is left out: it is kept with that.

    Args:
        messages: The session's own, in order; one is made where there is none.
        events: By time.
        session_id: Names the message that is made.
        gaps: The messages behind which one has no row; "" where the first has none.
    """
    if events and not messages and "" not in gaps:
        at = events[0].created_at
        messages.append(MessageDraft(f"events of {session_id}", "system", at, at))
    place = 0
    for event in events if messages else ():
        while place + 1 < len(messages) and messages[place + 1].created_at <= event.created_at:
            place += 1
        owner = messages[place]
        is_listed = place > 0 or owner.role != "system"
        if owner.source_id not in gaps and (is_listed or "" not in gaps):
            owner.parts.append(event)


def _signal(row: Row) -> Told:
    payload = decoded(row.get("payload"))
    details = payload if isinstance(payload, dict) else {"payload": payload}
    return f"signal {row.get('kind')}", {"op_id": row.get("op_id"), **details}


def _change(row: Row) -> Told:
    before, after = string(row.get("previous_status")), row.get("status")
    name = f"status {before} to {after}" if before is not None else f"status {after}"
    kept = ("reason_summary", "reason_code", "actor", "source")
    details = {key.removeprefix("reason_"): row.get(key) for key in kept}
    return name, {**details, "evidence": decoded(row.get("evidence_refs")),
                  "metadata": decoded(row.get("metadata"))}


def _control(row: Row) -> Told:
    details = {key: decoded(row.get(key)) for key in ("payload", "result")}
    return f"control {row.get('verb')}", {**details, "applied_at": utc_ms(row.get("applied_at"))}


_TELLERS: Mapping[str, Callable[[Row], Told]] = {
    "session_signals": _signal, "status_transitions": _change, "session_controls": _control,
}
