"""How long a host's event loop stands still while a large output is recorded and read.

``python -m tests.bench --only loop``. A task wakes every millisecond; its longest delay beyond
that is the figure. The floor is the same beside a thread of plain Python, which is interrupted
every 5 ms: twice before the task runs. ``details`` has the most CPU that the process used between
two wakings, which other jobs do not add to.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from store.store import Store
from tests.bench.report import Limits, Line
from tests.sources import postgres_server

MEGABYTES = 20
MOST_MS = 10.0
_TICK_S = 0.001


@dataclass(slots=True)
class Delay:
    """What a timer waited beyond its time, at most: by the clock and in CPU time, in ms."""

    wall: float = 0.0
    cpu: float = 0.0


async def longest_delay(work: Callable[[], Awaitable[object]]) -> Delay:
    """Return the longest delay of a timer while some work is awaited."""
    longest, stop = Delay(), False

    async def tick() -> None:
        while not stop:
            began, spent = time.perf_counter(), time.process_time()
            await asyncio.sleep(_TICK_S)
            longest.cpu = max(longest.cpu, (time.process_time() - spent) * 1000)
            longest.wall = max(longest.wall, (time.perf_counter() - began - _TICK_S) * 1000)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(_TICK_S * 5)
    longest.wall = longest.cpu = 0.0
    await work()
    stop = True
    await ticking
    return longest


def text_of(size: int) -> str:
    """Return a tool's output as text, with quotes and lines to escape."""
    line = '{"path": "src/main.py", "match": "a line of the output"}\n'
    return line * (size // len(line))


def cjk_of(size: int) -> str:
    """Return a tool's output as text of three bytes a character."""
    line = "工具的输出有一行又一行的文字\n"
    return line * (size // len(line.encode()))


def rows_of(size: int) -> list[dict[str, Any]]:
    """Return a tool's output as JSON: many small objects."""
    return [{"line": number, "text": "a line of the output " * 3} for number in range(size // 90)]


def nested_of(size: int) -> list[dict[str, Any]]:
    """Return a tool's output as JSON: objects with arrays and objects in them."""
    return [{"line": number, "tags": ["a", "line"], "at": {"x": number}}
            for number in range(size // 55)]  # fmt: skip


async def record(store: Store, output: object, kept: list[object]) -> tuple[Delay, Delay]:
    """Return the longest delays of recording an output, and of reading its session.

    Args:
        store: The store.
        output: The output.
        kept: Takes what was read: to free many objects is one step of the interpreter, which is
            the host's.
    """
    session = await store.create_session("bench")

    async def recorded() -> None:
        async with store.recorder(session) as recorder:
            await recorder.user_message("Search")
            await recorder.feed({"type": "start"})
            await recorder.feed({"type": "tool-input-available", "toolCallId": "c",
                                 "toolName": "grep", "input": {}})
            await recorder.feed({"type": "tool-output-available", "toolCallId": "c",
                                 "output": output})
            await recorder.feed({"type": "finish"})

    async def read() -> None:
        kept.append(await store.messages(session))

    return await longest_delay(recorded), await longest_delay(read)


def _spin(until: float) -> None:
    while time.perf_counter() < until:
        pass


async def _floor() -> Delay:
    return await longest_delay(
        lambda: asyncio.to_thread(_spin, time.perf_counter() + 0.3))


async def _measure(target: str, where: str, size: int, rounds: int) -> list[Line]:
    """Return the lines of one store.

    Args:
        target: A file or URL.
        where: What the lines call it.
        size: Bytes of an output.
        rounds: How many of each kind of output.
    """
    async with Store.open(target, create=True) as store:
        found: dict[str, list[Delay]] = {"floor": []}
        kept: list[object] = []
        for kind, output in (
            ("text", text_of(size)), ("cjk", cjk_of(size)),
            ("rows", rows_of(size)), ("nested", nested_of(size)),
        ):
            for _ in range(rounds):
                found["floor"].append(await _floor())
                written, read = await record(store, output, kept)
                kept.clear()
                found.setdefault(f"record {kind}", []).append(written)
                found.setdefault(f"read {kind}", []).append(read)
    floor = median(delay.wall for delay in found.pop("floor"))
    return [
        Line("loop", f"event loop: {where}{name}, {size >> 20} MB",
             median(each.wall for each in delays), "ms", floor, Limits(value=MOST_MS),
             {"all": [each.wall for each in delays], "cpu_ms": [each.cpu for each in delays]})
        for name, delays in found.items()
    ]


def loop(quick: bool) -> list[Line]:
    """Measure the delays of an event loop: with a file, and with a server where one is here."""
    size, rounds = (1 << 20, 1) if quick else (MEGABYTES << 20, 5)
    with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, XDG_DATA_HOME=home):
        lines = asyncio.run(_measure(str(Path(home) / "host.db"), "", size, rounds))
        programs = postgres_server.programs()
        if programs is not None:
            server = postgres_server.Server(programs)
            try:
                lines += asyncio.run(
                    _measure(server.database().url, "PostgreSQL, ", size, rounds))
            finally:
                server.remove()
    return lines
