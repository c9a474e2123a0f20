"""Compares the file of statistics with a full count of its store."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

from store.engine import sidecars
from store.engine.database import open_database
from store.engine.sidecars import value_of
from store.stats import counting, tables
from store.stats.tables import STATISTICS

_SPENT = (
    "SELECT s.id, r.quarter, m.text, p.text, t.text, c.told, c.size, c.present, r.answers,"
    " r.copies, r.input, r.output, r.reasoning, r.cache_read, r.cache_write, r.cache_write_1h,"
    " round(r.usd, 6) FROM spent r JOIN session s ON s.number = r.session"
    " JOIN charge c ON c.number = r.charge JOIN name m ON m.number = c.model"
    " JOIN name p ON p.number = c.provider JOIN name t ON t.number = c.tier"
)
_ROWS = {
    "session": "SELECT s.id, a.text, k.text, w.text, b.text, s.parent FROM session s"
    " JOIN name a ON a.number = s.agent JOIN name k ON k.number = s.source"
    " JOIN name w ON w.number = s.workspace JOIN name b ON b.number = s.branch"
    " WHERE s.counted = 1",
    "spent": _SPENT,
    "called": "SELECT s.id, r.quarter, t.text, m.text, r.calls, r.failed, r.denied, r.timed,"
    " r.milliseconds FROM called r JOIN session s ON s.number = r.session"
    " JOIN name t ON t.number = r.tool JOIN name m ON m.number = r.model",
    "worked": "SELECT s.id, r.quarter, m.text, r.turns, r.active_ms, r.calls, r.failed, r.denied,"
    " r.timed, r.milliseconds FROM worked r JOIN session s ON s.number = r.session"
    " JOIN name m ON m.number = r.model",
    "longest": "SELECT s.id, r.place, r.milliseconds, r.message, r.at FROM longest r"
    " JOIN session s ON s.number = r.session",
    "shares": "SELECT s.id, o.id FROM shares r JOIN session s ON s.number = r.session"
    " JOIN session o ON o.number = r.other",
}


def check(store: Path) -> list[str]:
    """Return what differs between a store's statistics and a full count; empty if nothing does.

    Args:
        store: The store's file.

    Raises:
        StoreError: One of them cannot be read.
    """
    path = STATISTICS.path(store)
    file = STATISTICS.open_for_reading(path)
    if file is None:
        return [f"{path} is not there, or no file of statistics"]
    counted = sqlite3.connect(":memory:", isolation_level=None)
    database = open_database(store, write=False)
    try:
        found = []
        if value_of(file, "store") != sidecars.store_identity(store):
            found.append("the statistics are those of another file")
        if not value_of(file, "whole"):
            found.append("not all sessions are counted yet")
        tables.make_tables(counted)
        counting.count_all(database, counted)
        for table, select in _ROWS.items():
            found += _differences(table, file, counted, select)
        return found
    except sqlite3.Error as error:
        raise STATISTICS.unusable(path, error) from error
    finally:
        file.close()
        counted.close()
        database.close()


def _differences(
    table: str, file: sqlite3.Connection, counted: sqlite3.Connection, select: str
) -> list[str]:
    kept, true = (Counter(each.execute(select).fetchall()) for each in (file, counted))
    return [f"{table}: {row} should not be there" for row in kept - true] + [
        f"{table}: {row} is missing" for row in true - kept
    ]
