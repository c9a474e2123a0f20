"""Records exports for agents, so that sync can link the sessions that continue them."""

from __future__ import annotations

from store.engine.database import Database
from store.ids import derived_session_id


def note_export(db: Database, kind: str, agent_id: str, session_id: str) -> None:
    """Record which session a file for an agent was exported from.

    Does nothing in a host's store, which has no table for it.

    Args:
        db: The store, in a write transaction.
        kind: The agent's ``metadata_json.source.kind``.
        agent_id: The session's id at the agent.
        session_id: The session that was exported.
    """
    if db.form.name == "own":
        note_imported(db, derived_session_id(kind, agent_id), session_id)


def note_imported(db: Database, imported_id: str, session_id: str) -> None:
    """Record the id that an exported session will have when the agent's file is synced.

    Args:
        db: A library, in a write transaction.
        imported_id: That id, in the store.
        session_id: The session that was exported.
    """
    db.connection.execute(
        "INSERT INTO exported_sessions(imported_id, session_id) VALUES ($1, $2)"
        " ON CONFLICT(imported_id) DO UPDATE SET session_id = excluded.session_id",
        {"1": imported_id, "2": session_id},
    )
