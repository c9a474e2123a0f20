"""Delete: a session and its subagents leave the three tables, and undo brings them back.

The contract knows two ways out of a list: ``archived_at``, which is "not a delete", and the
deletion of rows, which takes messages and parts along. This is the second. As every verb can be
undone, the rows move to tables of their own beside the verb log; those of the newest ``KEPT``
deletions stay there. ``backscroll forget`` deletes without a way back.
"""

from __future__ import annotations

from store.engine.database import Database
from store.engine.transactions import beside_others
from store.errors import Refused
from store.verbs import fork_rows
from store.verbs.cells import CellEdit, dump_edits, set_column
from store.verbs.guards import refuse_while_running, require_session
from store.verbs.log import kept_table, log_of, note_change, record, set_edits

KEPT = 20
"""Deletions whose rows are kept for undo."""
THERE = "the session is in the store again, as by an import, and is left as it is"
GONE = f"only the newest {KEPT} deletions can be undone, and this one is older"


@beside_others
def delete(db: Database, session_id: str, *, now: int) -> list[str]:
    """Delete a session and its subagents; returns their ids, the session's first.

    Forks of it stay, without a parent.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
        now: Epoch ms.

    Raises:
        NotFound: The session is not there.
        Refused: It or one of its subagents runs, or it is read from an agent's own files.
    """
    lock_family(db, session_id)
    require_session(db, session_id)
    _refuse_from_source(db, session_id)
    family = _family(db, session_id)
    for member in family:
        refuse_while_running(db, member, now)
    subagents = len(family) - 1
    summary = "deleted 1 session" + (
        f" with {subagents} subagent{'s' if subagents > 1 else ''}" if subagents else "")
    # The entry first, as the kept rows name it.
    seq = record(db, "delete", session_id, summary, "[]", now)
    set_edits(db, seq, dump_edits(_orphan(db, family, now)))
    take_out(db, seq, session_id, now)
    for table in fork_rows.kept_tables(db):
        rows = kept_table(db, table, "deleted")
        log_of(db).execute(
            f"DELETE FROM {rows} WHERE verb_seq NOT IN (SELECT DISTINCT verb_seq FROM"
            f" {kept_table(db, 'chat_sessions', 'deleted')} ORDER BY verb_seq DESC LIMIT {KEPT})")
    return family


def lock_family(db: Database, session_id: str) -> None:
    """Keep others from changing a session, its subagents, and what was forked from them.

    Args:
        db: The store, inside a write transaction.
        session_id: The session's id.
    """
    def found() -> list[str]:
        family = _family(db, session_id)
        return [*family, *(child for member in family for child in _children(db, member))]

    db.lock_sessions(found)


def take_out(db: Database, seq: int, session_id: str, now: int) -> None:
    """Move the rows of a session and its subagents out of the three tables.

    Args:
        db: The store, inside a write transaction.
        seq: The entry of the verb log.
        session_id: The session's id.
        now: Epoch ms.
    """
    for member in _family(db, session_id):
        fork_rows.take_back(db, seq, member, "deleted")
        note_change(db, member, now)


def bring_back_deleted(db: Database, seq: int, now: int) -> str | None:
    """Move the rows of a deletion back; returns why that cannot be, None where it was done.

    Args:
        db: The store, inside a write transaction.
        seq: The deletion's entry of the verb log.
        now: Epoch ms.
    """
    if fork_rows.is_there_again(db, seq, "deleted"):
        return THERE
    found = fork_rows.bring_back(db, seq, "deleted")
    for session_id in found:
        note_change(db, session_id, now)
    return None if found else GONE


def _refuse_from_source(db: Database, session_id: str) -> None:
    (kind,) = db.connection.execute(
        f"SELECT {db.form.source_kind('s')} FROM chat_sessions s WHERE s.id = $1",
        {"1": session_id}).fetchone()
    if kind is not None and db.form.name == "own":
        raise Refused(
            f"session {session_id} is read from the files of {kind}, and the next sync would"
            " bring it back; archive it, or remove it for good with `backscroll forget`")


def _family(db: Database, session_id: str) -> list[str]:
    """Return a session and its subagents, and theirs, the session first."""
    rows = db.connection.execute(
        f"WITH RECURSIVE below(id, depth) AS (SELECT {db.sql.as_id('$1')}, 0 UNION"
        " SELECT s.id, depth + 1 FROM chat_sessions s JOIN below ON s.parent_id = below.id"
        f" WHERE depth < 32 AND {db.form.fact('s', 'lineage.kind')} = 'subagent')"
        " SELECT id, min(depth) FROM below GROUP BY id ORDER BY 2, 1",
        {"1": session_id},
    ).fetchall()
    return [row[0] for row in rows]


def _children(db: Database, session_id: str) -> list[str]:
    return [row[0] for row in db.connection.execute(
        "SELECT id FROM chat_sessions WHERE parent_id = $1", {"1": session_id}).fetchall()]


def _orphan(db: Database, family: list[str], now: int) -> list[CellEdit]:
    """Take the parent from sessions that stay behind."""
    edits = []
    for member in family:
        for child in (one for one in _children(db, member) if one not in family):
            edits += [set_column(db, "chat_sessions", child, column, None)
                      for column in ("parent_id", "parent_message_id")]
            note_change(db, child, now)
    return edits
