"""Times sync of an agent's tree against its floor, and a sync with nothing to do."""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from store.system.locations import cache_dir
from tests.bench.corpora import CLAUDE, CODEX, OPENCODE, Corpus

FULL = (2_000, 100)
QUICK = (100, 100)
ROUNDS = 3


def measure(quick: bool, corpus: Corpus = CLAUDE) -> dict[str, Any]:
    """Sync a seeded tree in fresh processes, each time beside its floor.

    Args:
        quick: Whether a small tree is synced, once.
        corpus: The tree.

    Returns:
        ``files``, ``messages`` (rows with a message), ``bytes``; ``sync_s`` (the whole
        process, as a user waits for it) and ``floor_s`` (without the start of its
        process); ``ratio``, each sync against the floor right after it; ``sync_cpu_s`` and
        ``floor_cpu_s``, which tell more on a machine that is busy; ``again_s`` (the whole
        process) and ``again_ms_per_1000_files`` (listing and comparing alone, as the sync
        itself tells it). All are medians of the rounds.
    """
    files, rows = QUICK if quick else FULL
    tree = cache_dir() / "bench" / f"{corpus.kind}-{files}x{rows}"
    tree.mkdir(parents=True, exist_ok=True)
    size = corpus.make(tree, files, rows)
    rounds = [_round(tree, files) for _ in range(1 if quick else ROUNDS)]
    result = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    return {"files": files, "messages": files * rows, "bytes": size, **result}


def _round(tree: Path, files: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.db"
        before = _children_cpu()
        sync_s, _ = sync_to(store, tree)
        sync_cpu_s = _children_cpu() - before
        floor_s, floor_cpu_s = floor_of(tree, store, Path(folder) / "floor.db")
        again_s, summary = sync_to(store, tree)
    if summary["read"] or summary["units"] != files:
        raise RuntimeError(f"a second sync did not find {files} known files: {summary}")
    return {
        "sync_s": sync_s,
        "floor_s": floor_s,
        "ratio": sync_s / floor_s,
        "sync_cpu_s": sync_cpu_s,
        "floor_cpu_s": floor_cpu_s,
        "again_s": again_s,
        "again_ms_per_1000_files": summary["seconds"] * 1_000_000 / files,
    }


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def sync_to(store: Path, tree: Path) -> tuple[float, dict[str, Any]]:
    """Sync a tree in a fresh process; return its seconds and what it counted."""
    started = time.perf_counter()
    told = _run("store.sync", "--json", "--store", str(store), str(tree))
    seconds = time.perf_counter() - started
    summary: dict[str, Any] = json.loads(told.splitlines()[-1])
    return seconds, summary


def floor_of(tree: Path, store: Path, target: Path) -> tuple[float, float]:
    """Return clock and processor seconds of the least that syncing a tree has to do."""
    seconds, spent = _run("tests.bench.sync_floor", str(tree), str(store), str(target)).split()
    return float(seconds), float(spent)


def _run(module: str, *arguments: str) -> str:
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=Path(__file__).parents[2],
            env={**os.environ, **with_bytecode(), "XDG_CONFIG_HOME": home},
            check=True,
            capture_output=True,
            text=True,
        )
    return done.stdout


def with_bytecode() -> dict[str, str]:
    """Return variables by which modules are compiled once, as those of an installed program."""
    kept = cache_dir() / "bench" / "bytecode"
    return {"PYTHONPYCACHEPREFIX": str(kept), "PYTHONDONTWRITEBYTECODE": ""}


if __name__ == "__main__":
    if "--fresh" in sys.argv:
        shutil.rmtree(cache_dir() / "bench", ignore_errors=True)
    for tree in (CLAUDE, CODEX, OPENCODE):
        print(tree.kind, json.dumps(measure("--quick" in sys.argv, tree), indent=2))
