"""Times each key of a query while it is typed into the search screen, on a pty.

A key is answered by the end of the frame that has its letter in the line of the query. The
next one comes a moment after that, while the search of what was typed so far still runs, as
when somebody types.
"""

from __future__ import annotations

import re
import statistics
import subprocess
from typing import Any

from tests.bench import app
from tests.bench.browse_bench import cpu_seconds
from tests.bench.report import Limits, Line, p95
from tests.bench.search_bench import FULL_PARTS, QUICK_PARTS, indexer
from tests.bench.search_store import needles, search_store
from tests.bench.terminal import Terminal

BETWEEN_KEYS_S = 0.1
"""From an answer to the next key: somebody who types fast."""
ROUNDS = 5
REST_S = 1.0
OPEN, CLEAR = b"S", b"\x15"
EXAMPLE = "re:/time"
"""In what the search screen shows before anything is typed."""


def type_searches(quick: bool) -> list[Line]:
    """Type what is searched for, letter by letter, into the search screen."""
    parts = QUICK_PARTS if quick else FULL_PARTS
    store = search_store(parts)
    subprocess.run(indexer(store, "--once"), check=True, stdout=subprocess.DEVNULL)
    found: dict[str, list[float]] = {}
    spent: list[float] = []
    whole = keys = 0.0
    with app.running(store, " keys") as terminal:
        process = terminal.process.pid
        terminal.send(OPEN)
        terminal.until(EXAMPLE.encode(), frame=True)
        terminal.quiet(app.SETTLED_S)
        for _ in range(1 if quick else ROUNDS):
            for kind, needle in needles(parts).items():
                before = cpu_seconds(process)
                times = found.setdefault(kind, [])
                times += _type(terminal, needle, spent)
                whole += cpu_seconds(process) - before
                keys += len(needle)
                terminal.rest(REST_S)
                terminal.send(CLEAR)
                terminal.until(EXAMPLE.encode(), frame=True)
                terminal.quiet()
    every = [ms for times in found.values() for ms in times]
    details: dict[str, Any] = {
        "keys": len(every), "median_ms": statistics.median(every), "max_ms": max(every),
        "p95_ms_by_kind": {kind: p95(times) for kind, times in found.items()},
        "cpu_median_ms": statistics.median(spent), "cpu_p95_ms": p95(spent),
        "cpu_with_searches_ms": whole / keys * 1000,
    }  # fmt: skip
    return [Line("type", f"key of a search of {parts:,} parts, p95", p95(every), "ms", None,
                 Limits(value=100), details)]  # fmt: skip


def _type(terminal: Terminal, text: str, spent: list[float]) -> list[float]:
    """Type a text; return the times from each key to its frame, in ms.

    Args:
        terminal: Shows the search screen, its query empty.
        text: What to type.
        spent: Gets the CPU time of the process for each key, up to its frame, in ms.
    """
    found, process = [], terminal.process.pid
    for end in range(1, len(text) + 1):
        before = cpu_seconds(process)
        pressed = terminal.send(text[end - 1].encode())
        found.append((terminal.until_match(_in_the_query(text[:end])) - pressed) * 1000)
        spent.append((cpu_seconds(process) - before) * 1000)
        terminal.rest(BETWEEN_KEYS_S)
    return found


def _in_the_query(text: str) -> re.Pattern[bytes]:
    """Return what finds a query in the bytes that draw the second line of the screen."""
    start = rb"\x1b\[2;[1-4]H(?:\x1b\[[\d;]*m|[ S])*"
    return re.compile(start + re.escape(text.encode()))
