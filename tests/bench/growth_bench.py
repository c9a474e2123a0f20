"""Times the sync of one line that was appended to a long session, and its first sync."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import Any

import orjson

from store.system.locations import cache_dir
from tests.bench import claude_corpus
from tests.bench.sync_bench import floor_of, with_bytecode

FULL_BYTES = 300_000_000
QUICK_BYTES = 6_000_000
APPENDS = 25
LAST_BYTES = 1 << 20


def measure(quick: bool) -> dict[str, Any]:
    """Sync a long session, then append a line and sync again, each in a fresh process.

    Returns:
        ``bytes`` of the session; ``first_s`` and ``first_floor_s`` of its first sync, as the
        line of sync has them, and ``first_mb`` (the most memory that it took);
        ``append_ms`` (what a sync with one more line takes, as it tells itself: without the
        start of its process) with ``append_worst_ms`` and ``append_mb``; ``idle_mb`` (the
        memory of a sync with nothing new); ``floor_ms``: reading the line, parsing it and
        writing the same rows by sqlite3. Medians where nothing else is said.
    """
    size = QUICK_BYTES if quick else FULL_BYTES
    kept = cache_dir() / "bench" / f"claude-long-{size}"
    kept.mkdir(parents=True, exist_ok=True)
    made = claude_corpus.make_long(kept, size)
    with tempfile.TemporaryDirectory() as folder:
        tree, store = Path(folder) / "tree", Path(folder) / "store.db"
        path = tree / made.relative_to(kept)
        path.parent.mkdir(parents=True)
        shutil.copy2(made, path)
        first_s, first_mb, _ = _sync(store, tree)
        first_floor_s, _ = floor_of(tree, store, Path(folder) / "floor.db")
        _, idle_mb, _ = _sync(store, tree)
        appends = [_append(path, store, tree, number) for number in range(5 if quick else APPENDS)]
    return {
        "bytes": path_size(made),
        "first_s": first_s,
        "first_floor_s": first_floor_s,
        "first_mb": first_mb,
        "append_ms": statistics.median(one["append_ms"] for one in appends),
        "append_worst_ms": max(one["append_ms"] for one in appends),
        "append_mb": max(one["append_mb"] for one in appends),
        "idle_mb": idle_mb,
        "floor_ms": statistics.median(one["floor_ms"] for one in appends),
    }


def path_size(path: Path) -> int:
    """Return the bytes of a file."""
    return path.stat().st_size


def _append(path: Path, store: Path, tree: Path, number: int) -> dict[str, float]:
    before = path_size(path)
    with path.open("r+b") as file:
        file.seek(max(0, before - LAST_BYTES))
        last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
        file.write(claude_corpus.next_line(last, number))
    seen = _newest(store)
    _, memory, summary = _sync(store, tree)
    if summary["read"] != 1 or summary["updated"] != 1:
        raise RuntimeError(f"one line more was not brought in: {summary}")
    return {
        "append_ms": summary["seconds"] * 1000,
        "append_mb": memory,
        "floor_ms": _floor(path, before, store, seen),
    }


def _newest(store: Path) -> tuple[int, int]:
    """Return the newest row of messages and of parts."""
    connection = sqlite3.connect(store)
    try:
        found: tuple[int, int] = connection.execute(
            "SELECT (SELECT max(rowid) FROM chat_messages), (SELECT max(rowid) FROM chat_parts)"
        ).fetchone()
        return found
    finally:
        connection.close()


def _floor(path: Path, start: int, store: Path, seen: tuple[int, int]) -> float:
    """Return how long it takes to read the line and to write the rows that came of it, in ms."""
    connection = sqlite3.connect(store, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        messages = _rows_after(connection, "chat_messages", seen[0])
        parts = _rows_after(connection, "chat_parts", seen[1])
        session = connection.execute(
            "SELECT metadata_json, updated_at, id FROM chat_sessions"
        ).fetchone()
        connection.execute("DELETE FROM chat_parts WHERE rowid > ?", (seen[1],))
        connection.execute("DELETE FROM chat_messages WHERE rowid > ?", (seen[0],))
        began = time.perf_counter()
        with path.open("rb") as file:
            file.seek(start)
            orjson.loads(file.read())
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "UPDATE chat_sessions SET metadata_json = ?, updated_at = ? WHERE id = ?", session
        )
        for table, rows in (("chat_messages", messages), ("chat_parts", parts)):
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        connection.execute("COMMIT")
        return (time.perf_counter() - began) * 1000
    finally:
        connection.close()


def _rows_after(connection: sqlite3.Connection, table: str, rowid: int) -> list[tuple[Any, ...]]:
    return connection.execute(f"SELECT * FROM {table} WHERE rowid > ?", (rowid,)).fetchall()


def _sync(store: Path, tree: Path) -> tuple[float, float, dict[str, Any]]:
    """Sync in a fresh process; return its seconds, the most memory (MB), and its summary."""
    with tempfile.TemporaryDirectory() as home:
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "store.sync", "--json", "--store", str(store), str(tree)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, **with_bytecode(), "XDG_CONFIG_HOME": home},
            stdout=subprocess.PIPE,
        )
        peaks = _Peaks(process.pid)
        peaks.start()
        assert process.stdout is not None
        told = process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        peaks.join()
    if process.returncode:
        raise RuntimeError(f"the sync failed: {told!r}")
    scale = 1_000_000 if sys.platform == "darwin" else 1_000
    most = max(usage.ru_maxrss / scale, peaks.total_mb)
    return seconds, most, orjson.loads(told.splitlines()[-1])


class _Peaks(Thread):
    """Follows the most memory of a process and of those that it started, while it runs."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._peaks: dict[str, int] = {}

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text()
                for pid in (str(self._pid), *children.split()):
                    with contextlib.suppress(OSError, StopIteration):
                        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                        peak = next(line for line in lines if line.startswith("VmHWM:"))
                        self._peaks[pid] = int(peak.split()[1])
                time.sleep(0.02)

    @property
    def total_mb(self) -> float:
        """The sum of all peaks; pages that processes share count in each."""
        return sum(self._peaks.values()) * 1024 / 1_000_000
