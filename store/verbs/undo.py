"""Undo and redo: the newest verb of this store, whoever did it, across restarts."""

from __future__ import annotations

from dataclasses import dataclass

from store.engine.database import Database
from store.engine.transactions import beside_others
from store.errors import Refused
from store.verbs import fork_rows, rollups
from store.verbs.cells import CellEdit, apply_edit, load_edits
from store.verbs.delete import bring_back_deleted, lock_family, take_out
from store.verbs.guards import require_session
from store.verbs.log import LogEntry, newest_done, note_change, oldest_undone, set_state


@dataclass(frozen=True, slots=True)
class Step:
    """What was undone or redone.

    Attributes:
        summary: The verb in words, for a toast: ``archived 3 sessions``.
        session_id: The session to show: the one the verb was done to, or made.
        kept: Why the verb was left as it is and undo goes on with the one before it; None
            where it was taken back.
    """

    verb: str
    summary: str
    session_id: str
    kept: str | None = None


@beside_others
def undo(db: Database, *, now: int) -> Step:
    """Take the newest verb back; a fork that has grown is kept, and undo goes past it.

    Args:
        db: The store, inside a write transaction.
        now: Epoch ms.

    Raises:
        Refused: There is nothing to undo.
    """
    entry = newest_done(db)
    if entry is None:
        raise Refused("there is nothing to undo")
    edits = [edit.inverse() for edit in reversed(load_edits(entry.edits_json))]
    _lock(db, entry, edits)
    if entry.created_session is not None:
        made = entry.created_session
        reason = fork_rows.why_kept(db, made, entry.created_fingerprint)
        if reason is not None:
            set_state(db, entry.seq, "kept")
            there = fork_rows.exists(db, made)
            return Step(entry.verb, entry.summary, made if there else entry.session_id, reason)
        fork_rows.take_back(db, entry.seq, made)
        note_change(db, made, now)
    if entry.verb == "delete":
        reason = bring_back_deleted(db, entry.seq, now)
        if reason is not None:
            set_state(db, entry.seq, "kept")
            return Step(entry.verb, entry.summary, entry.session_id, reason)
    _apply(db, entry, edits, now)
    set_state(db, entry.seq, "undone")
    return Step(entry.verb, entry.summary, entry.session_id)


@beside_others
def redo(db: Database, *, now: int) -> Step:
    """Do again what was undone last; a new verb in between ends that.

    Args:
        db: The store, inside a write transaction.
        now: Epoch ms.

    Raises:
        Refused: There is nothing to redo.
    """
    entry = oldest_undone(db)
    if entry is None:
        raise Refused("there is nothing to redo")
    edits = load_edits(entry.edits_json)
    _lock(db, entry, edits)
    if entry.created_session is not None:
        if fork_rows.is_there_again(db, entry.seq):
            raise Refused(f"the fork {entry.created_session} is in the store again")
        fork_rows.bring_back(db, entry.seq)
        require_session(db, entry.created_session)
        note_change(db, entry.created_session, now)
    if entry.verb == "delete":
        take_out(db, entry.seq, entry.session_id, now)
    _apply(db, entry, edits, now)
    set_state(db, entry.seq, "done")
    return Step(entry.verb, entry.summary, entry.created_session or entry.session_id)


def _lock(db: Database, entry: LogEntry, edits: list[CellEdit]) -> None:
    """Keep recorders from what a step changes."""
    if entry.verb == "delete":
        lock_family(db, entry.session_id)
    of_edits = {edit.row_id for edit in edits if edit.table == "chat_sessions"}
    of_kept = fork_rows.kept_sessions(db, entry.seq, "deleted") if entry.verb == "delete" else []
    changed = {entry.session_id, entry.created_session or "", *of_edits, *of_kept} - {""}
    db.lock_sessions(lambda: changed)


def _apply(db: Database, entry: LogEntry, edits: list[CellEdit], now: int) -> None:
    sessions = {edit.row_id for edit in edits if edit.table == "chat_sessions"}
    for edit in edits:
        apply_edit(db, edit)
    if entry.verb in ("rewind", "restore"):
        sessions.add(entry.session_id)
        if db.form.name == "grida":
            rollups.write(db, entry.session_id)
    for session_id in sessions:
        note_change(db, session_id, now)
