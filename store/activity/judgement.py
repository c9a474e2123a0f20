"""What a session is doing now, and whether that was stored or is guessed.

This is the one judgement that list, header, top line, verbs and notifications ask. It goes
by the process or lock first, then by how the last turn ended, then by the age of what moved:

- A process that has ended, or a lock that is free, leaves nothing running.
- What a turn that is over came to (an error, an interruption) shows although the process
  lives and waits for the next prompt.
- Without a process, rows that moved a short while ago belong to a session that runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from store.activity.states import (
    ALIVE,
    GONE,
    INPUT_TOOLS,
    OPEN_STATES,
    RUNNING_STATES,
    STATES,
    WAITING_STATES,
    ActivityFrom,
    ActivityState,
)
from store.engine.database import Database
from store.engine.reading import decoded, number, text
from store.rows import SessionRow
from store.system.processes import host_name, is_alive, lock_is_held

RUNNING_FOR_MS = 60_000
"""A call without result, or a result without answer, that was written this recently belongs
to a session that runs."""
GROWING_FOR_MS = 10_000
"""Text that does not say whether it is finished, and a prompt without an answer, belong to a
session that runs for so long after their last write."""
STALE_AFTER_MS = 30 * 60_000
"""A session that was stored as running, by no known process, is believed for so long after
its last change: whoever stored it may have died without a word, and a call may take long."""
_DEEPEST = 4


class Activity(NamedTuple):
    """What a session does.

    Attributes:
        from_: ``stored`` by whoever runs it, or ``guessed`` from its rows.
        since: Epoch ms; 0 where unknown.
        busy: Whether a turn is under way that a fork or rewind would cut into: a process
            is known to be in it, or an answer moved within ``RUNNING_FOR_MS``.
    """

    state: ActivityState
    from_: ActivityFrom
    since: int
    busy: bool = False


class Unsettled(NamedTuple):
    """How the visible talk of a session ends.

    Attributes:
        tool_state: ``failed`` where it ends on an error, ``stopped`` where somebody broke it
            off; else ``input-streaming``, ``input-available``, ``approval-requested`` or
            ``approval-responded`` of a tool call of the last message, the most urgent one;
            else ``streaming`` where its last text says that it grows; ``growing`` where that
            text has grown and does not say whether it is finished; ``answered`` where a call
            has its result and no word followed; ``prompt`` where a person's message has no
            answer; else None.
        tool_type: The part type of that error, call or text.
        touched_at: Epoch ms of its last write.
        queued: Whether a message waits to be sent.
    """

    tool_state: str | None = None
    tool_type: str = ""
    touched_at: int = 0
    queued: bool = False


class Known(NamedTuple):
    """What a store knows of a session, beside how its talk ends.

    Attributes:
        said: ``metadata_json.activity``. A guess with ``until`` (epoch ms) holds until then,
            and no longer than the process lives.
        live: What a watcher that lives has seen (``live_activities``).
        imported: Whether its source says of every turn whether it is over.
    """

    id: str
    updated_at: int
    said: Mapping[str, Any] | None = None
    live: Mapping[str, Any] | None = None
    imported: bool = False


def stored_activity(metadata_json: str) -> Mapping[str, Any] | None:
    """Return ``metadata_json.activity``, or None; a row without one is not decoded."""
    if '"activity"' not in metadata_json:
        return None
    found = decoded(metadata_json).get("activity")
    return found if isinstance(found, dict) and isinstance(found.get("state"), str) else None


def is_imported(metadata_json: str) -> bool:
    """Say whether a session was read from an agent's own files."""
    return '"source":' in metadata_json


def known_of(row: SessionRow, live: Mapping[str, Any] | None = None) -> Known:
    """Return what is known of a session."""
    return Known(
        row.id, row.updated_at, stored_activity(row.metadata_json), live,
        is_imported(row.metadata_json),
    )


def live_activities(db: Database, session_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return what a watcher that lives has seen of sessions, as ``metadata_json.activity``.

    Only what says more than the rows do is there: sessions of other files, and of watchers
    that have ended, are missing. A subagent has the process of the session that started it;
    its ``state`` is then ``alive``.
    """
    if db.form.name != "own":
        return {}
    connection = db.connection
    if connection.execute("SELECT 1 FROM live_activity LIMIT 1").fetchone() is None:
        return {}
    rows = connection.execute(
        "WITH RECURSIVE line(id, at, depth) AS (SELECT value, value, 0 FROM json_each($1)"
        " UNION ALL SELECT line.id, s.parent_id, depth + 1 FROM line"
        " JOIN chat_sessions s ON s.id = line.at"
        f" WHERE depth < {_DEEPEST} AND s.parent_id IS NOT NULL"
        f" AND {db.form.fact('s', 'lineage.kind')} = 'subagent')"
        " SELECT line.id, depth, l.state, l.since, l.process_json, l.watcher_json, l.seen_at"
        " FROM line JOIN live_activity l ON l.session_id = line.at ORDER BY depth DESC",
        {"1": orjson.dumps(list(session_ids)).decode()},
    ).fetchall()
    found: dict[str, Mapping[str, Any]] = {}
    for session_id, depth, state, since, process, watcher, seen_at in rows:
        if is_alive(orjson.loads(watcher)) is not False:
            own = {"state": ALIVE if depth and state != GONE else state, "from": "stored"}
            found[session_id] = orjson.loads(process) | own | {"since": since, "seen": seen_at}
    return found


def activity_of(
    row: SessionRow, *, now: int, unsettled: Unsettled | None = None,
    live: Mapping[str, Any] | None = None,
) -> Activity:
    """Return what a session does.

    Args:
        row: The session.
        now: The present, epoch ms.
        unsettled: How its talk ends, where that was read (``unsettled_of``).
        live: What a watcher has seen of it (``live_activities``).
    """
    return judged(known_of(row, live), unsettled or Unsettled(), now)


def current(db: Database, row: SessionRow, now: int) -> Activity:
    """Return what a session does, by all that its store knows of it.

    Args:
        db: The store.
        row: The session.
        now: The present, epoch ms.
    """
    known = known_of(row, live_activities(db, [row.id]).get(row.id))
    return judged_all(db, [known], now)[row.id][0]


def judged_all(
    db: Database, sessions: Iterable[Known], now: int
) -> dict[str, tuple[Activity, int]]:
    """Judge many sessions, reading how their talk ends where that matters.

    Args:
        db: The store.
        sessions: What is known of each.
        now: The present, epoch ms.

    Returns:
        By session what it does, and when the end of its talk was written last (epoch ms; 0
        where that was not read).
    """
    known = list(sessions)
    ends = unsettled_of(db, [one.id for one in known if _needs_its_end(one)])
    found = {}
    for one in known:
        end = ends.get(one.id, Unsettled())
        found[one.id] = judged(one, end, now), end.touched_at
    for one in _asked_for(db, known, found, now):
        end = ends.get(one.id, Unsettled())
        found[one.id] = judged(one, end, now), end.touched_at
    return found


_left_to_watchers: set[Path] = set()


def leave_to_watcher(path: Path, *, left: bool = True) -> None:
    """Say whether this program leaves it to a watcher to find a library's processes.

    The app does: it draws its first rows before its watcher runs, and asking takes longer.
    """
    if left:
        _left_to_watchers.add(path)
    else:
        _left_to_watchers.discard(path)


def _asked_for(
    db: Database, known: Sequence[Known], found: Mapping[str, tuple[Activity, int]], now: int
) -> Iterator[Known]:
    """Ask who runs the sessions that seem to run, where no watcher has looked."""
    imported = [one for one in known if one.imported and _is_unwatched(one)]
    if db.form.name != "own" or not imported or db.path in _left_to_watchers:
        return
    from store.activity import presence  # with all sources; not needed for the first rows of a list

    said = presence.said_by_processes(db)
    wanted = {
        one.id: one for one in imported
        if one.id in said or found[one.id][0].state in OPEN_STATES
    }  # fmt: skip
    if wanted:
        for name, live in presence.presence(db, list(wanted), now).items():
            yield wanted[name]._replace(live=live)


def _is_unwatched(known: Known) -> bool:
    """Say whether nothing that the store holds tells who runs a session."""
    if known.live is not None and not _is_outdated(known, known.updated_at):
        return False
    return known.said is None or ("pid" not in known.said and _lives(known.said) is None)


def _needs_its_end(known: Known) -> bool:
    state = known.said.get("state") if known.said is not None else None
    return state not in STATES or state in RUNNING_STATES or known.live is not None


def judged(known: Known, end: Unsettled, now: int) -> Activity:
    """Return what a session does.

    Args:
        known: What its store knows of it.
        end: How its talk ends.
        now: The present, epoch ms.
    """
    moved_at = max(known.updated_at, end.touched_at)
    live = known.live if known.live is not None and not _is_outdated(known, moved_at) else None
    alive = _lives(live if live is not None else known.said)
    if _has_passed(known.said, now, alive):
        known = known._replace(said=None)
    turn = _turn(known, end, now, alive)
    if alive is False:
        return _after_the_process(turn, live, moved_at)
    word = live.get("state") if live is not None else None
    if live is not None and word in STATES:
        turn = _by_its_word(turn, live)
        alive = True
    elif alive is None and (turn.state in RUNNING_STATES or _was_said_to_run(known)):
        turn = _without_a_process(known, turn, now, moved_at)
    recent = _age(moved_at, now) < RUNNING_FOR_MS and end.tool_state != "prompt"
    busy = turn.state in OPEN_STATES and (alive is True or recent)
    return turn._replace(busy=busy)


def _age(at: int, now: int) -> int:
    """Return how long ago something was; what is far in the future is no news either."""
    return abs(now - at)


def _was_said_to_run(known: Known) -> bool:
    return known.said is not None and known.said.get("state") in RUNNING_STATES


def _has_passed(said: Mapping[str, Any] | None, now: int, alive: bool | None) -> bool:
    """Say whether a source's guess holds no longer: its time is up, or its process has ended."""
    if said is None or "until" not in said:
        return False
    since = number(said.get("since"))
    return alive is False or _age(since, now) > number(said["until"]) - since


def _is_outdated(known: Known, moved_at: int) -> bool:
    """Say whether rows moved after their process was found to have ended: another has it."""
    assert known.live is not None
    seen = known.live.get("seen")
    return (
        isinstance(seen, int) and known.live.get("state") == GONE and moved_at > seen
    )


def _lives(stored: Mapping[str, Any] | None) -> bool | None:
    """Tell whether the process lives, or the lock is held, that a session belongs to.

    Returns:
        None where nothing tells.
    """
    if stored is None:
        return None
    if stored.get("state") == GONE:
        return False
    lock = stored.get("lock")
    if isinstance(lock, str) and stored.get("host", host_name()) == host_name():
        held = lock_is_held(lock)
        if held is not None or "pid" not in stored:
            return held
    return is_alive(stored)


def _turn(known: Known, end: Unsettled, now: int, alive: bool | None) -> Activity:
    """Return what the last turn came to, or that it is under way."""
    said = known.said
    if said is None or said.get("state") not in STATES:
        return _guessed(known, end, now, alive)
    state: ActivityState = said["state"]
    if state in RUNNING_STATES and "pid" not in said:
        # Whoever stored it tells of turns, not of what a turn waits for.
        waiting = _open_call(end)
        if waiting is not None:
            return waiting
    since = said.get("since")
    came: ActivityFrom = "guessed" if said.get("from") == "guessed" else "stored"
    return Activity(state, came, since if isinstance(since, int) else known.updated_at)


def _open_call(end: Unsettled) -> Activity | None:
    if end.tool_state == "approval-requested":
        return Activity("waiting-approval", "guessed", end.touched_at)
    if end.tool_state == "input-available" and end.tool_type in INPUT_TOOLS:
        return Activity("waiting-input", "guessed", end.touched_at)
    return None


def _guessed(known: Known, end: Unsettled, now: int, alive: bool | None) -> Activity:
    """Return what a session seems to do of which nobody has stored it."""
    state, at = end.tool_state, end.touched_at
    resting = Activity("queued" if end.queued else "idle", "guessed", known.updated_at)
    if state in ("failed", "stopped"):
        ended: ActivityState = "error" if state == "failed" else "interrupted"
        return Activity("queued" if end.queued else ended, "guessed", at)
    if state is None:
        return resting
    waiting = _open_call(end)
    if waiting is not None:
        return waiting
    if state in ("growing", "prompt", "answered"):
        # The source would have said so.
        holds_for = RUNNING_FOR_MS if state == "answered" else GROWING_FOR_MS
        runs = not known.imported and _age(at, now) <= holds_for
        return Activity("running", "guessed", at) if runs else resting
    if alive is True or _age(at, now) <= RUNNING_FOR_MS:
        return Activity("running", "guessed", at)
    # Text that was never finished may be a host's that does not say so.
    return resting if state == "streaming" else Activity("interrupted", "guessed", at)


def _after_the_process(
    turn: Activity, live: Mapping[str, Any] | None, moved_at: int
) -> Activity:
    """Return what a session does whose process has ended."""
    began_a_turn = (
        live is not None and live.get("state") in OPEN_STATES
        and number(live.get("since")) > moved_at
    )
    if turn.state in OPEN_STATES or began_a_turn:
        return Activity("interrupted", "guessed", moved_at)
    return turn


def _by_its_word(turn: Activity, live: Mapping[str, Any]) -> Activity:
    """Return what a session does whose living process says what it does."""
    word: ActivityState = live["state"]
    since = number(live.get("since"))
    if word in RUNNING_STATES and turn.state in WAITING_STATES:
        return turn
    if word == "idle" and turn.state in ("error", "interrupted"):
        return turn
    return Activity(word, "stored", since)


def _without_a_process(known: Known, turn: Activity, now: int, moved_at: int) -> Activity:
    """Return what a session does that seems to run, where no process can be asked."""
    if known.said is not None and "pid" in known.said:
        # Another machine's process cannot be asked; what it writes can be seen.
        quiet = now - moved_at > RUNNING_FOR_MS
        return Activity("unknown", "guessed", known.updated_at) if quiet else turn
    if now - max(moved_at, turn.since) > STALE_AFTER_MS:
        return Activity("interrupted", "guessed", moved_at)
    return turn._replace(from_="guessed")


_URGENCY = (
    "CASE p.tool_state WHEN 'approval-requested' THEN 0 WHEN 'input-available' THEN 1"
    " WHEN 'input-streaming' THEN 2 ELSE 3 END"
)
_OPEN_CALLS = "'input-streaming', 'input-available', 'approval-requested', 'approval-responded'"
_SETTLED_CALLS = "'output-available', 'output-error', 'output-denied'"


def _how_it_ends(db: Database) -> str:
    """Return the SQL for how a message ``m`` ends whose last part is ``p``.

    opencode names an error where its user broke off. A host writes the usage when the answer
    is finished. What a rewind left at the end is not being answered.
    """
    is_newest = (
        "(m.id = (SELECT h.id FROM chat_messages h WHERE h.session_id = m.session_id"
        f" AND NOT {db.form.queued('h')} ORDER BY h.created_at DESC, h.id DESC LIMIT 1))"
    )
    aborted, usage = db.form.fact("m", "backscroll.aborted_at"), db.form.fact("m", "usage")
    finish = db.form.fact("m", "finish_reason")
    origin = f"coalesce({db.form.fact('m', 'origin')}, 'human')"
    state = "json_extract(p.data_json, '$.state')"
    return (
        "CASE WHEN p.type = 'data-error' THEN CASE WHEN NOT json_valid(p.data_json) THEN NULL"
        " WHEN json_extract(p.data_json, '$.data.name') = 'MessageAbortedError' THEN 'stopped'"
        " ELSE 'failed' END"
        f" WHEN p.type IN ('text', 'reasoning') AND m.role = 'assistant' THEN CASE"
        " WHEN NOT json_valid(p.data_json) THEN NULL"
        f" WHEN {state} = 'streaming' THEN 'streaming'"
        f" WHEN {state} IS NULL AND {usage} IS NULL AND {finish} IS NULL"
        f" AND {aborted} IS NULL AND p.updated_at > p.created_at AND {is_newest}"
        " THEN 'growing' END"
        f" WHEN NOT {is_newest} THEN NULL"
        f" WHEN m.role = 'user' AND {origin} = 'human' THEN 'prompt'"
        f" WHEN m.role = 'assistant' AND p.tool_state IN ({_SETTLED_CALLS})"
        f" AND {aborted} IS NULL AND {usage} IS NULL THEN 'answered' END"
    )


def unsettled_of(db: Database, session_ids: Sequence[str]) -> dict[str, Unsettled]:
    """Return how the talk of each session ends; those that ended well are absent.

    Each session costs a walk over its last rows by the contract's own indexes.
    """
    if not session_ids:
        return {}
    ids = orjson.dumps(list(session_ids)).decode()
    newest = (
        "(SELECT n.id FROM chat_messages n WHERE n.session_id = ids.value AND {condition}"
        " ORDER BY n.created_at DESC, n.id DESC LIMIT 1)"
    )
    shown = newest.format(condition=db.form.shown("n"))
    answer = newest.format(condition=f"n.role = 'assistant' AND {db.form.shown('n')}")
    sql = (
        f"SELECT ids.value, p.tool_state, p.type, p.updated_at, min({_URGENCY})"
        " FROM json_each($1) ids JOIN chat_parts p ON p.message_id = "
        + answer + f" WHERE p.tool_state IN ({_OPEN_CALLS}) GROUP BY ids.value"
    )
    queued = (
        "SELECT ids.value FROM json_each($1) ids JOIN chat_messages q ON q.id = "
        + newest.format(condition="1") + f" WHERE {db.form.queued('q')}"
    )
    waiting = {key for (key,) in db.connection.execute(queued, {"1": ids})}
    last = (
        f"SELECT ids.value, p.type, p.updated_at, {_how_it_ends(db)}"
        " FROM json_each($1) ids JOIN chat_messages m ON m.id = "
        + shown + " JOIN chat_parts p ON p.id = (SELECT l.id FROM chat_parts l"
        ' WHERE l.message_id = m.id ORDER BY l."index" DESC LIMIT 1)'
    )
    ends = {
        key: Unsettled(state, text(kind) or "", number(at), key in waiting)
        for key, kind, at, state in db.connection.execute(last, {"1": ids})
        if state is not None
    }
    calls = {
        key: Unsettled(state, text(kind) or "", number(at), key in waiting)
        for key, state, kind, at, _ in db.connection.execute(sql, {"1": ids})
    }
    # A prompt may have been typed while a call runs, or after one that never ended.
    over = {
        key: end for key, end in ends.items()
        if end.tool_state in ("failed", "stopped")
        or (end.tool_state == "prompt" and key in calls
            and end.touched_at - calls[key].touched_at > RUNNING_FOR_MS)
    }  # fmt: skip
    return {key: Unsettled(queued=True) for key in waiting} | ends | calls | over
