"""Archive and unarchive: a session leaves the list without being deleted.

The list's order does not change: ``updated_at`` stays, in a host's file too. A session takes its
subagents along, as they are a part of its work; its forks are sessions of their own and stay.
Those that go together have the same ``archived_at``, by which they come back together.
"""

from __future__ import annotations

from collections.abc import Sequence

from store.engine.database import Database
from store.engine.transactions import beside_others
from store.errors import Refused
from store.queries.helpers import helper_ids
from store.verbs.cells import dump_edits, set_column
from store.verbs.guards import require_session
from store.verbs.log import note_change, record


def _shelve(db: Database, session_ids: Sequence[str], value: int | None, now: int) -> list[str]:
    verb, state = ("archive", "archived") if value is not None else ("unarchive", "not archived")
    for session_id in session_ids:
        require_session(db, session_id)
    wanted = "IS NULL" if value is not None else "IS NOT NULL"
    chosen = [
        session_id
        for session_id in dict.fromkeys(session_ids)
        if db.connection.execute(
            f"SELECT 1 FROM chat_sessions WHERE id = $1 AND archived_at {wanted}",
            {"1": session_id},
        ).fetchone()
    ]
    along = dict.fromkeys(
        below for session_id in chosen
        for below in _subagents(db, session_id, archived_along=value is None))
    targets = [*chosen, *(below for below in along if below not in set(chosen))]
    if not targets:
        which = session_ids[0] if len(session_ids) == 1 else "every one of these sessions"
        raise Refused(f"{which} is already {state}" if session_ids else "no session given")
    for target in along:
        db.lock_session(target)
    edits = [set_column(db, "chat_sessions", target, "archived_at", value) for target in targets]
    for target in targets:
        note_change(db, target, now)
    # Runs that agents started for themselves go along and are not told of.
    unseen = set(helper_ids(db)).difference(chosen) if len(targets) > len(chosen) else set()
    told = [target for target in targets if target not in unseen]
    summary = f"{verb}d {_counted(len(chosen), 'session')}"
    if len(told) > len(chosen):
        summary += f" with {_counted(len(told) - len(chosen), 'subagent')}"
    record(db, verb, targets[0], summary, dump_edits(edits), now)
    return told


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _subagents(db: Database, session_id: str, *, archived_along: bool) -> list[str]:
    """Return the subagents of a session, and theirs, that go where it goes.

    Args:
        db: The store.
        session_id: The session, as it was before.
        archived_along: Those that were archived with it; else those that are not archived.
    """
    goes = "s.archived_at = p.archived_at" if archived_along else "s.archived_at IS NULL"
    rows = db.connection.execute(
        f"WITH RECURSIVE below(id) AS (SELECT {db.sql.as_id('$1')} UNION"
        " SELECT s.id FROM chat_sessions s JOIN below ON s.parent_id = below.id"
        f" WHERE {db.form.fact('s', 'lineage.kind')} = 'subagent')"
        " SELECT s.id FROM below JOIN chat_sessions s ON s.id = below.id"
        f" JOIN chat_sessions p ON p.id = $1 WHERE s.id <> $1 AND {goes}"
        " ORDER BY s.created_at, s.id",
        {"1": session_id},
    ).fetchall()
    return [row[0] for row in rows]


@beside_others
def archive(db: Database, session_ids: Sequence[str], *, now: int) -> list[str]:
    """Archive sessions and their subagents as one step of undo; returns all that it archived.

    Without the runs that agents started for themselves. The sessions that were given come first.
    A subagent that was archived before stays as it is.

    Args:
        db: The store, inside a write transaction.
        session_ids: Ids of the sessions.
        now: Epoch ms; the value of ``archived_at``.

    Raises:
        NotFound: One of the sessions is not there; none is archived then.
        Refused: All of them are archived already.
    """
    return _shelve(db, session_ids, now, now)


@beside_others
def unarchive(db: Database, session_ids: Sequence[str], *, now: int) -> list[str]:
    """Take sessions, and what was archived with them, out of the archive as one step of undo.

    Returns all that came out but runs that agents started for themselves; the sessions that were
    given come first.

    Args:
        db: The store, inside a write transaction.
        session_ids: Ids of the sessions.
        now: Epoch ms.

    Raises:
        NotFound: One of the sessions is not there; none is changed then.
        Refused: None of them is archived.
    """
    return _shelve(db, session_ids, None, now)
