"""What the sessions of a list do now: stored by whoever runs them, else guessed."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from store.activity import STATES, Unsettled, guessed, judged, unsettled_of
from store.database import Database
from store.queries import list_keys, listing
from store.queries.list_keys import ListKeys
from store.queries.listing import ListQuery, ListRow

RECENT_MS = 86_400_000
"""What a session that rests for longer seems to do is no news any more."""
_AMONG = 500
RANKS = (
    "waiting-approval", "waiting-input", "running", "retrying", "queued", "error", "interrupted",
)
"""States in the order in which a list by activity has them; all others come last."""


def judge(db: Database, rows: Iterable[ListRow], now: int) -> None:
    """Say of sessions what they do, as ``store.activity.activity_of`` does.

    Args:
        db: The store.
        rows: The sessions; changed in place.
        now: The present, epoch ms.
    """
    silent = {}
    for row in rows:
        if row.stored is not None and row.activity in STATES:
            activity = judged(row.stored, now, row.updated_at)
            row.activity, row.activity_from = activity.state, activity.from_
        else:
            silent[row.id] = row
    open_ends = unsettled_of(db, list(silent)) if silent else {}
    for session_id, row in silent.items():
        unsettled = open_ends.get(session_id, Unsettled())
        activity = guessed(unsettled, now, row.updated_at)
        row.activity, row.activity_from = activity.state, activity.from_
        row.active_at = unsettled.touched_at


def rows(
    db: Database, rowids: Sequence[int], session_ids: Sequence[str], now: int
) -> dict[int, ListRow]:
    """Read what the list draws of some sessions, by rowid, with what they do."""
    wanted = dict.fromkeys(rowids)
    if session_ids:
        wanted |= dict.fromkeys(listing.rowids_of(db, session_ids).values())
    found = listing.rows_of(db, list(wanted)) if wanted else {}
    judge(db, found.values(), now)
    return found


def recently_active(db: Database, now: int) -> list[ListRow]:
    """Return the sessions of the last day that do something, the newest first."""
    newest = [rowid for (rowid,) in db.connection.execute(
        "SELECT s.rowid FROM chat_sessions s WHERE s.archived_at IS NULL AND s.updated_at > ?"
        " ORDER BY s.updated_at DESC LIMIT ?", (now - RECENT_MS, _AMONG),
    ).fetchall()]
    found = rows(db, newest, (), now)
    return [
        row for rowid in newest
        if (row := found.get(rowid)) is not None and row.activity not in ("idle", "ended")
    ]


def newest_active(db: Database, now: int, states: Sequence[str]) -> int | None:
    """Return the rowid of the newest session whose activity is one of some states."""
    return next((r.rowid for r in recently_active(db, now) if r.activity in states), None)


def states(db: Database, now: int) -> dict[int, str]:
    """Return what sessions do, by rowid; those that rest are missing."""
    return {row.rowid: row.activity or "idle" for row in recently_active(db, now)}


def keys(db: Database, query: ListQuery, now: int) -> ListKeys:
    """Read the keys of every session of a list, in any order that there is."""
    found = list_keys.all_keys(db, query)
    if query.sort == "activity":
        _rank(found, states(db, now))
    return found


def _rank(found: ListKeys, doing: dict[int, str]) -> None:
    """Move what does something to the front, the most urgent first."""
    ranks = {
        rowid: RANKS.index(state) for rowid, state in doing.items() if state in RANKS
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
