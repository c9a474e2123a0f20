"""Takes sessions out of the statistics at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from store.engine import sidecars
from store.engine.database import Database
from store.stats import counting, tables
from store.stats.tables import STATISTICS


def forget(store: Path, session_ids: Sequence[str]) -> None:
    """Remove everything about some sessions from a store's statistics, and overwrite it.

    Sessions that share answers with them are left to be counted again.

    Args:
        store: The store's file.
        session_ids: Sessions that were deleted from the store; the deletion must be committed,
            or a running keeper could add them again.

    Raises:
        StatisticsUnusable: They could not be removed.
    """
    STATISTICS.change(store, partial(take_out, session_ids=session_ids))


def take_out(file: sqlite3.Connection, session_ids: Sequence[str]) -> None:
    """Remove everything about some sessions from an open file of statistics, as ``forget``.

    Args:
        file: The file, open for writing.
        session_ids: The sessions.
    """
    with sidecars.transaction(file):
        sidecars.set_values(file, generation=sidecars.number_of(file, "generation") + 1)
        for session_id in counting.connected(file, session_ids) - set(session_ids):
            file.execute("UPDATE session SET counted = 0 WHERE id = ?", (session_id,))
        for session_id in session_ids:
            file.execute(
                "UPDATE session SET counted = 0, parent = '' WHERE parent = ?", (session_id,))
            number = tables.session_number(file, session_id)
            if number is not None:
                tables.remove_session(file, number)
        file.execute(f"DELETE FROM charge WHERE number NOT IN ({_USED_CHARGES})")
        file.execute(f"DELETE FROM name WHERE number NOT IN ({_USED_NAMES})")
    sidecars.empty_log(file)


def forgotten_elsewhere(database: Database) -> list[str]:
    """Return the sessions of a server that were deleted for good, maybe from another machine.

    Whoever forgets a session of a file takes it out of the statistics, which are beside it.

    Args:
        database: The store.
    """
    if database.server is None or database.form.name != "own":
        return []
    rows = database.connection.execute(
        "SELECT f.session_id FROM forgotten_sessions f WHERE NOT EXISTS"
        " (SELECT 1 FROM chat_sessions s WHERE s.id = f.session_id)").fetchall()
    return [session_id for (session_id,) in rows]


_USED_CHARGES = "SELECT charge FROM spent"
_USED_NAMES = " UNION ".join(
    f"SELECT {column} FROM {table}" for table, columns in (
        ("session", ("agent", "source", "workspace", "branch")),
        ("charge", ("model", "provider", "tier")), ("spent", ("model",)),
        ("called", ("tool", "model")), ("worked", ("model",)),
    ) for column in columns
)  # fmt: skip
