"""A whole store in a few numbers."""

from __future__ import annotations

from store.engine.database import Database
from store.engine.values import number_or_none
from store.queries.helpers import no_helpers
from store.system.records import NamedTuple


class Totals(NamedTuple):
    """What a store holds.

    Attributes:
        sessions: All of them, archived ones too, helpers' runs (``store.queries.helpers``) not.
        archived: How many of those are archived.
        sources: Kinds of sources that were synced into it.
        synced_at: Epoch ms of the last unit that sync read; None where none was.
        changed_at: ``updated_at`` of the newest session that is not archived.
    """

    sessions: int
    archived: int
    sources: int
    synced_at: int | None
    changed_at: int | None


def totals(db: Database) -> Totals:
    """Count a store."""
    connection = db.connection
    counted = f"SELECT count(*) FROM chat_sessions s WHERE {no_helpers(db)}"
    (sessions,) = connection.execute(counted).fetchone()
    (archived,) = connection.execute(f"{counted} AND s.archived_at IS NOT NULL").fetchone()
    (changed,) = connection.execute(
        "SELECT max(updated_at) FROM chat_sessions WHERE archived_at IS NULL"
    ).fetchone()
    sources, synced = 0, None
    if db.form.name == "own":
        sources, synced = connection.execute(
            "SELECT count(DISTINCT kind), max(synced_at) FROM source_units"
        ).fetchone()
    return Totals(sessions, archived, sources, synced, number_or_none(changed))
