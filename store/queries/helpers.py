"""Runs that an agent started for itself, such as to suggest a prompt or to compact.

No person asked for them, so lists leave them out unless they are wanted.
"""

from __future__ import annotations

from store.engine.database import Database

_HELPERS = "SELECT session_id FROM session_links WHERE kind = 'helper'"


def without_helpers(db: Database, session: str = "s") -> str | None:
    """Return the SQL condition that leaves helpers' runs out of the sessions ``s``.

    Args:
        db: The store.
        session: The name of the sessions' table in the statement.

    Returns:
        None where the store holds none, so that its lists cost nothing for it.
    """
    if db.form.name != "own":
        return None
    found = db.connection.execute(f"{_HELPERS} LIMIT 1").fetchone()
    return None if found is None else f"{session}.id NOT IN ({_HELPERS})"


def shown_in_tree(db: Database, *, helpers: bool) -> str:
    """Return the SQL condition for a session ``s`` in the tree of the session ``$2``.

    Args:
        db: The store.
        helpers: Whether helpers' runs are shown; the session ``$2`` itself always is.
    """
    left_out = None if helpers else without_helpers(db)
    return "TRUE" if left_out is None else f"({left_out} OR s.id = $2)"


def helper_ids(db: Database) -> list[str]:
    """Return the ids of helpers' runs, which counts of sessions leave out."""
    if db.form.name != "own":
        return []
    return [row[0] for row in db.connection.execute(_HELPERS)]


def no_helpers(db: Database) -> str:
    """Return the SQL condition for a session ``s`` that is no helper's run."""
    return without_helpers(db) or "TRUE"
