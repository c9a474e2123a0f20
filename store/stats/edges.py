"""The ends of a span that are not at a quarter hour, counted from the messages themselves."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from store.engine.database import Database
from store.stats import counting, tables
from store.stats.facts import QUARTER_MS, During, count_session

TABLES = ("spent", "called", "worked")


@dataclass(frozen=True, slots=True)
class Inner:
    """What of a span is made of whole quarter hours.

    Attributes:
        first: The first of them; None without a limit.
        last: The one after the last.
        ragged: What is left at both ends.
    """

    first: int | None
    last: int | None
    ragged: tuple[During, ...] = ()


def inner(start: int | None, end: int | None) -> Inner:
    """Return how a span is divided.

    Args:
        start: Epoch ms; None without a limit.
        end: Epoch ms, excluded.
    """
    first = None if start is None else -(-start // QUARTER_MS)
    last = None if end is None else end // QUARTER_MS
    if start is not None and end is not None and first is not None and last is not None:
        if end <= start:
            return Inner(0, 0)
        if first > last:
            return Inner(0, 0, (During(start, end),))
    ragged = []
    if start is not None and first is not None and first * QUARTER_MS > start:
        ragged.append(During(start, first * QUARTER_MS))
    if end is not None and last is not None and last * QUARTER_MS < end:
        ragged.append(During(last * QUARTER_MS, end))
    return Inner(first, last, tuple(ragged))


def count(db: Database, connection: sqlite3.Connection, ragged: tuple[During, ...]) -> None:
    """Count what sessions have in the ends of a span into temporary tables.

    Args:
        db: The store.
        connection: With the counts.
        ragged: The ends.
    """
    for table in TABLES:
        connection.execute(f"CREATE TEMP TABLE end_{table} AS SELECT * FROM {table} WHERE 0")
    names = tables.Names(connection)
    for during in ragged:
        quarter = during.start // QUARTER_MS
        ids = {
            row[0] for table in TABLES for row in connection.execute(
                f"SELECT DISTINCT s.id FROM {table} r JOIN session s ON s.number = r.session"
                " WHERE r.quarter = ?", (quarter,)
            )
        }  # fmt: skip
        _, shared = counting.shared_around(db, connection, ids)
        for session_id, info in counting.infos_of(db, sorted(ids)):
            number = tables.session_number(connection, session_id)
            if info is None or number is None:
                continue
            facts = count_session(db, info, shared, during)
            for table, rows in tables.rows_of(names, number, facts):
                if table in TABLES:
                    connection.executemany(
                        f"INSERT INTO end_{table} VALUES ({','.join('?' * len(rows[0]))})", rows)


def join(connection: sqlite3.Connection, table: str, conditions: list[str]) -> None:
    """Make a view of the whole quarter hours of a table and of the ends.

    Args:
        connection: With both.
        table: The table's name.
        conditions: What limits it to the whole quarter hours.
    """
    where = " AND ".join(conditions)
    connection.execute(
        f"CREATE TEMP VIEW edge_{table} AS SELECT * FROM {table}"
        f"{f' WHERE {where}' if where else ''} UNION ALL SELECT * FROM end_{table}"
    )


def drop(connection: sqlite3.Connection) -> None:
    """Drop the temporary tables and views."""
    for table in TABLES:
        connection.execute(f"DROP VIEW IF EXISTS temp.edge_{table}")
        connection.execute(f"DROP TABLE IF EXISTS temp.end_{table}")
