"""Archive and unarchive: a session leaves the list without being deleted.

The list's order does not change: ``updated_at`` stays, in a host's file too.
"""

from __future__ import annotations

from collections.abc import Sequence

from store.engine.database import Database
from store.errors import Refused
from store.verbs.cells import dump_edits, set_column
from store.verbs.guards import require_session
from store.verbs.log import note_change, record


def _shelve(db: Database, session_ids: Sequence[str], value: int | None, now: int) -> list[str]:
    verb, state = ("archive", "archived") if value is not None else ("unarchive", "not archived")
    for session_id in session_ids:
        require_session(db, session_id)
    wanted = "IS NULL" if value is not None else "IS NOT NULL"
    targets = [
        session_id
        for session_id in dict.fromkeys(session_ids)
        if db.connection.execute(
            f"SELECT 1 FROM chat_sessions WHERE id = $1 AND archived_at {wanted}",
            {"1": session_id},
        ).fetchone()
    ]
    if not targets:
        which = session_ids[0] if len(session_ids) == 1 else "every one of these sessions"
        raise Refused(f"{which} is already {state}" if session_ids else "no session given")
    edits = [set_column(db, "chat_sessions", target, "archived_at", value) for target in targets]
    for target in targets:
        note_change(db, target, now)
    summary = f"{verb}d {len(targets)} session{'s' if len(targets) != 1 else ''}"
    record(db, verb, targets[0], summary, dump_edits(edits), now)
    return targets


def archive(db: Database, session_ids: Sequence[str], *, now: int) -> list[str]:
    """Archive sessions as one step of undo; returns those that were not archived yet.

    Args:
        db: The store, inside a write transaction.
        session_ids: Ids of the sessions.
        now: Epoch ms; the value of ``archived_at``.

    Raises:
        NotFound: One of the sessions is not there; none is archived then.
        Refused: All of them are archived already.
    """
    return _shelve(db, session_ids, now, now)


def unarchive(db: Database, session_ids: Sequence[str], *, now: int) -> list[str]:
    """Take sessions out of the archive as one step of undo; returns those that were in it.

    Args:
        db: The store, inside a write transaction.
        session_ids: Ids of the sessions.
        now: Epoch ms.

    Raises:
        NotFound: One of the sessions is not there; none is changed then.
        Refused: None of them is archived.
    """
    return _shelve(db, session_ids, None, now)
