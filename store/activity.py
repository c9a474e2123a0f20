"""What a session is doing now, and whether that was stored or is guessed.

A recorder stores ``metadata_json.activity`` with the process that records; a reader asks
whether that process lives, so a recorder that was killed shows as interrupted at once.
Where nothing is stored, the last message's unsettled tool calls tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import orjson

from store.database import Database
from store.processes import is_alive
from store.queries.reading import decoded, number
from store.rows import SessionRow

ActivityState = Literal[
    "idle", "running", "waiting-approval", "waiting-input", "queued", "retrying",
    "interrupted", "error", "ended", "unknown",
]
STATES: frozenset[str] = frozenset(ActivityState.__args__)  # type: ignore[attr-defined]
ActivityFrom = Literal["stored", "guessed"]
RUNNING_FOR_MS = 60_000
"""An unsettled tool call that was touched this recently belongs to a session that runs."""
STALE_AFTER_MS = 30 * 60_000
"""A session that was stored as running, by no known process, is believed for so long after
its last change: whoever stored it may have died without a word, and a call may take long."""
_INPUT_TOOLS = frozenset((
    "tool-question", "tool-AskUserQuestion", "tool-design_search", "tool-ask_user",
    "tool-request_user_input",
))
WAITING_STATES = frozenset(("waiting-approval", "waiting-input"))
RUNNING_STATES = frozenset(("running", "retrying"))
"""States that time alone can end: the process may die, the rows may rest for too long."""


class Activity(NamedTuple):
    """What a session does.

    Attributes:
        from_: ``stored`` by whoever runs it, or ``guessed`` from its rows.
        since: Epoch ms; 0 where unknown.
    """

    state: ActivityState
    from_: ActivityFrom
    since: int


class Unsettled(NamedTuple):
    """What is open at the end of a session.

    Attributes:
        tool_state: ``failed`` where the last visible message ends on an error; else
            ``input-streaming``, ``input-available``, ``approval-requested`` or
            ``approval-responded`` of a tool call of it, the most urgent one; ``streaming``
            where all are settled and its last text grows; else None.
        tool_type: The part type of that error, call or text.
        touched_at: Epoch ms of its last write.
        queued: Whether a message waits to be sent.
    """

    tool_state: str | None = None
    tool_type: str = ""
    touched_at: int = 0
    queued: bool = False


def stored_activity(metadata_json: str) -> Mapping[str, Any] | None:
    """Return ``metadata_json.activity``, or None; a row without one is not decoded."""
    if '"activity"' not in metadata_json:
        return None
    found = decoded(metadata_json).get("activity")
    return found if isinstance(found, dict) and isinstance(found.get("state"), str) else None


def live_activities(db: Database, session_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return what a watcher that lives has seen of sessions, as ``metadata_json.activity``.

    Only what says more than the rows do is there: sessions of other files, and of watchers
    that have ended, are missing.
    """
    if db.form.name != "own":
        return {}
    rows = db.connection.execute(
        "SELECT session_id, state, since, process_json, watcher_json FROM live_activity"
        " WHERE session_id IN (SELECT value FROM json_each($1))",
        {"1": orjson.dumps(list(session_ids)).decode()},
    ).fetchall()
    return {
        session_id: orjson.loads(process) | {"state": state, "from": "stored", "since": since}
        for session_id, state, since, process, watcher in rows
        if is_alive(orjson.loads(watcher)) is not False
    }


def activity_of(
    row: SessionRow, *, now: int, unsettled: Unsettled | None = None,
    stored: Mapping[str, Any] | None = None,
) -> Activity:
    """Return what a session does.

    Args:
        row: The session.
        now: The present, epoch ms.
        unsettled: What is open at its end, where that was read (``unsettled_of``).
        stored: Its ``metadata_json.activity``, where the caller has it already.
    """
    found = stored if stored is not None else stored_activity(row.metadata_json)
    if found is not None and found.get("state") in STATES:
        if found["state"] in RUNNING_STATES and "pid" not in found:
            # Whoever stored it tells of turns, not of what a turn waits for.
            waiting = guessed(unsettled or Unsettled(), now, row.updated_at)
            if waiting.state in WAITING_STATES:
                return waiting
        touched_at = unsettled.touched_at if unsettled is not None else 0
        return judged(found, now, row.updated_at, touched_at)
    return guessed(unsettled or Unsettled(), now, row.updated_at)


def current(db: Database, row: SessionRow, now: int) -> Activity:
    """Return what a session does, by all that its store knows of it.

    Args:
        db: The store.
        row: The session.
        now: The present, epoch ms.
    """
    return activity_of(
        row, now=now, unsettled=unsettled_of(db, [row.id]).get(row.id),
        stored=live_activities(db, [row.id]).get(row.id),
    )


def judged(
    stored: Mapping[str, Any], now: int, updated_at: int, touched_at: int = 0
) -> Activity:
    """Return what a session does of which somebody has stored it.

    Args:
        stored: Decoded ``metadata_json.activity``, with one of our states.
        now: The present, epoch ms.
        updated_at: Of the session.
        touched_at: Of what is open at its end, which may be newer; 0 where that is unknown.
    """
    state: ActivityState = stored["state"]
    said = stored.get("since")
    since = said if isinstance(said, int) else updated_at
    came: ActivityFrom = "guessed" if stored.get("from") == "guessed" else "stored"
    if state in RUNNING_STATES | WAITING_STATES and "pid" in stored:
        alive = is_alive(stored)
        if alive is False:
            return Activity("interrupted", "guessed", updated_at)
        # Another machine's process cannot be asked; what it writes can be seen.
        quiet = now - max(updated_at, touched_at) > RUNNING_FOR_MS
        if alive is None and quiet and state in RUNNING_STATES:
            return Activity("unknown", "guessed", updated_at)
    elif state in RUNNING_STATES:
        seen = max(updated_at, touched_at)
        if now - max(seen, since) > STALE_AFTER_MS:
            return Activity("interrupted", "guessed", seen)
    return Activity(state, came, since)


def guessed(unsettled: Unsettled, now: int, updated_at: int) -> Activity:
    """Return what a session seems to do of which nobody has stored it.

    Args:
        unsettled: What is open at its end.
        now: The present, epoch ms.
        updated_at: Of the session.
    """
    state, at = unsettled.tool_state, unsettled.touched_at
    if state == "failed":
        return Activity("queued" if unsettled.queued else "error", "guessed", at)
    if state == "approval-requested":
        return Activity("waiting-approval", "guessed", at)
    if state == "input-available" and unsettled.tool_type in _INPUT_TOOLS:
        return Activity("waiting-input", "guessed", at)
    recent = now - at <= RUNNING_FOR_MS
    # Text that was never finished may be a host's that does not say so.
    if state is not None and (recent or state != "streaming"):
        return Activity("running" if recent else "interrupted", "guessed", at)
    return Activity("queued" if unsettled.queued else "idle", "guessed", updated_at)


_URGENCY = (
    "CASE p.tool_state WHEN 'approval-requested' THEN 0 WHEN 'input-available' THEN 1"
    " WHEN 'input-streaming' THEN 2 ELSE 3 END"
)

_OPEN_END = (
    "CASE p.type WHEN 'data-error'"
    " THEN coalesce(json_extract(p.data_json, '$.data.name'), '') <> 'MessageAbortedError'"
    " ELSE json_extract(p.data_json, '$.state') = 'streaming' END"
)
"""Of a message's last part; opencode names an error where its user broke off."""


def unsettled_of(db: Database, session_ids: Sequence[str]) -> dict[str, Unsettled]:
    """Return what is open at the end of each session; sessions with nothing open are absent.

    Each session costs a walk over its last rows by the contract's own indexes.
    """
    ids = orjson.dumps(list(session_ids)).decode()
    newest = (
        "(SELECT m.id FROM chat_messages m WHERE m.session_id = ids.value AND {condition}"
        " ORDER BY m.created_at DESC, m.id DESC LIMIT 1)"
    )
    sql = (
        f"SELECT ids.value, p.tool_state, p.type, p.updated_at, min({_URGENCY})"
        " FROM json_each($1) ids JOIN chat_parts p ON p.message_id = "
        + newest.format(condition=db.form.shown("m"))
        + " WHERE p.tool_state IN ('input-streaming', 'input-available', 'approval-requested',"
        " 'approval-responded') GROUP BY ids.value"
    )
    queued = (
        "SELECT ids.value FROM json_each($1) ids JOIN chat_messages q ON q.id = "
        + newest.format(condition="1") + f" WHERE {db.form.queued('q')}"
    )
    waiting = {row[0] for row in db.connection.execute(queued, {"1": ids})}
    last = (
        "SELECT ids.value, p.type, p.updated_at FROM json_each($1) ids JOIN chat_parts p"
        " ON p.id = (SELECT l.id FROM chat_parts l WHERE l.message_id = "
        + newest.format(condition=db.form.shown("m"))
        + ' ORDER BY l."index" DESC LIMIT 1)'
        " WHERE p.type IN ('text', 'reasoning', 'data-error') AND CASE WHEN"
        f" json_valid(p.data_json) THEN {_OPEN_END} END"
    )
    ends = {
        row[0]: Unsettled(
            "failed" if row[1] == "data-error" else "streaming", row[1], number(row[2]),
            row[0] in waiting,
        )
        for row in db.connection.execute(last, {"1": ids})
    }
    calls = {
        row[0]: Unsettled(row[1], row[2], number(row[3]), row[0] in waiting)
        for row in db.connection.execute(sql, {"1": ids})
    }
    failed = {key: end for key, end in ends.items() if end.tool_state == "failed"}
    return {key: Unsettled(queued=True) for key in waiting} | ends | calls | failed
