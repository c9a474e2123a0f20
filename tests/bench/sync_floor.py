"""The floor of a sync: every line or row read and parsed, ``executemany`` of the same rows.

    python -m tests.bench.sync_floor TREE SYNCED_STORE NEW_STORE

Prints seconds, of the clock and of the processor. The rows of the three tables are read
from a store that was synced before; that is not timed, nor is the start of the process.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import orjson

from store.engine.database import open_database

SESSIONS_A_TRANSACTION = 16
Rows = list[tuple[Any, ...]]


def rows_by_session(store: Path) -> list[tuple[Rows, Rows, Rows]]:
    """Return the rows of the three tables, one group a session, newest first."""
    read = sqlite3.connect(store).execute
    messages: dict[str, Rows] = {}
    parts: dict[str, Rows] = {}
    for row in read("SELECT * FROM chat_messages ORDER BY session_id, created_at, id"):
        messages.setdefault(row[1], []).append(row)
    for row in read('SELECT * FROM chat_parts ORDER BY session_id, message_id, "index"'):
        parts.setdefault(row[2], []).append(row)
    sessions = read("SELECT * FROM chat_sessions ORDER BY updated_at DESC").fetchall()
    return [([row], messages.get(row[0], []), parts.get(row[0], [])) for row in sessions]


def read_rows(path: Path) -> None:
    """Read and parse all rows of a database of opencode."""
    connection = sqlite3.connect(path)
    for (session,) in connection.execute("SELECT id FROM session").fetchall():
        for table in ("message", "part"):
            rows = connection.execute(f"SELECT * FROM {table} WHERE session_id = ?", (session,))
            for row in rows:
                orjson.loads(row[-1])
    connection.close()


def floor(tree: Path, groups: list[tuple[Rows, Rows, Rows]], target: Path) -> tuple[float, float]:
    """Return clock and processor seconds of the least that a sync has to do."""
    connection = open_database(target, create=True).connection
    started, spent = time.perf_counter(), time.process_time()
    for path in tree.rglob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            orjson.loads(line)
    for path in tree.glob("*.db"):
        read_rows(path)
    for start in range(0, len(groups), SESSIONS_A_TRANSACTION):
        connection.execute("BEGIN IMMEDIATE")
        for tables in groups[start : start + SESSIONS_A_TRANSACTION]:
            names = ("chat_sessions", "chat_messages", "chat_parts")
            for name, rows in zip(names, tables, strict=True):
                if rows:
                    marks = ", ".join("?" * len(rows[0]))
                    connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        connection.execute("COMMIT")
    connection.close()
    return time.perf_counter() - started, time.process_time() - spent


if __name__ == "__main__":
    print(*floor(Path(sys.argv[1]), rows_by_session(Path(sys.argv[2])), Path(sys.argv[3])))
