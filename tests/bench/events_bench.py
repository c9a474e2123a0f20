"""What the event log costs: sync and recording with it, each beside the same without it."""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from store.engine.database import open_database
from store.events.log import switch_on
from store.events.rebuilding import differing
from store.events.trimming import log_size
from store.system.locations import cache_dir
from tests.bench import record_bench, sync_bench
from tests.bench.corpora import CLAUDE
from tests.bench.report import Limits, Line

FULL, QUICK = (400, 100), (40, 20)
ROUNDS = 3


def events(quick: bool) -> list[Line]:
    """Sync a tree and record a stream, with the log on and off."""
    synced, recorded = _measure_sync(quick), _measure_record(quick)
    what = f"{synced['files']:,} files, {synced['messages']:,} messages"
    return [
        Line("events", f"sync of {what} with the event log", synced["on_s"], "s", synced["off_s"],
             Limits(ratio=2), synced, synced["ratio"]),
        Line("events", "CPU of recording a second of 1,000 chunks with the event log",
             recorded["on_ms"], "ms", recorded["off_ms"], Limits(ratio=1.5), recorded),
        Line("events", f"comparing {synced['events']:,} events with the store",
             synced["compare_s"], "s", details={"size": synced["size"]}),
    ]  # fmt: skip


def _measure_sync(quick: bool) -> dict[str, Any]:
    files, rows = QUICK if quick else FULL
    tree = cache_dir() / "bench" / f"{CLAUDE.kind}-{files}x{rows}"
    tree.mkdir(parents=True, exist_ok=True)
    CLAUDE.make(tree, files, rows)
    found = [_round(tree) for _ in range(1 if quick else ROUNDS)]
    result = {name: statistics.median(one[name] for one in found) for name in found[0]}
    return {"files": files, "messages": files * rows, **result}


def _round(tree: Path) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        off, on = Path(folder) / "off.db", Path(folder) / "on.db"
        with contextlib.closing(open_database(on, create=True)) as database:
            switch_on(database)
        off_s, _ = sync_bench.sync_to(off, tree)
        on_s, _ = sync_bench.sync_to(on, tree)
        with contextlib.closing(open_database(on)) as database:
            count, size = log_size(database)
            started = time.perf_counter()
            odd = differing(database)
            compare_s = time.perf_counter() - started
        if odd:
            raise RuntimeError(f"the log differs from the store: {odd[:3]}")
        return {"off_s": off_s, "on_s": on_s, "ratio": on_s / off_s, "events": count,
                "size": size, "compare_s": compare_s}


def _measure_record(quick: bool) -> dict[str, Any]:
    seconds = record_bench.QUICK_SECONDS if quick else record_bench.FULL_SECONDS
    count = seconds * record_bench.PER_SECOND
    runs: dict[str, list[float]] = {"record": [], "logged": []}
    for _ in range(1 if quick else ROUNDS):
        for way, found in runs.items():
            found.append(record_bench.cpu_of(way, count))
    off, on = (statistics.median(found) * 1_000 / seconds for found in runs.values())
    return {"off_ms": off, "on_ms": on}
