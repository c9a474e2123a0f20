"""Times a fork at the end of a long session against INSERT ... SELECT of the same rows.

Both run in files that are copies of one store, in a fresh process each, so that neither
finds pages in memory that the other read.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson

from tests.bench.long_session import LAST_MESSAGE, SESSION, long_store

FULL_PARTS, QUICK_PARTS = 100_000, 2_000
ROUNDS = 5


def measure(quick: bool) -> dict[str, Any]:
    """Fork a seeded session at its last message, each time beside the floor.

    Returns:
        ``parts``; ``fork_s`` and ``floor_s`` (transaction and commit, each a median) and
        ``ratio``, the median of the rounds' own ratios.
    """
    parts = QUICK_PARTS if quick else FULL_PARTS
    store = long_store(parts)
    forks, floors = [], []
    for _ in range(1 if quick else ROUNDS):
        floors.append(_timed("floor", store))
        forks.append(_timed("fork", store))
    return {
        "parts": parts,
        "fork_s": statistics.median(forks),
        "floor_s": statistics.median(floors),
        "ratio": statistics.median(a / b for a, b in zip(forks, floors, strict=True)),
    }


def _timed(way: str, store: Path) -> float:
    with tempfile.TemporaryDirectory(dir=store.parent) as folder:
        copy = Path(folder) / "store.db"
        shutil.copyfile(store, copy)
        told = subprocess.run(
            [sys.executable, "-m", "tests.bench.fork_bench", way, str(copy)],
            check=True,
            capture_output=True,
            text=True,
        )
        return float(told.stdout)


def _fork(path: Path) -> float:
    from store.engine.database import in_transaction, open_database
    from store.ids import IdMinter
    from store.verbs.fork import fork

    database = open_database(path)
    started = time.perf_counter()
    in_transaction(
        database, fork, SESSION, LAST_MESSAGE, ids=IdMinter(), now=time.time_ns() // 1_000_000
    )
    return time.perf_counter() - started


def _floor(path: Path) -> float:
    """Copy the rows of the session under ids that are cheap to make."""
    from store.engine.database import open_database

    connection = open_database(path).connection
    started = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    for table, renamed in (
        ("chat_sessions", {"id": "'ses_copy'"}),
        ("chat_messages", {"id": "'c' || id", "session_id": "'ses_copy'"}),
        (
            "chat_parts",
            {"id": "'c' || id", "message_id": "'c' || message_id", "session_id": "'ses_copy'"},
        ),
    ):
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        picked = ", ".join(renamed.get(name, f'"{name}"') for name in names)
        column = "id" if table == "chat_sessions" else "session_id"
        connection.execute(
            f"INSERT INTO {table} SELECT {picked} FROM {table} WHERE {column} = ?", (SESSION,)
        )
    connection.execute("COMMIT")
    return time.perf_counter() - started


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print({"fork": _fork, "floor": _floor}[sys.argv[1]](Path(sys.argv[2])))
    else:
        print(orjson.dumps(measure("--quick" in sys.argv), option=orjson.OPT_INDENT_2).decode())
