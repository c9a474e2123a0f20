"""What the sessions of a list do now: stored by the program that runs them, else guessed."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence

from store.activity.judgement import Known, judged_all, live_activities, stored_activity
from store.activity.states import BY_URGENCY
from store.engine.database import Database
from store.engine.values import number, text
from store.queries import list_keys, listing
from store.queries.helpers import no_helpers
from store.queries.list_keys import ListKeys
from store.queries.list_options import SORTS
from store.queries.listing import ListQuery, ListRow
from store.text.stored_json import array_of

RECENT_MS = 86_400_000
"""Sessions that were idle for longer are not counted as active."""


def judge(db: Database, rows: Iterable[ListRow], now: int) -> None:
    """Set what sessions do, as ``store.activity.judgement`` decides.

    Args:
        db: The store.
        rows: The sessions; changed in place.
        now: The present, epoch ms.
    """
    found = list(rows)
    known = [
        Known(row.id, row.updated_at, row.said, row.live, row.source is not None)
        for row in found
    ]
    judged = judged_all(db, known, now)
    for row in found:
        activity, row.active_at = judged[row.id]
        row.activity, row.activity_from = activity.state, activity.from_


def states_of(db: Database, rowids: Sequence[int], now: int) -> dict[int, str]:
    """Return what some sessions do, by rowid; idle ones are missing.

    The same as in ``rows``, for a third of its cost: nothing else of a session is read.

    Args:
        db: The store.
        rowids: The sessions.
        now: The present, epoch ms.
    """
    sql, column = db.sql, "s.metadata_json"
    place, metadata = sql.rowid("s"), sql.text(column)
    says = sql.contains(column, "'\"activity\"'")
    imported = sql.contains(column, "'\"source\":'")
    read = db.connection.execute(
        f"SELECT {place}, s.id, s.updated_at, CASE WHEN {says} THEN {metadata} ELSE '' END,"
        f" {imported} FROM {sql.numbers('$1', 'j')} JOIN chat_sessions s ON {place} = j.value",
        {"1": array_of(rowids)},
    ).fetchall()
    live = live_activities(db, [session_id for _, session_id, *_ in read])
    known = {
        rowid: Known(
            session_id, number(written_at), stored_activity(text(metadata) or ""),
            live.get(session_id), bool(imported),
        )
        for rowid, session_id, written_at, metadata, imported in read
    }
    judged = judged_all(db, known.values(), now)
    doing = {rowid: judged[one.id][0].state for rowid, one in known.items()}
    return {rowid: state for rowid, state in doing.items() if state != "idle"}


def rows(
    db: Database, rowids: Sequence[int], session_ids: Sequence[str], now: int,
    uncounted: Collection[str] = (),
) -> dict[int, ListRow]:
    """Read what the list draws of some sessions, by rowid, with what they do.

    Args:
        db: The store.
        rowids: Sessions by rowid.
        session_ids: More sessions, by id.
        now: The present, epoch ms.
        uncounted: More sessions by id, whose messages are not counted: the caller has done so.
    """
    wanted = dict.fromkeys(rowids)
    if session_ids:
        wanted |= dict.fromkeys(listing.rowids_of(db, session_ids).values())
    found = listing.rows_of(db, list(wanted)) if wanted else {}
    if uncounted:
        known = list(listing.rowids_of(db, uncounted).values())
        found |= listing.rows_of(db, known, counted=False)
    judge(db, found.values(), now)
    return found


def recently_active(db: Database, now: int) -> list[ListRow]:
    """Return the active sessions, the newest first.

    Those of the last day, and those whose process is watched, however long ago they wrote;
    older ones are only looked at where a filter asks for them (``states_of``).
    """
    listed, place = no_helpers(db), db.sql.rowid("s")
    newest = [rowid for (rowid,) in db.connection.execute(
        f"SELECT {place} FROM chat_sessions s WHERE s.archived_at IS NULL AND s.updated_at > ?"
        f" AND {listed} ORDER BY s.updated_at DESC", (now - RECENT_MS,),
    ).fetchall()]
    if db.form.name == "own":
        newest += [rowid for (rowid,) in db.connection.execute(
            f"SELECT {place} FROM live_activity l JOIN chat_sessions s ON s.id = l.session_id"
            f" WHERE s.archived_at IS NULL AND s.updated_at <= ? AND {listed}"
            " ORDER BY s.updated_at DESC",
            (now - RECENT_MS,),
        ).fetchall()]
    doing = states_of(db, newest, now)
    chosen = [rowid for rowid in newest if doing.get(rowid, "ended") != "ended"]
    found = rows(db, chosen, (), now)
    return [
        row for rowid in chosen
        if (row := found.get(rowid)) is not None and row.activity not in ("idle", "ended")
    ]


def newest_active(db: Database, now: int, states: Sequence[str]) -> str | None:
    """Return the id of the newest session whose activity is one of some states.

    Args:
        db: The store.
        now: The present, epoch ms.
        states: The states.
    """
    return next((r.id for r in recently_active(db, now) if r.activity in states), None)


def states(db: Database, now: int) -> dict[int, str]:
    """Return what sessions of the last day do, by rowid; idle ones are missing."""
    return {row.rowid: row.activity or "idle" for row in recently_active(db, now)}


def keys(db: Database, query: ListQuery, now: int) -> ListKeys:
    """Read the keys of every session of a list, in any order of ``list_options.SORTS``.

    Args:
        db: The store.
        query: What the list shows.
        now: The present, epoch ms; a sort by activity depends on it.
    """
    found = list_keys.all_keys(db, query)
    if SORTS[query.sort].active_first:
        _rank(found, states(db, now))
    return found


def _rank(found: ListKeys, doing: dict[int, str]) -> None:
    """Move active sessions to the front, the most urgent first."""
    ranks = {
        rowid: BY_URGENCY.index(state) for rowid, state in doing.items() if state in BY_URGENCY
    }
    front = sorted(
        (n for n, rowid in enumerate(found.rowids) if rowid in ranks),
        key=lambda n: (ranks[found.rowids[n]], n),
    ) if ranks else []
    if not front:
        return
    moved = set(front)
    order = [*front, *(n for n in range(len(found.rowids)) if n not in moved)]
    found.rowids = array("q", (found.rowids[n] for n in order))
    found.groups = array("i", (found.groups[n] for n in order))
