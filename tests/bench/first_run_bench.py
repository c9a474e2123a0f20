"""Times what a first sync lists, and when: the newest sessions, and all of them."""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from store.system.locations import cache_dir
from tests.bench import claude_corpus
from tests.bench.sync_bench import FULL, QUICK, ROUNDS

LOOK_S = 0.005


def measure(quick: bool) -> dict[str, Any]:
    """Sync a seeded tree into new stores, and look into each while it fills.

    Returns:
        ``files``, ``bytes``; from the start of the process ``first_s`` to the first sessions in
        the store, ``listed_s`` to all of them, ``end_s``. All are medians of the rounds.
    """
    files, rows = QUICK if quick else FULL
    tree = cache_dir() / "bench" / f"claude-{files}x{rows}"
    tree.mkdir(parents=True, exist_ok=True)
    size = claude_corpus.make(tree, files, rows)
    rounds = [_round(tree, files) for _ in range(1 if quick else ROUNDS)]
    result = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    return {"files": files, "bytes": size, **result}


def _round(tree: Path, files: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        store, found = Path(folder) / "store.db", dict[str, float]()
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "store.sync", "--json", "--store", str(store), str(tree)],
            cwd=Path(__file__).parents[2], env={**os.environ, "XDG_CONFIG_HOME": folder},
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        while process.poll() is None:
            time.sleep(LOOK_S)
            count, now = _sessions(store), time.perf_counter() - started
            if count:
                found.setdefault("first_s", now)
            if count >= files:
                found.setdefault("listed_s", now)
                break
        if process.wait():
            raise RuntimeError(f"the sync ended with code {process.returncode}")
        end = time.perf_counter() - started
        return {"first_s": end, "listed_s": end, **found, "end_s": end}


def _sessions(store: Path) -> int:
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection,
    ):
        (count,) = connection.execute("SELECT count(*) FROM chat_sessions").fetchone()
        return int(count)
    return 0


if __name__ == "__main__":
    print(json.dumps(measure("--quick" in sys.argv), indent=2))
