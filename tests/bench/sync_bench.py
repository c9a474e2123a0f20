"""Times sync of a Claude Code tree against its floor, and a sync with nothing to do."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from store.locations import cache_dir
from tests.bench import claude_corpus

FULL = (2_000, 100)
QUICK = (100, 100)
ROUNDS = 3


def measure(quick: bool) -> dict[str, Any]:
    """Sync a seeded tree in fresh processes, each time beside its floor.

    Returns:
        ``files``, ``messages`` (rows with a message), ``bytes``; ``sync_s`` (the whole
        process), ``floor_s`` (without the start of its process) and their ``ratio``, each
        a median; ``again_s`` (the whole process) and ``again_ms_per_1000_files`` (listing
        and comparing alone, as the sync itself tells it).
    """
    files, rows = QUICK if quick else FULL
    tree = cache_dir() / "bench" / f"claude-{files}x{rows}"
    tree.mkdir(parents=True, exist_ok=True)
    size = claude_corpus.make(tree, files, rows)
    syncs, floors, agains, listings = [], [], [], []
    for _ in range(1 if quick else ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store.db"
            syncs.append(_sync(store, tree)[0])
            seconds, summary = _sync(store, tree)
            if summary["read"] or summary["units"] != files:
                raise RuntimeError(f"a second sync did not find {files} known files: {summary}")
            agains.append(seconds)
            listings.append(summary["seconds"])
            floors.append(_floor(tree, store, Path(folder) / "floor.db"))
    sync_s, floor_s = statistics.median(syncs), statistics.median(floors)
    return {
        "files": files,
        "messages": files * rows,
        "bytes": size,
        "sync_s": sync_s,
        "floor_s": floor_s,
        "ratio": sync_s / floor_s,
        "again_s": statistics.median(agains),
        "again_ms_per_1000_files": statistics.median(listings) * 1_000_000 / files,
    }


def _sync(store: Path, tree: Path) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    told = _run("store.sync", "--json", "--store", str(store), str(tree))
    seconds = time.perf_counter() - started
    summary: dict[str, Any] = json.loads(told.splitlines()[-1])
    return seconds, summary


def _floor(tree: Path, store: Path, target: Path) -> float:
    return float(_run("tests.bench.sync_floor", str(tree), str(store), str(target)))


def _run(module: str, *arguments: str) -> str:
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "XDG_CONFIG_HOME": home},
            check=True,
            capture_output=True,
            text=True,
        )
    return done.stdout


if __name__ == "__main__":
    if "--fresh" in sys.argv:
        shutil.rmtree(cache_dir() / "bench", ignore_errors=True)
    print(json.dumps(measure("--quick" in sys.argv), indent=2))
