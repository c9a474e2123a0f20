"""Eight recorders, one sync and two browsers on one store of PostgreSQL, for a minute.

    python -m tests.bench.load_run [--seconds 60] [--recorders 8] [--rate 200]

Each recorder is a process that is fed chunks at a steady rate. ``backscroll sync --watch`` brings
a tree of session files, some of which grow by a line all the time. Two processes read what a
browser reads, and two browsers run on terminals. Each has a session of the system to itself, as if
all had terminals of their own: Linux shares the processors among sessions first, then among what
runs in each. All begin once the processes have started, and the readers have read each thing once,
as the browsers have; the sync is started then. At the end every chunk that was acknowledged and
every line must be in the store, and no read may have taken more than 50 ms. The exit code is 1
where something is lost.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from store.engine.database import Database
from store.engine.opening import open_target
from store.queries import activities, list_keys, listing, windows
from store.recorder.recorder import Recorder
from store.store import Store
from tests.bench import claude_corpus
from tests.bench.app import STARTED
from tests.bench.record_stream import Chunk, chunks
from tests.bench.report import p95, processor_ms
from tests.bench.scale_bench import children, last_row
from tests.bench.server_bench import filled
from tests.bench.terminal import Terminal, clean_environment

SESSIONS = 1_000
FILES, ROWS, GROWING, LINES_A_S = 60, 100, 8, 8
"""Of the tree that the sync brings: its files, those that grow, and lines a second of them all."""
_TICK_S = 0.02
READS = ("list", "rows", "open")
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
        await asyncio.to_thread(_told_to_go)
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
    spent: dict[str, list[tuple[float, float, float]]] = {name: [] for name in READS}
    query = listing.ListQuery()

    def newest(db: Database) -> list[str]:
        return [row[0] for row in db.connection.execute(
            "SELECT id FROM chat_sessions ORDER BY updated_at DESC, id LIMIT 40").fetchall()]

    def backend(db: Database) -> int:
        return int(db.connection.execute("SELECT pg_backend_pid()").fetchone()[0])

    async with await Store.open(url) as store:
        ids = await store.read(newest)
        now = store.clock()
        # As the browsers, which show a list and a session before the load begins.
        await store.read(list_keys.all_keys, query)
        await store.read(activities.rows, [], ids, now)
        await store.read(windows.window_at_end, ids[0])
        both = os.getpid(), await store.read(backend)
        await asyncio.to_thread(_told_to_go)
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


def left_out(url: str, files: Sequence[Path]) -> list[str]:
    """Return which files' sessions lack messages on the server.

    Args:
        url: The store.
        files: Of Claude Code; each row with a text of its own is part of a message.
    """
    db, found = open_target(url), list[str]()
    for file in files:
        written = file.read_bytes().count(b'"text":"One more line')
        (count,) = db.connection.execute(
            "SELECT count(*) FROM chat_parts p JOIN chat_sessions s ON s.id = p.session_id"
            f" WHERE {db.form.source_id('s')} = ? AND CAST(p.data_json AS text) LIKE ?",
            (file.stem, '%"One more line%')).fetchone()
        if count != written:
            found.append(f"{file.stem}: {count} of {written} lines")
    db.close()
    return found


class _Growing(threading.Thread):
    """Appends lines to session files until it is told to stop."""

    def __init__(self, files: Sequence[Path]) -> None:
        super().__init__(daemon=True)
        self._files, self._ended, self.lines = files, threading.Event(), 0

    def run(self) -> None:
        last = {file: last_row(file) for file in self._files}
        while not self._ended.wait(1 / LINES_A_S):
            file = self._files[self.lines % len(self._files)]
            line = claude_corpus.next_line(last[file], self.lines)
            last[file] = line.rstrip(b"\n")
            with file.open("ab") as out:
                out.write(line)
            self.lines += 1

    def end(self) -> None:
        self._ended.set()
        self.join()


def _cpu_s(*processes: int) -> float:
    """Return what processes have spent, with those that they started; ended ones too."""
    ticks = 0
    for one in processes:
        for each in (one, *children(one)):
            with contextlib.suppress(OSError):  # It has ended meanwhile.
                fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
                # Of the process, and of children that it has waited for.
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _server_of(url: str) -> int:
    """Return the process whose children are the server's."""
    db = open_target(url)
    (backend,) = db.connection.execute("SELECT pg_backend_pid()").fetchone()
    parent = Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1]
    db.close()
    return int(parent)


@contextlib.contextmanager
def _browsing(url: str, count: int, environment: Mapping[str, str]) -> Iterator[list[Terminal]]:
    """Run browsers on terminals that take what comes."""
    ended = threading.Event()
    shown = [Terminal([sys.executable, "-c", STARTED, "--store", url], environment)
             for _ in range(count)]

    def take(terminal: Terminal) -> None:
        while not ended.is_set():
            terminal.pump(0.1)
            terminal.log.clear()

    for each in shown:
        each.until(b" sessions")
        each.quiet(1.0)
    threads = [threading.Thread(target=take, args=(each,)) for each in shown]
    for thread in threads:
        thread.start()
    try:
        yield shown
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        for each in shown:
            each.close()


@contextlib.contextmanager
def _watching(syncing: Sequence[str], environment: Mapping[str, str]) -> Iterator[int]:
    """Run a sync that watches; yield its process."""
    watcher = subprocess.Popen([*syncing, "--watch"], env=environment,
                               stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    try:
        yield watcher.pid
    finally:
        watcher.send_signal(signal.SIGINT)
        watcher.wait()


def run(recorders: int, rate: int, seconds: float, *, browsers: int) -> int:
    """Run everything; return the exit code.

    Args:
        recorders: How many.
        rate: Chunks a second of each.
        seconds: How long.
        browsers: How many.
    """
    with (tempfile.TemporaryDirectory() as home, clean_environment() as environment,
          patch.dict(os.environ, XDG_DATA_HOME=home), filled(SESSIONS) as url):
        tree = Path(home) / "tree"
        tree.mkdir()
        claude_corpus.make(tree, FILES, ROWS)
        files = sorted(tree.rglob("*.jsonl"))
        syncing = [sys.executable, "-m", "tui", "sync", "--store", url, str(tree)]
        growing = _Growing(files[:GROWING])
        server = _server_of(url)
        before = _cpu_s(server)
        with _browsing(url, browsers, environment) as shown:
            jobs = [_job(environment, "record", url, str(seed), str(rate), str(seconds))
                    for seed in range(1, recorders + 1)]
            readers = [_job(environment, "read", url, str(seconds)) for _ in range(2)]
            _let_go([*jobs, *readers])
            with _watching(syncing, environment) as watcher:
                growing.start()
                told = [_answer(job) for job in jobs]
                read_s = [_answer(job) for job in readers]
                growing.end()
                spent = {
                    "recorders": sum(each["cpu_s"] for each in told),
                    "readers": sum(each["cpu_s"] for each in read_s),
                    "browsers": _cpu_s(*(each.process.pid for each in shown)),
                    "sync": _cpu_s(watcher), "server": _cpu_s(server) - before,
                }  # fmt: skip
            alive = sum(each.process.poll() is None for each in shown)
        subprocess.run(syncing, check=True, env=environment, stdout=subprocess.DEVNULL)
        gone = [*lost(url, told, rate, seconds), *left_out(url, files)]
    print(f"{recorders} recorders, {rate} chunks a second, {seconds:g} s; load {os.getloadavg()}")
    print(f"fed: {sum(one['fed'] for one in told):,} chunks; lost: {gone or 'nothing'}; last flush"
          f" {max(one['flush_s'] for one in told) * 1_000:.0f} ms;"
          f" latest feed {max(one['late_s'] for one in told) * 1_000:.0f} ms behind its time")
    print(f"brought by the sync: {FILES} files, and {growing.lines} lines that came meanwhile;"
          f" browsers alive: {alive} of {browsers}")
    print("CPU, s: " + ", ".join(f"{kind} {one:.1f}" for kind, one in spent.items())
          + f"; all {sum(spent.values()):.1f}")  # fmt: skip
    for name in READS:
        for place, words in enumerate(READ):
            values = [each[place] for one in read_s for each in one[name]]
            print(f"read {name}{words}: {len(values)} times, median"
                  f" {statistics.median(values):.1f}, p95 {p95(values):.1f},"
                  f" most {max(values):.1f} ms")
    return 1 if gone else 0


def _job(environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "tests.bench.load_run", "--job", *arguments],
                            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True, start_new_session=True)  # fmt: skip


def _told_to_go() -> None:
    """Say that this job could begin, and wait until all can."""
    print("ready", flush=True)
    sys.stdin.readline()


def _let_go(jobs: Sequence[subprocess.Popen[str]]) -> None:
    """Have jobs begin at once, so that no read waits for processes that are being started."""
    for job in jobs:
        assert job.stdout is not None
        job.stdout.readline()
    for job in jobs:
        assert job.stdin is not None
        print("go", file=job.stdin, flush=True)


def _answer(job: subprocess.Popen[str]) -> Any:
    out, _ = job.communicate()
    if job.returncode:
        raise RuntimeError(f"a job ended with {job.returncode}")
    return json.loads(out)


def _work(kind: str, url: str, *rest: str) -> dict[str, Any]:
    if kind == "record":
        found = asyncio.run(record(url, int(rest[0]), int(rest[1]), float(rest[2])))
    else:
        found = asyncio.run(read(url, float(rest[0])))
    return found | {"cpu_s": time.process_time()}


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
