"""How long a host's event loop stands still while a large output is recorded and read.

``python -m tests.bench --only loop``. A task wakes every millisecond; its longest delay beyond
that is the figure. The floor is the same beside a thread of plain Python, which gives the
interpreter's lock away as often as it can.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

from store.store import Store
from tests.bench.report import Limits, Line

MEGABYTES = 20
MOST_MS = 10.0
_TICK_S = 0.001


async def longest_delay(work: Callable[[], Awaitable[object]]) -> float:
    """Return the longest delay of a timer while some work is awaited, in milliseconds."""
    longest, stop = 0.0, False

    async def tick() -> None:
        nonlocal longest
        while not stop:
            began = time.perf_counter()
            await asyncio.sleep(_TICK_S)
            longest = max(longest, time.perf_counter() - began - _TICK_S)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(_TICK_S * 5)
    longest = 0.0
    await work()
    stop = True
    await ticking
    return longest * 1000


def text_of(size: int) -> str:
    """Return a tool's output as text, with quotes and lines to escape."""
    line = '{"path": "src/main.py", "match": "a line of the output"}\n'
    return line * (size // len(line))


def rows_of(size: int) -> list[dict[str, Any]]:
    """Return a tool's output as JSON: many small objects."""
    return [{"line": number, "text": "a line of the output " * 3} for number in range(size // 90)]


async def record(store: Store, output: object, kept: list[object]) -> tuple[float, float]:
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


async def _floor() -> float:
    return await longest_delay(
        lambda: asyncio.to_thread(_spin, time.perf_counter() + 0.3))


async def _measure(size: int, rounds: int) -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:
        async with Store.open(Path(folder) / "host.db", create=True) as store:
            found: dict[str, list[float]] = {"floor": []}
            kept: list[object] = []
            for kind, output in (("text", text_of(size)), ("rows", rows_of(size))):
                for _ in range(rounds):
                    found["floor"].append(await _floor())
                    written, read = await record(store, output, kept)
                    kept.clear()
                    found.setdefault(f"record {kind}", []).append(written)
                    found.setdefault(f"read {kind}", []).append(read)
    floor = median(found.pop("floor"))
    return [
        Line("loop", f"event loop: {name}, {size >> 20} MB", median(figures), "ms", floor,
             Limits(value=MOST_MS), {"all": figures})
        for name, figures in found.items()
    ]


def loop(quick: bool) -> list[Line]:
    """Measure the delays of an event loop."""
    size, rounds = (1 << 20, 1) if quick else (MEGABYTES << 20, 5)
    return asyncio.run(_measure(size, rounds))
