"""Determines a session's current activity, and whether that is stored or guessed.

List, header, top line, verbs and notifications all use these functions. The evidence is, in
this order: the process or lock, how the last turn ended, and the age of the last change:

- If the process has ended or the lock is free, nothing is running.
- The result of a finished turn (an error, an interruption) is shown even while the process
  lives and waits for the next prompt.
- Without a known process, a session with recent changes counts as running.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from store.activity.states import (
    ALIVE,
    GONE,
    INPUT_TOOLS,
    OPEN_STATES,
    RUNNING_STATES,
    STATES,
    WAITING_STATES,
)
from store.engine.database import Database
from store.engine.values import decoded, number, text
from store.system.records import NamedTuple
from store.text.stored_json import array_of, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from store.activity.states import ActivityFrom, ActivityState
    from store.rows import SessionRow

RUNNING_FOR_MS = 60_000
"""A session counts as running for this long after a call without result, or a result without
answer, was written."""
GROWING_FOR_MS = 10_000
"""A session counts as running for this long after the last write of a prompt without answer,
or of text that is not marked as finished or streaming."""
STALE_AFTER_MS = 30 * 60_000
"""A session stored as running, without a known process, is believed for this long after its
last change: its writer may have crashed, but a call may also take long."""
_DEEPEST = 4


class Activity(NamedTuple):
    """A session's activity.

    Attributes:
        from_: ``stored`` by the program that runs it, or ``guessed`` from its rows.
        since: Epoch ms; 0 if unknown.
        busy: Whether a fork or rewind would interrupt a running turn: a process is known
            to run it, or an answer changed within ``RUNNING_FOR_MS``.
    """

    state: ActivityState
    from_: ActivityFrom
    since: int
    busy: bool = False


class Unsettled(NamedTuple):
    """The unfinished end of a session's visible transcript.

    Attributes:
        tool_state: ``failed`` if it ends with an error, ``stopped`` if the user interrupted
            it; else ``input-streaming``, ``input-available``, ``approval-requested`` or
            ``approval-responded``, the most urgent state of the last message's tool calls;
            else ``streaming`` if its last text is marked so; ``growing`` if that text has
            grown without such a mark; ``answered`` if a call has its result and no text
            followed; ``prompt`` if a person's message has no answer; else None.
        tool_type: The part type of that error, call or text.
        touched_at: Epoch ms of its last write.
        queued: Whether a queued message waits to be sent.
    """

    tool_state: str | None = None
    tool_type: str = ""
    touched_at: int = 0
    queued: bool = False


class Known(NamedTuple):
    """The stored facts about a session's activity, apart from its transcript.

    Attributes:
        said: ``metadata_json.activity``. A guess with ``until`` (epoch ms) is valid until
            then, and while the process lives.
        live: What a running watcher has seen (``live_activities``).
        imported: Whether it comes from a source, which marks finished turns.
    """

    id: str
    updated_at: int
    said: Mapping[str, Any] | None = None
    live: Mapping[str, Any] | None = None
    imported: bool = False


def stored_activity(metadata_json: str) -> Mapping[str, Any] | None:
    """Return ``metadata_json.activity``, or None; without that key nothing is decoded."""
    if '"activity"' not in metadata_json:
        return None
    found = decoded(metadata_json).get("activity")
    return found if isinstance(found, dict) and isinstance(found.get("state"), str) else None


def is_imported(metadata_json: str) -> bool:
    """Return whether a session was read from an agent's own files."""
    return '"source":' in metadata_json


def known_of(row: SessionRow, live: Mapping[str, Any] | None = None) -> Known:
    """Return the known facts of a session."""
    return Known(
        row.id, row.updated_at, stored_activity(row.metadata_json), live,
        is_imported(row.metadata_json),
    )


def live_activities(db: Database, session_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return by session what a running watcher has seen, in the form of ``activity``.

    Sessions without such a row, or whose watcher has ended, are missing. A subagent gets the
    process of the session that started it, with the state ``alive``.
    """
    if db.form.name != "own":
        return {}
    connection = db.connection
    if connection.execute("SELECT 1 FROM live_activity LIMIT 1").fetchone() is None:
        return {}
    from store.system import processes

    wanted = db.sql.as_id("j.value")
    rows = connection.execute(
        f"WITH RECURSIVE line(id, at, depth) AS (SELECT {wanted}, {wanted}, 0"
        f" FROM {db.sql.texts('$1', 'j')}"
        " UNION ALL SELECT line.id, s.parent_id, depth + 1 FROM line"
        " JOIN chat_sessions s ON s.id = line.at"
        f" WHERE depth < {_DEEPEST} AND s.parent_id IS NOT NULL"
        f" AND {db.form.fact('s', 'lineage.kind')} = 'subagent')"
        " SELECT line.id, depth, l.state, l.since, l.process_json, l.watcher_json, l.seen_at"
        " FROM line JOIN live_activity l ON l.session_id = line.at ORDER BY depth DESC",
        {"1": array_of(session_ids)},
    ).fetchall()
    found: dict[str, Mapping[str, Any]] = {}
    for session_id, depth, state, since, process, watcher, seen_at in rows:
        if processes.is_alive(loads(watcher)) is not False:
            own = {"state": ALIVE if depth and state != GONE else state, "from": "stored"}
            found[session_id] = loads(process) | own | {"since": since, "seen": seen_at}
    return found


def activity_of(
    row: SessionRow, *, now: int, unsettled: Unsettled | None = None,
    live: Mapping[str, Any] | None = None,
) -> Activity:
    """Return a session's activity from facts that were already read.

    Args:
        row: The session.
        now: The current time, epoch ms.
        unsettled: Its unfinished end, if it was read (``unsettled_of``).
        live: What a watcher has seen (``live_activities``).
    """
    return judged(known_of(row, live), unsettled or Unsettled(), now)


def current(db: Database, row: SessionRow, now: int) -> Activity:
    """Return a session's activity, reading all facts from the store.

    Args:
        db: The store.
        row: The session.
        now: The current time, epoch ms.
    """
    known = known_of(row, live_activities(db, [row.id]).get(row.id))
    return judged_all(db, [known], now)[row.id][0]


def judged_all(
    db: Database, sessions: Iterable[Known], now: int
) -> dict[str, tuple[Activity, int]]:
    """Return the activity of many sessions, reading their ends where that matters.

    Args:
        db: The store.
        sessions: The known facts of each.
        now: The current time, epoch ms.

    Returns:
        By session its activity, and when its end was last written (epoch ms; 0 if it was
        not read).
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


_left_to_watchers: set[str] = set()
"""By ``Database.place``."""


def leave_to_watcher(path: str | Path, *, left: bool = True) -> None:
    """Set whether this process leaves the search for a library's processes to a watcher.

    The app does so: it draws its first rows before its watcher runs, and a search is slower.
    """
    if left:
        _left_to_watchers.add(os.fspath(path))
    else:
        _left_to_watchers.discard(os.fspath(path))


def _asked_for(
    db: Database, known: Sequence[Known], found: Mapping[str, tuple[Activity, int]], now: int
) -> Iterator[Known]:
    """Yield sessions with their processes, searched for where no watcher has done so."""
    imported = [one for one in known if one.imported and _is_unwatched(one)]
    if db.form.name != "own" or not imported or db.place in _left_to_watchers:
        return
    from store.activity import presence  # imports all sources; not needed for a list's first rows

    said = presence.said_by_processes(db)
    wanted = {
        one.id: one for one in imported
        if one.id in said or found[one.id][0].state in OPEN_STATES
    }  # fmt: skip
    if wanted:
        for name, live in presence.presence(db, list(wanted), now).items():
            yield wanted[name]._replace(live=live)


def _is_unwatched(known: Known) -> bool:
    """Return whether the store has no fact about the process of a session."""
    if known.live is not None and not _is_outdated(known, known.updated_at):
        return False
    return known.said is None or ("pid" not in known.said and _lives(known.said) is None)


def _needs_its_end(known: Known) -> bool:
    state = known.said.get("state") if known.said is not None else None
    return state not in STATES or state in RUNNING_STATES or known.live is not None


def judged(known: Known, end: Unsettled, now: int) -> Activity:
    """Return a session's activity.

    Args:
        known: Its stored facts.
        end: The end of its transcript.
        now: The current time, epoch ms.
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
    return turn if busy == turn.busy else turn._replace(busy=busy)


def _age(at: int, now: int) -> int:
    """Return the distance of a time from now; a time far in the future is not recent either."""
    return abs(now - at)


def _was_said_to_run(known: Known) -> bool:
    return known.said is not None and known.said.get("state") in RUNNING_STATES


def _has_passed(said: Mapping[str, Any] | None, now: int, alive: bool | None) -> bool:
    """Return whether a source's guess has expired or its process has ended."""
    if said is None or "until" not in said:
        return False
    since = number(said.get("since"))
    return alive is False or _age(since, now) > number(said["until"]) - since


def _is_outdated(known: Known, moved_at: int) -> bool:
    """Return whether rows changed after their process had ended: another one writes them."""
    assert known.live is not None
    seen = known.live.get("seen")
    return (
        isinstance(seen, int) and known.live.get("state") == GONE and moved_at > seen
    )


def _lives(stored: Mapping[str, Any] | None) -> bool | None:
    """Return whether a session's process lives or its lock is held.

    Returns:
        None if unknown.
    """
    if stored is None:
        return None
    if stored.get("state") == GONE:
        return False
    from store.system import processes  # Most lists have no session with a process.

    lock, here = stored.get("lock"), processes.host_name()
    if isinstance(lock, str) and stored.get("host", here) == here:
        held = processes.lock_is_held(lock)
        if held is not None or "pid" not in stored:
            return held
    return processes.is_alive(stored)


def _turn(known: Known, end: Unsettled, now: int, alive: bool | None) -> Activity:
    """Return the result of the last turn, or that it is running."""
    said = known.said
    if said is None or said.get("state") not in STATES:
        return _guessed(known, end, now, alive)
    state: ActivityState = said["state"]
    if state in RUNNING_STATES and "pid" not in said:
        # The writer stores whether a turn runs, not what it waits for.
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
    """Return the guessed activity of a session without a stored one."""
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
        # For imported sessions the source would have stored the state.
        holds_for = RUNNING_FOR_MS if state == "answered" else GROWING_FOR_MS
        runs = not known.imported and _age(at, now) <= holds_for
        return Activity("running", "guessed", at) if runs else resting
    if alive is True or _age(at, now) <= RUNNING_FOR_MS:
        return Activity("running", "guessed", at)
    # A host may not mark its text as finished.
    return resting if state == "streaming" else Activity("interrupted", "guessed", at)


def _after_the_process(
    turn: Activity, live: Mapping[str, Any] | None, moved_at: int
) -> Activity:
    """Return the activity of a session whose process has ended."""
    began_a_turn = (
        live is not None and live.get("state") in OPEN_STATES
        and number(live.get("since")) > moved_at
    )
    if turn.state in OPEN_STATES or began_a_turn:
        return Activity("interrupted", "guessed", moved_at)
    return turn


def _by_its_word(turn: Activity, live: Mapping[str, Any]) -> Activity:
    """Return the activity of a session whose living process reports its state."""
    word: ActivityState = live["state"]
    since = number(live.get("since"))
    if word in RUNNING_STATES and turn.state in WAITING_STATES:
        return turn
    if word == "idle" and turn.state in ("error", "interrupted"):
        return turn
    return Activity(word, "stored", since)


def _without_a_process(known: Known, turn: Activity, now: int, moved_at: int) -> Activity:
    """Return the activity of a session that seems to be running, without a known process."""
    if known.said is not None and "pid" in known.said:
        # A process on another machine cannot be checked, but its writes can.
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
    """Return the SQL for the ``tool_state`` of a message ``m`` with the last part ``p``.

    opencode stores an error when its user interrupts. A host writes the usage when the answer
    is finished. A message that a rewind left at the end is not being answered.
    """
    is_newest = (
        "(m.id = (SELECT h.id FROM chat_messages h WHERE h.session_id = m.session_id"
        f" AND NOT {db.form.queued('h')} ORDER BY h.created_at DESC, h.id DESC LIMIT 1))"
    )
    aborted, usage = db.form.fact("m", "backscroll.aborted_at"), db.form.fact("m", "usage")
    finish = db.form.fact("m", "finish_reason")
    origin = f"coalesce({db.form.fact('m', 'origin')}, 'human')"
    valid = db.sql.is_json("p.data_json")
    state, name = (db.sql.fact("p.data_json", path) for path in ("state", "data.name"))
    return (
        f"CASE WHEN p.type = 'data-error' THEN CASE WHEN NOT {valid} THEN NULL"
        f" WHEN {name} = 'MessageAbortedError' THEN 'stopped' ELSE 'failed' END"
        f" WHEN p.type IN ('text', 'reasoning') AND m.role = 'assistant' THEN CASE"
        f" WHEN NOT {valid} THEN NULL"
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
    """Return the unfinished ends by session; sessions that ended normally are missing.

    Each session takes a scan of its last rows by the contract's indexes.
    """
    if not session_ids:
        return {}
    read = db.connection.execute(
        db.composed("unsettled", partial(_unsettled_sql, db)), {"1": array_of(session_ids)},
    ).fetchall()
    waiting = {key for what, key, *_ in read if what == "queued"}
    ends, calls = (
        {key: Unsettled(state, text(kind) or "", number(at), key in waiting)
         for what, key, kind, at, state in read if what == wanted and state is not None}
        for wanted in ("end", "call"))
    # A prompt may have been sent while a call runs, or after one that never ended.
    over = {
        key: end for key, end in ends.items()
        if end.tool_state in ("failed", "stopped")
        or (end.tool_state == "prompt" and key in calls
            and end.touched_at - calls[key].touched_at > RUNNING_FOR_MS)
    }  # fmt: skip
    return {key: Unsettled(queued=True) for key in waiting} | ends | calls | over


def _unsettled_sql(db: Database) -> str:
    """Return the statement for the ends of the sessions ``$1``, a JSON array of ids."""
    given = db.sql.texts("$1", "ids")
    newest = (
        "(SELECT n.id FROM chat_messages n WHERE n.session_id = ids.value AND {condition}"
        " ORDER BY n.created_at DESC, n.id DESC LIMIT 1)"
    )
    of_session = db.form.of_session
    last_part = (
        f"p.id = (SELECT l.id FROM chat_parts l WHERE l.message_id = m.id"
        f"""{of_session('l', 'm.session_id')} ORDER BY l."index" DESC LIMIT 1)"""
        f"{of_session('p', 'm.session_id')}"
    )
    in_it, queued_in_it = of_session("p", "ids.value"), of_session("q", "ids.value")
    any_newest = newest.format(condition="TRUE")
    shown = newest.format(condition=db.form.shown("n"))
    answer = newest.format(condition=f"n.role = 'assistant' AND {db.form.shown('n')}")
    call = (
        f"SELECT 'call' AS what, value, type, updated_at, tool_state FROM (SELECT ids.value,"
        " p.tool_state, p.type, p.updated_at, row_number() OVER (PARTITION BY ids.value"
        f' ORDER BY {_URGENCY}, p."index") AS place FROM {given}'
        f"{db.sql.found('chat_parts', 'p', f'p.message_id = {answer}{in_it}')}"
        f" WHERE p.tool_state IN ({_OPEN_CALLS})) c WHERE place = 1"
    )
    queued = (
        f"SELECT 'queued', ids.value, NULL, NULL, NULL FROM {given}"
        f"{db.sql.found('chat_messages', 'q', f'q.id = {any_newest}{queued_in_it}')}"
        f" WHERE {db.form.queued('q')}"
    )
    last = (
        f"SELECT 'end', ids.value, p.type, p.updated_at, {_how_it_ends(db)}"
        f" FROM {given}"
        f"{db.sql.found('chat_messages', 'm', f'm.id = {shown}' + of_session('m', 'ids.value'))}"
        f"{db.sql.found('chat_parts', 'p', last_part)}"
    )
    return f"{call} UNION ALL {queued} UNION ALL {last}"
