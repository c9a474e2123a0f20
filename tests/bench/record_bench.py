"""CPU of recording 1,000 chunks a second, beside parsing them and writing the same rows.

Each run is a process of its own that reads the same stream from a pipe, paced by this
one; its CPU is counted from before the first chunk until everything is saved.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import orjson

from tests.bench.record_stream import Row, chunks, rows_by_transaction

PER_SECOND = 1_000
TRANSACTION_MS = 16
FULL_SECONDS, QUICK_SECONDS = 8, 2
ROUNDS = 3
_INSERT_PART = (
    'INSERT INTO chat_parts(id, message_id, session_id, "index", type, data_json, tool_call_id,'
    " tool_state, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT(id) DO UPDATE SET data_json = excluded.data_json,"
    " tool_state = excluded.tool_state, updated_at = excluded.updated_at"
)


def measure(quick: bool) -> dict[str, Any]:
    """Record a paced stream with the command's recorder and the host's, and with the floor.

    Returns:
        ``chunks``, ``seconds``; ``record_cpu_s`` (what ``backscroll record`` runs) and
        ``floor_cpu_s``, ``host_cpu_s`` (``store.Recorder``), ``host_floor_cpu_s`` (both
        read in an event loop) and ``host_aside_cpu_s`` (that floor, whose rows are written by a
        thread, so that the loop never waits for a disk), each a median; ``ratio``, ``host_ratio``.
    """
    seconds = QUICK_SECONDS if quick else FULL_SECONDS
    count = seconds * PER_SECOND
    found: dict[str, list[float]] = {way: [] for way in _WAYS if way != "logged"}
    for _ in range(1 if quick else ROUNDS):
        for way, runs in found.items():
            runs.append(cpu_of(way, count))
    cpu = {way: statistics.median(runs) for way, runs in found.items()}
    return {
        "chunks": count, "seconds": seconds, **{f"{way}_cpu_s": cpu[way] for way in cpu},
        "ratio": cpu["record"] / cpu["floor"], "host_ratio": cpu["host"] / cpu["host_floor"],
    }


def cpu_of(way: str, count: int) -> float:
    """Return the CPU seconds of one process that is fed at the pace.

    Args:
        way: One of ``_WAYS``.
        count: How many chunks.
    """
    lines = [orjson.dumps(chunk) + b"\n" for chunk in chunks(count)]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.bench.record_bench", way, folder, str(count)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdin is not None and child.stdout is not None
            child.stdout.readline()
            _feed(child.stdin.fileno(), lines)
            child.stdin.close()
            return float(child.stdout.readline())


def _feed(descriptor: int, lines: list[bytes]) -> None:
    start = time.monotonic()
    for number, line in enumerate(lines):
        wait = start + number / PER_SECOND - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        os.write(descriptor, line)


# -- the processes that are measured


def _ready() -> float:
    print("ready", flush=True)
    return time.process_time()


def _record(folder: Path, count: int, *, log: bool = False) -> float:
    from store.engine.database import open_database
    from store.recorder.direct import DirectRecorder
    from store.recorder.procedures import drive
    from store.recorder.recording import Recording

    database = open_database(folder / "store.db", create=True)
    if log:
        from store.events.log import switch_on

        switch_on(database)
    recording = Recording()
    drive(database, recording.start())
    recorder = DirectRecorder(database, recording, lambda line, reason: None)
    start = _ready()
    recorder.pump(sys.stdin.fileno())
    recorder.close()
    return time.process_time() - start


def _host(folder: Path, count: int) -> float:
    return asyncio.run(_record_in_loop(folder))


async def _record_in_loop(folder: Path) -> float:
    from store.recorder import Recorder
    from store.store import Store

    async with await Store.open(folder / "store.db", create=True) as store:
        recorder = await Recorder.open(store)
        reader = await _stdin()
        start = _ready()
        async for line in reader:
            await recorder.feed(orjson.loads(line), size=len(line))
        await recorder.close()
        return time.process_time() - start


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


class _Floor:
    """Parses each line, and writes the rows of 16 ms of them in one transaction."""

    def __init__(self, folder: Path, count: int) -> None:
        from store.engine.database import open_database
        from store.recorder.writing import NewSession, insert_session

        database = open_database(folder / "store.db", create=True)
        insert_session(database, NewSession("ses", "floor", None, "{}", 1))
        self._connection = database.connection
        self._connection.execute(
            "INSERT INTO chat_messages VALUES ('msg', 'ses', 'assistant', '{}', 1, 1)"
        )
        self._each = TRANSACTION_MS * PER_SECOND // 1000
        self._transactions = iter(rows_by_transaction(chunks(count), self._each))
        self._parsed = 0

    def take(self, line: bytes, write: Callable[[Sequence[Row]], object]) -> None:
        orjson.loads(line)
        self._parsed += 1
        if self._parsed % self._each == 0:
            write(next(self._transactions, ()))

    def write(self, rows: Sequence[Row]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(_INSERT_PART, rows)
        self._connection.execute("COMMIT")


def _floor(folder: Path, count: int) -> float:
    floor = _Floor(folder, count)
    descriptor, torn = sys.stdin.fileno(), b""
    start = _ready()
    while data := os.read(descriptor, 1 << 16):
        *lines, torn = (torn + data).split(b"\n")
        for line in lines:
            floor.take(line, floor.write)
    return time.process_time() - start


def _host_floor(folder: Path, count: int) -> float:
    return asyncio.run(_floor_in_loop(_Floor(folder, count)))


async def _floor_in_loop(floor: _Floor) -> float:
    reader = await _stdin()
    start = _ready()
    async for line in reader:
        floor.take(line, floor.write)
    return time.process_time() - start


def _host_aside(folder: Path, count: int) -> float:
    return asyncio.run(_aside_in_loop(_Floor(folder, count)))


async def _aside_in_loop(floor: _Floor) -> float:
    rows: SimpleQueue[Sequence[Row] | None] = SimpleQueue()

    def write() -> None:
        while (some := rows.get()) is not None:
            floor.write(some)

    thread = Thread(target=write)
    thread.start()
    reader = await _stdin()
    start = _ready()
    async for line in reader:
        floor.take(line, rows.put)
    rows.put(None)
    thread.join()
    return time.process_time() - start


def _logged(folder: Path, count: int) -> float:
    return _record(folder, count, log=True)


_WAYS = {
    "record": _record, "logged": _logged, "host": _host, "floor": _floor,
    "host_floor": _host_floor, "host_aside": _host_aside,
}  # fmt: skip

if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(_WAYS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3])), flush=True)
    else:
        print(orjson.dumps(measure("--quick" in sys.argv), option=orjson.OPT_INDENT_2).decode())
