"""Remembers what was exported for an agent: sync then links what the agent makes of it."""

from __future__ import annotations

from store.engine.database import Database
from store.ids import derived_session_id


def note_export(db: Database, kind: str, agent_id: str, session_id: str) -> None:
    """Remember which session a file for an agent was made of.

    Only a store of our own form has a place for it.

    Args:
        db: The store, in a write transaction.
        kind: The agent, as in ``metadata_json.source.kind``.
        agent_id: The id that the session has there.
        session_id: The session that was exported.
    """
    if db.form.name == "own":
        note_imported(db, derived_session_id(kind, agent_id), session_id)


def note_imported(db: Database, imported_id: str, session_id: str) -> None:
    """Remember under which id a session is imported that an agent makes of an export.

    Args:
        db: A store of our own form, in a write transaction.
        imported_id: The id that it has in the store then.
        session_id: The session that was exported.
    """
    db.connection.execute(
        "INSERT INTO exported_sessions(imported_id, session_id) VALUES ($1, $2)"
        " ON CONFLICT(imported_id) DO UPDATE SET session_id = excluded.session_id",
        {"1": imported_id, "2": session_id},
    )
