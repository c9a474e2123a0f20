"""The names by which a store knows a folder: its own, and those that links lead to it by."""

from __future__ import annotations

import os

from store.engine.database import Database
from store.engine.values import text
from store.system.paths import resolved

_KNOWN = """
    WITH RECURSIVE known(name) AS (
        SELECT min(workspace_root) FROM chat_sessions
        UNION ALL
        SELECT (SELECT min(s.workspace_root) FROM chat_sessions s
                WHERE s.workspace_root > known.name)
        FROM known WHERE known.name IS NOT NULL
    )
    SELECT name FROM known WHERE name IS NOT NULL
"""
"""Each folder once, by leaps along the contract's index."""


def names_of(db: Database, folder: str) -> list[str]:
    """Return the folder as it was given, and the other names that sessions have of it.

    A folder is the same by device and inode, or where it is gone by where its links led.
    """
    if "\0" in folder:
        return [folder]
    wanted, real = _identity(folder), resolved(folder)
    found = [folder]
    for (value,) in db.connection.execute(_KNOWN):
        name = text(value) or ""
        if name == folder or "\0" in name or not os.path.isabs(name):
            continue
        same = wanted is not None and _identity(name) == wanted
        if same or resolved(name) == real:
            found.append(name)
    return found


def _identity(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)
    except (OSError, ValueError):
        return None
    return stat.st_dev, stat.st_ino
