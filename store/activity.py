"""What a session is doing now, and whether that was stored or is guessed.

A recorder stores ``metadata_json.activity`` with the process that records; a reader asks
whether that process lives, so a recorder that was killed shows as interrupted at once.
Where nothing is stored, the last message's unsettled tool calls tell.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from store.database import Database
from store.queries.reading import number
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
_INPUT_TOOLS = frozenset(("tool-question", "tool-AskUserQuestion", "tool-design_search"))
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
        tool_state: ``input-streaming``, ``input-available``, ``approval-requested`` or
            ``approval-responded`` of a tool call of the last visible message, the most
            urgent one; ``streaming`` where all are settled and its last text grows; else None.
        tool_type: The part type of that call or text.
        touched_at: Epoch ms of its last write.
        queued: Whether a message waits to be sent.
    """

    tool_state: str | None = None
    tool_type: str = ""
    touched_at: int = 0
    queued: bool = False


class Process(NamedTuple):
    """A process, so that another with the same number is not taken for it.

    Attributes:
        started: Ticks since boot at its start, where the system tells.
        boot: The id of the system's run, where the system tells.
    """

    pid: int
    host: str
    started: int | None = None
    boot: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what ``metadata_json.activity`` holds of it."""
        found = {"pid": self.pid, "host": self.host, "started": self.started, "boot": self.boot}
        return {key: value for key, value in found.items() if value is not None}


@lru_cache(maxsize=1)
def _boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


@lru_cache(maxsize=1)
def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def _start_ticks(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    dead = not fields or fields[0] in "ZX"
    return None if dead else int(fields[19])


def this_process() -> Process:
    """Return the process that asks."""
    pid = os.getpid()
    return Process(pid, _host(), _start_ticks(pid), _boot_id())


def is_alive(stored: Mapping[str, Any]) -> bool | None:
    """Tell whether a stored process runs.

    Returns:
        None where that cannot be told from here: another machine, or no process stored.
    """
    pid = stored.get("pid")
    if not isinstance(pid, int) or pid <= 0 or stored.get("host", _host()) != _host():
        return None
    if stored.get("boot", _boot_id()) != _boot_id():
        return False
    started = stored.get("started")
    if isinstance(started, int):
        return _start_ticks(pid) == started
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def stored_activity(metadata_json: str) -> Mapping[str, Any] | None:
    """Return ``metadata_json.activity``, or None; a row without one is not decoded."""
    if '"activity"' not in metadata_json:
        return None
    try:
        metadata = orjson.loads(metadata_json)
    except orjson.JSONDecodeError:
        return None
    found = metadata.get("activity") if isinstance(metadata, dict) else None
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
    grows = (
        "SELECT ids.value, p.type, p.updated_at FROM json_each($1) ids JOIN chat_parts p"
        " ON p.id = (SELECT l.id FROM chat_parts l WHERE l.message_id = "
        + newest.format(condition=db.form.shown("m"))
        + ' ORDER BY l."index" DESC LIMIT 1) WHERE p.type IN (\'text\', \'reasoning\')'
        " AND CASE WHEN json_valid(p.data_json)"
        " THEN json_extract(p.data_json, '$.state') END = 'streaming'"
    )
    found = {
        row[0]: Unsettled("streaming", row[1], number(row[2]), row[0] in waiting)
        for row in db.connection.execute(grows, {"1": ids})
    } | {
        row[0]: Unsettled(row[1], row[2], number(row[3]), row[0] in waiting)
        for row in db.connection.execute(sql, {"1": ids})
    }
    return {key: Unsettled(queued=True) for key in waiting} | found
