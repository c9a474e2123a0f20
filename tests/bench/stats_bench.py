"""Times the statistics of a store of a million parts: kept, followed, and read by the screen.

The store is the one that searches are timed on, with a usage and a model for each answer.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from store.engine import sidecars
from store.engine.database import open_database
from store.language.query import parse
from store.prices.loading import load_prices
from store.stats.statistics import (
    ALWAYS,
    Dimension,
    cache_share,
    figures,
    longest_turns,
    open_rollups,
)
from store.stats.tables import STATISTICS
from tests.bench.kept import generator_key, kept_store
from tests.bench.report import Limits, Line, p95
from tests.bench.search_store import NEWEST, search_store

FULL_PARTS, QUICK_PARTS = 1_000_000, 5_000
ROUNDS, COMMITS = 7, 40
_WAIT_S = 60.0
_MODELS = ("claude-opus-4-5", "claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro", "qwen3-coder")
_ASKED: tuple[Dimension, ...] = ("day", "model", "agent", "workspace", "branch", "tool", "session")


def statistics(quick: bool) -> list[Line]:
    """Counting everything, following a writer, and what the screen asks."""
    parts = QUICK_PARTS if quick else FULL_PARTS
    store = stats_store(parts)
    built = _build(store)
    asked = [_ask(store) for _ in range(1 if quick else ROUNDS)]
    best = min(asked, key=lambda each: each["ms"])
    return [
        Line("stats", f"counting {parts:,} parts, per 1,000 parts", built["wall_s"] / parts * 1e6,
             "ms", None, Limits(), built),
        Line("stats", "size of the file of statistics, per part", built["bytes"] / parts, "bytes",
             None, Limits()),
        Line("stats", "commit to its answer in the file of statistics, p95",
             p95(_follow(store, 3 if quick else COMMITS)), "ms", None, Limits(value=1000)),
        Line("stats", f"all that the screen asks of {parts:,} parts, together",
             sorted(each["ms"] for each in asked)[len(asked) // 2], "ms", None,
             Limits(value=200), best),
    ]  # fmt: skip


def stats_store(parts: int) -> Path:
    """Return the kept store of so many parts whose answers have a usage."""
    key = generator_key(sys.modules[__name__]) + generator_key(sys.modules[search_store.__module__])
    return kept_store(f"stats-{parts}", key, lambda path: _write(path, search_store(parts)))


def _write(path: Path, of: Path) -> None:
    shutil.copyfile(of, path)
    connection = open_database(path).connection
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")
    models = " ".join(
        f"WHEN {place} THEN '{name}'" for place, name in enumerate(_MODELS)
    )
    connection.execute(
        "UPDATE chat_messages SET metadata_json = json_object('usage', json_object('input',"
        " rowid * 37 % 4000, 'output', rowid * 53 % 900, 'cache_read', rowid * 91 % 220000,"
        " 'cache_write', rowid * 17 % 9000), 'model', json_object('provider_id', 'any',"
        f" 'model_id', CASE (created_at / 3600000) % {len(_MODELS)} {models} END))"
        " WHERE role = 'assistant'"
    )
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def _build(store: Path) -> dict[str, Any]:
    path = STATISTICS.path(store)
    sidecars.remove_files(path)
    started, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-m", "store.stats", "--once", str(store)], check=True)
    after = os.times()
    cpu = after.children_user + after.children_system - (
        before.children_user + before.children_system)  # fmt: skip
    return {"wall_s": time.perf_counter() - started, "cpu_s": cpu, "bytes": path.stat().st_size,
            "mb_per_s": store.stat().st_size / 1e6 / (time.perf_counter() - started)}  # fmt: skip


def _ask(store: Path) -> dict[str, Any]:
    """Return how long everything on the screen takes, opening the files included."""
    prices = load_prices()
    took: dict[str, Any] = {}

    def timed(name: str, ask: Callable[[], object]) -> None:
        begun = time.perf_counter()
        ask()
        took[name] = round((time.perf_counter() - begun) * 1000, 2)

    zone, nothing = ZoneInfo("Europe/Berlin"), parse("", now=NEWEST)
    started = time.perf_counter()
    database = open_database(store, write=False)
    with open_rollups(database, prices, seconds=0.1) as stats:
        took["open"] = round((time.perf_counter() - started) * 1000, 2)
        for by in _ASKED:
            timed(by, partial(
                figures, database, stats, by=by, span=ALWAYS, query=nothing, zone=zone,
                stack=None if by == "tool" else "agent", limit=None if by == "day" else 24))
        timed("cache share", partial(
            cache_share, database, stats, by="day", span=ALWAYS, query=nothing, zone=zone))
        timed("longest turns", partial(
            longest_turns, database, stats, span=ALWAYS, query=nothing))
        took["ms"] = (time.perf_counter() - started) * 1000
    database.close()
    return took


def _follow(store: Path, commits: int) -> list[float]:
    """Return the times from a commit to when its answer is counted in the file, in ms."""
    database = open_database(store)
    write = database.connection.execute
    process = subprocess.Popen([sys.executable, "-m", "store.stats", str(store)])
    session = "ses_follow"
    found = []
    write("INSERT OR IGNORE INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
          " VALUES (?, 'bench', '{}', 9, 9)", (session,))
    try:
        for number in range(-1, commits):
            message = f"msg_follow{number}"
            write("BEGIN IMMEDIATE")
            write("INSERT INTO chat_messages VALUES (?, ?, 'assistant',"
                  " '{\"usage\":{\"input\":1}}', 9, 9)", (message, session))
            write("INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, 9)",
                  (session, message))
            write("COMMIT")
            started = time.perf_counter()
            while _counted(store, session) != number + 2:
                if time.perf_counter() - started > _WAIT_S:
                    raise RuntimeError("an answer was not counted")
                time.sleep(0.002)
            if number >= 0:
                found.append((time.perf_counter() - started) * 1000)
            time.sleep(0.013 * (number % 11))
    finally:
        write("DELETE FROM chat_sessions WHERE id = ?", (session,))
        write("INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, NULL, 9)",
              (session,))
        process.terminate()
        process.wait()
        database.close()
    return found


def _counted(store: Path, session: str) -> int:
    file = STATISTICS.open_for_reading(STATISTICS.path(store))
    if file is None:
        return 0
    try:
        (answers,) = file.execute(
            "SELECT sum(answers) FROM spent JOIN session ON number = session WHERE id = ?",
            (session,)).fetchone()
        return int(answers or 0)
    finally:
        file.close()
