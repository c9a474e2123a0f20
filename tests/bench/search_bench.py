"""Times the search index and searches on a store of a million parts.

Searches run in a fresh process, as the screen does them: by ``Searcher``, to the update that
has the first 50 hits. Every needle is searched for several times in turn, each time as a new
query, after the store's pages have been read once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from store.search.index import sidecar
from store.search.index.reading import open_index
from tests.bench.report import Limits, Line, p95
from tests.bench.search_store import needles, search_store, texts

FULL_PARTS, QUICK_PARTS = 1_000_000, 5_000
ROUNDS, COMMITS = 40, 40
PAGE = 50
_SESSION, _MESSAGE, _WORD = "ses_follow", "msg_follow{}", "followword{}x"
_WAIT_S = 60.0


def search(quick: bool) -> list[Line]:
    """Building the index, following a writer, and the first hits of each kind of needle."""
    parts = QUICK_PARTS if quick else FULL_PARTS
    store = search_store(parts)
    size = sum(len(text.encode("utf-8", "replace")) for text in texts(store))
    built = _build(store)
    lines = [
        Line("search", f"building the search index of {parts:,} parts, per MB of text",
             built["wall_s"] / size * 1e9, "ms", None, Limits(value=200),
             built | {"text_bytes": size, "mb_per_s": size / 1e6 / built["wall_s"]}),
        Line("search", "size of the search index, per byte of text", built["bytes"] / size,
             "bytes", None, Limits(value=0.5)),
        Line("search", "commit to its message in the search index, p95",
             p95(_follow(store, 3 if quick else COMMITS)), "ms", None, Limits(value=1000)),
    ]  # fmt: skip
    told = json.loads(subprocess.run(
        [sys.executable, "-m", "tests.bench.search_bench", str(store), str(parts),
         "2" if quick else str(ROUNDS)],
        check=True, capture_output=True, text=True,
    ).stdout)  # fmt: skip
    for kind, found in told["needles"].items():
        lines.append(Line("search", f"first {PAGE} hits of {kind}, p95", p95(found["ms"]), "ms",
                          None, Limits(value=50), found))  # fmt: skip
    lines.append(Line("search", "memory (RSS) that these searches add", told["added_mb"], "MB",
                      None, Limits(value=40), {"before_mb": told["before_mb"]}))  # fmt: skip
    return lines


def _build(store: Path) -> dict[str, Any]:
    path = sidecar.index_path(store)
    sidecar.remove_files(path)
    started, before = time.perf_counter(), os.times()
    process = subprocess.Popen(indexer(store, "--once"))
    first = None
    while process.poll() is None:
        if first is None and path.exists():
            index = open_index(store)
            if index is not None:
                with contextlib.closing(index):
                    first = time.perf_counter() - started if index.coverage().messages else None
        time.sleep(0.05)
    if process.returncode:
        raise RuntimeError(f"the indexer ended with code {process.returncode}")
    after = os.times()
    cpu = after.children_user + after.children_system - (
        before.children_user + before.children_system)  # fmt: skip
    return {"wall_s": time.perf_counter() - started, "cpu_s": cpu, "first_block_s": first,
            "bytes": path.stat().st_size}  # fmt: skip


def indexer(store: Path, *options: str) -> list[str]:
    """Return the command line of the indexer of a store."""
    return [sys.executable, "-m", "store.search.index", *options, str(store)]


def _follow(store: Path, commits: int) -> list[float]:
    """Return the times from a commit to when the message is found in the index, in ms."""
    from store.engine.database import open_database

    database = open_database(store)
    write = database.connection.execute
    process = subprocess.Popen(indexer(store))
    found = []
    try:
        with _added_session(write):
            for number in [-1, *range(commits)]:  # The first waits for the indexer's start.
                index = open_index(store)
                assert index is not None
                message, word = _MESSAGE.format(number), _WORD.format(number)
                data = json.dumps({"type": "text", "text": f"says {word}"})
                write("BEGIN IMMEDIATE")
                write("INSERT INTO chat_messages VALUES (?, ?, 'user', '{}', 9, 9)",
                      (message, _SESSION))
                write("INSERT INTO chat_parts VALUES (?, ?, ?, 0, 'text', ?, NULL, NULL, 9, 9)",
                      (message, message, _SESSION, data))
                write("INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, 9)",
                      (_SESSION, message))
                write("COMMIT")
                started = time.perf_counter()
                while not any(index.candidates([word])):
                    if time.perf_counter() - started > _WAIT_S:
                        raise RuntimeError("a message was not indexed")
                    time.sleep(0.002)
                if number >= 0:
                    found.append((time.perf_counter() - started) * 1000)
                index.close()
                time.sleep(0.013 * (number % 11))
    finally:
        process.terminate()
        process.wait()
        database.close()
    return found


@contextlib.contextmanager
def _added_session(write: Any) -> Iterator[None]:
    """Have a session in the store that is removed afterwards."""
    write("INSERT OR IGNORE INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
          " VALUES (?, 'bench', '{}', 9, 9)", (_SESSION,))
    try:
        yield
    finally:
        write("DELETE FROM chat_sessions WHERE id = ?", (_SESSION,))
        write("INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, NULL, 9)",
              (_SESSION,))


async def _searches(store: Path, parts: int, rounds: int) -> dict[str, Any]:
    from store.language.query import parse
    from store.search.searching import Searcher

    searcher = await Searcher.open(store)
    wanted = needles(parts)
    before = _rss_mb()
    found: dict[str, dict[str, Any]] = {kind: {"ms": [], "hits": 0} for kind in wanted}
    for number in range(-1, rounds):
        for kind, needle in wanted.items():
            started = time.perf_counter()
            query = parse(needle, now=int(time.time() * 1000), zone=None)
            async for update in searcher.search(query, limit=PAGE, counting=False):
                if update.ready:
                    found[kind]["hits"] = len(update.page.hits)
                    break
            if number >= 0:
                found[kind]["ms"].append((time.perf_counter() - started) * 1000)
    added = _rss_mb() - before
    await searcher.close()
    return {"needles": found, "before_mb": before, "added_mb": added}


def _rss_mb() -> float:
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1000
    raise RuntimeError("no Rss in smaps_rollup")


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_searches(Path(sys.argv[1]), *map(int, sys.argv[2:4])))))
