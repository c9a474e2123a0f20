"""Eight recorders, one sync and two browsers on one store of PostgreSQL, for a minute.

    python -m tests.bench.load_run [--seconds 60] [--recorders 8] [--rate 200]

Each recorder is a process that is fed chunks at a steady rate; two more read all the time what a
browser reads, and two browsers run on terminals. At the end every chunk that was acknowledged must
be in the store, and no read may have taken more than 50 ms. The exit code is 1 where something is
lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from store.engine.database import Database
from store.engine.opening import open_target
from store.queries import activities, list_keys, listing, windows
from store.recorder.recorder import Recorder
from store.store import Store
from tests.bench import claude_corpus
from tests.bench.app import STARTED
from tests.bench.record_stream import Chunk, chunks
from tests.bench.report import p95, processor_ms
from tests.bench.server_bench import filled
from tests.bench.terminal import Terminal, clean_environment

SESSIONS = 1_000
FILES, ROWS = 60, 100
"""Of the tree that the sync reads, again and again into the same sessions."""
_TICK_S = 0.02
READ = ("", ", on a processor", ", waiting for something else")
"""Of each read by the process and its backend: all, what it worked, what no processor explains."""


def said(made: list[Chunk]) -> str:
    """Return all text of a stream."""
    return "".join(chunk["delta"] for chunk in made if chunk["type"] == "text-delta")


async def record(url: str, seed: int, rate: int, seconds: float) -> dict[str, Any]:
    """Record at a rate; return the session and how many chunks were acknowledged.

    Args:
        url: The store.
        seed: Of the stream.
        rate: Chunks a second.
        seconds: How long.
    """
    made = chunks(int(rate * seconds), seed)
    async with await Store.open(url) as store:
        recorder = await Recorder.open(store, agent="load", workspace=f"/load/{seed}")
        started, fed, late = time.monotonic(), 0, 0.0
        while fed < len(made):
            due = min(len(made), int((time.monotonic() - started) * rate) + 1)
            for chunk in made[fed:due]:
                await recorder.feed(chunk)
            fed = due
            late = max(late, time.monotonic() - started - fed / rate)
            await asyncio.sleep(_TICK_S)
        before = time.monotonic()
        await recorder.flush()
        flushed = time.monotonic() - before
        await recorder.close()
        return {"session": recorder.session_id, "fed": fed, "seed": seed,
                "late_s": late, "flush_s": flushed}  # fmt: skip


async def read(url: str, seconds: float) -> dict[str, Any]:
    """Read what a browser reads; return for each read the milliseconds that ``READ`` names."""
    spent = dict[str, list[tuple[float, float, float]]](list=[], rows=[], open=[])
    query = listing.ListQuery()

    def newest(db: Database) -> list[str]:
        return [row[0] for row in db.connection.execute(
            "SELECT id FROM chat_sessions ORDER BY updated_at DESC, id LIMIT 40").fetchall()]

    def backend(db: Database) -> int:
        return int(db.connection.execute("SELECT pg_backend_pid()").fetchone()[0])

    async with await Store.open(url) as store:
        ids = await store.read(newest)
        now = store.clock()
        await store.read(list_keys.all_keys, query)
        both = os.getpid(), await store.read(backend)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for name, work in (
                ("list", store.read(list_keys.all_keys, query)),
                ("rows", store.read(activities.rows, [], ids, now)),
                ("open", store.read(windows.window_at_end, ids[0])),
            ):
                (ran, queued), started = processor_ms(*both), time.perf_counter()
                await work
                took = (time.perf_counter() - started) * 1_000
                now_ran, now_queued = processor_ms(*both)
                ran, queued = now_ran - ran, now_queued - queued
                spent[name].append((took, ran, max(took - ran - queued, 0.0)))
            ids = await store.read(newest)
            await asyncio.sleep(0.1)
    return spent


def sync(url: str, tree: str, seconds: float) -> dict[str, Any]:
    """Sync a tree whose files grow, until the time is over; return how often."""
    done, until = 0, time.monotonic() + seconds
    while time.monotonic() < until or not done:
        subprocess.run([sys.executable, "-m", "tui", "sync", "--store", url, tree], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        done += 1
        for file in Path(tree).rglob("*.jsonl"):
            os.utime(file)
    return {"syncs": done}


def lost(url: str, told: list[dict[str, Any]], rate: int, seconds: float) -> list[str]:
    """Return what is not in the store though it was acknowledged.

    Args:
        url: The store.
        told: What the recorders said.
        rate: Chunks a second.
        seconds: How long they ran.
    """
    db, found = open_target(url), list[str]()
    for one in told:
        made = chunks(int(rate * seconds), one["seed"])[: one["fed"]]
        rows = db.connection.execute(
            "SELECT p.data_json FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id"
            " WHERE p.session_id = ? AND p.type = 'text' AND m.role = 'assistant'"
            ' ORDER BY m.created_at, m.id, p."index"', (one["session"],)).fetchall()
        kept = "".join(json.loads(row[0])["text"] for row in rows)
        if kept != said(made):
            found.append(f"{one['session']}: {len(kept)} of {len(said(made))} characters")
    db.close()
    return found


def brought_by_sync(url: str) -> int:
    """Return how many sessions that were read from files are on the server.

    Args:
        url: The store.
    """
    db = open_target(url)
    (count,) = db.connection.execute(
        f"SELECT count(*) FROM chat_sessions s WHERE {db.form.source_kind('s')} IS NOT NULL"
    ).fetchone()
    db.close()
    return int(count)


def run(recorders: int, rate: int, seconds: float, *, browsers: int) -> int:
    """Run everything; return the exit code.

    Args:
        recorders: How many.
        rate: Chunks a second of each.
        seconds: How long.
        browsers: How many.
    """
    with tempfile.TemporaryDirectory() as home, filled(SESSIONS) as url:
        os.environ["XDG_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = home
        tree = Path(home) / "tree"
        tree.mkdir()
        claude_corpus.make(tree, FILES, ROWS)
        with clean_environment() as environment:
            shown = [Terminal([sys.executable, "-c", STARTED, "--store", url], environment)
                     for _ in range(browsers)]
            jobs = [_job("record", url, str(seed), str(rate), str(seconds))
                    for seed in range(1, recorders + 1)]
            readers = [_job("read", url, str(seconds)) for _ in range(2)]
            syncing = _job("sync", url, str(tree), str(seconds))
            told = [_answer(job) for job in jobs]
            read_s = [_answer(job) for job in readers]
            synced = _answer(syncing)
            alive = sum(each.process.poll() is None for each in shown)
            for each in shown:
                each.process.kill()
                each.process.wait()
        gone = lost(url, told, rate, seconds)
        brought = brought_by_sync(url)
    print(f"{recorders} recorders, {rate} chunks a second, {seconds:g} s; load {os.getloadavg()}")
    print(f"fed: {sum(one['fed'] for one in told):,} chunks; lost: {gone or 'nothing'}; last flush"
          f" {max(one['flush_s'] for one in told) * 1_000:.0f} ms;"
          f" latest feed {max(one['late_s'] for one in told) * 1_000:.0f} ms behind its time")
    print(f"syncs: {synced['syncs']}, with {brought} sessions on the server of {FILES} files;"
          f" browsers alive: {alive} of {browsers}")
    for name in read_s[0]:
        for place, words in enumerate(READ):
            values = [each[place] for one in read_s for each in one[name]]
            print(f"read {name}{words}: {len(values)} times, median"
                  f" {statistics.median(values):.1f}, p95 {p95(values):.1f},"
                  f" most {max(values):.1f} ms")
    return 1 if gone else 0


def _job(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "tests.bench.load_run", "--job", *arguments],
                            stdout=subprocess.PIPE, text=True)  # fmt: skip


def _answer(job: subprocess.Popen[str]) -> Any:
    out, _ = job.communicate()
    if job.returncode:
        raise RuntimeError(f"a job ended with {job.returncode}")
    return json.loads(out)


def _work(kind: str, url: str, *rest: str) -> dict[str, Any]:
    if kind == "record":
        return asyncio.run(record(url, int(rest[0]), int(rest[1]), float(rest[2])))
    if kind == "read":
        return asyncio.run(read(url, float(rest[0])))
    return sync(url, rest[0], float(rest[1]))


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--recorders", type=int, default=8)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--browsers", type=int, default=2)
    parser.add_argument("--job", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(_work(*options.job)))
        return 0
    return run(options.recorders, options.rate, options.seconds, browsers=options.browsers)


if __name__ == "__main__":
    sys.exit(main())
