"""Counts the bytes that a terminal gets: at the start, for each key, and while nothing happens.

They do not depend on the machine: a slow link takes as long as there are bytes.
"""

from __future__ import annotations

import shutil
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

from tests.bench import app
from tests.bench.browse_bench import FOOTER
from tests.bench.long_session import (
    LAST_MESSAGE,
    PARTS_PER_MESSAGE,
    SESSION,
    long_store,
)
from tests.bench.many_sessions import list_store
from tests.bench.report import Limits, Line
from tests.bench.terminal import Terminal, clean_environment

SIZES = ((120, 40), (80, 24), (200, 60), (500, 150))
FOLD, HELP, ESCAPE = b"o", b"?", b"\x1b"
A_KEY, A_STEP = 20_000, 4_000
"""At most for a key, which is a second at 20 kB/s, and for a step in the list."""
RUNNING = "sleep 600"
REST_S = 0.5
PARTS = 2_000
PRESSES = 4


def count_bytes(quick: bool) -> list[Line]:
    """Count the bytes of the start, of keys, and of a call that runs, at each size."""
    lines: list[Line] = []
    for size in SIZES[:1] if quick else SIZES:
        lines += _list(size)
        lines += _transcript(size, 2 if quick else 10)
    return lines


def _line(what: str, size: tuple[int, int], counts: list[int], most: int | None = A_KEY) -> Line:
    return Line(
        "bytes", f"{what}, {size[0]}x{size[1]}", statistics.median(counts), "bytes",
        limits=Limits(value=most), details={"counts": counts},
    )  # fmt: skip


def _of_key(terminal: Terminal, key: bytes, shown: bytes = b"") -> int:
    """Return the bytes that follow a key until nothing more comes.

    Args:
        terminal: At rest.
        key: What is sent.
        shown: Words of the answer.
    """
    terminal.quiet(REST_S)
    before = terminal.received
    terminal.send(key)
    terminal.until(shown)
    terminal.quiet(REST_S)
    return terminal.received - before


def _list(size: tuple[int, int]) -> list[Line]:
    columns, rows = size
    with (
        clean_environment() as environment,
        Terminal(app.command(list_store(1_000)), environment, columns=columns, lines=rows)
        as terminal,
    ):
        terminal.until(FOOTER)
        terminal.quiet(app.SETTLED_S)
        start = terminal.received
        down = [_of_key(terminal, app.DOWN) for _ in range(PRESSES)]
        page = [_of_key(terminal, app.PAGE_DOWN) for _ in range(PRESSES)]
        helped = [_of_key(terminal, HELP, b"esc closes"), _of_key(terminal, ESCAPE)]
    return [
        _line("start", size, [start], None),
        _line("key down in the list, with the session beside it", size, down, A_STEP),
        _line("page down in the list, with the session beside it", size, page),
        _line("help", size, helped[:1]),
        _line("help closed", size, helped[1:]),
    ]


def _transcript(size: tuple[int, int], seconds: int) -> list[Line]:
    columns, rows = size
    kept = long_store(PARTS)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        store = Path(folder) / "bytes.db"
        shutil.copyfile(kept, store)
        with (
            clean_environment() as environment,
            Terminal(app.command(store), environment, columns=columns, lines=rows) as terminal,
        ):
            terminal.until(FOOTER)
            terminal.quiet(app.SETTLED_S)
            terminal.send(app.DOWN)
            opened = [_of_key(terminal, app.ENTER)]
            for key in (app.UP, app.DOWN):
                terminal.send(app.TO_LIST)
                terminal.quiet(REST_S)
                terminal.send(key)
                opened.append(_of_key(terminal, app.ENTER))
            terminal.send(app.TO_TOP)
            paged = [_of_key(terminal, app.PAGE_DOWN) for _ in range(PRESSES)]
            step = [_of_key(terminal, app.DOWN) for _ in range(PRESSES)]
            fold = _folds(terminal)
            terminal.send(app.END)
            terminal.quiet(REST_S)
            _start_call(store)
            terminal.until(RUNNING.encode())
            terminal.rest(2)
            before, started = terminal.received, time.perf_counter()
            terminal.rest(seconds)
            idle = (terminal.received - before) / (time.perf_counter() - started)
    return [
        _line("enter, to the transcript", size, opened),
        _line("page down in the transcript", size, paged),
        _line("key down in the transcript", size, step),
        _line("fold", size, fold),
        _line("a second while a call runs", size, [round(idle)], 500),
    ]


def _folds(terminal: Terminal) -> list[int]:
    """Fold one part after the other; return the bytes of those that can be folded."""
    counts = list[int]()
    while len(counts) < PRESSES:
        terminal.send(app.DOWN)
        if count := _of_key(terminal, FOLD):
            counts.append(count)
    return counts


def _start_call(store: Path) -> None:
    """Write a call without a result at the end of the session."""
    now = time.time_ns() // 1_000_000
    connection = sqlite3.connect(store, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        'INSERT INTO chat_parts(id, message_id, session_id, "index", type, data_json,'
        " tool_call_id, tool_state, created_at, updated_at)"
        " VALUES (?, ?, ?, ?, 'tool-Bash', ?, 'call_runs', 'input-available', ?, ?)",
        (
            "prt_runsrunsrunsrunsrunsruns00", LAST_MESSAGE, SESSION, PARTS_PER_MESSAGE,
            '{"type":"tool-Bash","toolCallId":"call_runs","state":"input-available",'
            f'"input":{{"command":"{RUNNING}"}}}}', now, now,
        ),
    )  # fmt: skip
    connection.execute(
        "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, ?)",
        (SESSION, LAST_MESSAGE, now),
    )
    connection.execute("COMMIT")
    connection.close()
