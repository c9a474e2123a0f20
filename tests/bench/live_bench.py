"""Times a commit by another process to its text on the screen, and what waiting costs.

The writer is the bench: one transaction adds one part at the end of the open session. It
writes as a recorder of ours does (a row in ``changes``), or as a host that knows only the
three tables, in a file without anything of ours.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from store.engine.schema import CONTRACT_INDEXES, REQUIRED_COLUMNS
from tests.bench import app
from tests.bench.browse_bench import cpu_seconds, settle
from tests.bench.kept import with_sidecars
from tests.bench.long_session import (
    LAST_MESSAGE,
    PARTS_PER_MESSAGE,
    SESSION,
    SMALL_PARTS,
    last_words,
    long_store,
)
from tests.bench.report import Limits, Line, p95
from tests.bench.terminal import Terminal

POLL_MS = 50
GAP_S = (0.35, 0.65)
"""Between two commits: never a whole number of polls."""
OVER_MS = 30
COUNT_AFTER_S = 2.0
"""After the first write to a session the turns of all its messages are counted once."""


def live(quick: bool) -> list[Line]:
    """Commit parts to a long session that is open at its end, and watch them come.

    The writer has the file open before the app starts, as a host that runs does.
    """
    parts = 2_000 if quick else 100_000
    lines: list[Line] = []
    for own in (True, False):
        with _opened(parts, own=own) as (connection, terminal):
            if own:
                lines.append(_idle(terminal, 2 if quick else 20))
            times = _watch(connection, terminal, 4 if quick else 60, own=own)
        lines.append(
            Line(
                "live", f"commit to screen, {parts:,} parts, {_KIND[own]}, p95",
                p95(times) * 1_000, "ms", float(POLL_MS), Limits(over=OVER_MS),
                {"commits": len(times), "median_ms": statistics.median(times) * 1_000},
            )
        )  # fmt: skip
    return lines


def commit_times(sizes: Sequence[int], commits: int) -> dict[int, list[float]]:
    """Add parts to long sessions that are open side by side, in turn.

    They are added to the kept stores, whose search index is whole, and taken out again.

    Args:
        sizes: How many parts each session has.
        commits: How many parts are added to each.

    Returns:
        The seconds of each commit to its text on the screen, by size.
    """
    found: dict[int, list[float]] = {size: [] for size in sizes}
    stores = [with_sidecars(long_store(size)) for size in sizes]
    with contextlib.ExitStack() as stack:
        shown = [
            (size, *stack.enter_context(_watched(store, size)))
            for size, store in zip(sizes, stores, strict=True)
        ]
        chance = random.Random(11)
        for _, writer, terminal in shown:
            stack.callback(_take_out, writer)
            _seen(writer, terminal, chance, 0, own=True)
            terminal.rest(COUNT_AFTER_S)
            settle(terminal)
        for number in range(1, commits + 1):
            first = number % len(shown)
            for size, writer, terminal in shown[first:] + shown[:first]:
                found[size].append(_seen(writer, terminal, chance, number, own=True))
    return found


def _take_out(writer: sqlite3.Connection) -> None:
    """Remove the parts that were added to a session."""
    now = time.time_ns() // 1_000_000
    writer.execute(_REMOVE)
    writer.execute(_CHANGED, (SESSION, LAST_MESSAGE, now))


_REMOVE = "DELETE FROM chat_parts WHERE id >= 'prt_live' AND id < 'prt_livf'"
_CHANGED = "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, ?)"
_KIND = {True: "our store", False: "a host's file"}


@contextlib.contextmanager
def _opened(parts: int, *, own: bool) -> Iterator[tuple[sqlite3.Connection, Terminal]]:
    kept = long_store(parts)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=kept.parent))
        store = Path(folder) / "live.db"
        shutil.copyfile(kept, store)
        if not own:
            _take_away_what_is_ours(store)
        yield stack.enter_context(_watched(store, parts))


@contextlib.contextmanager
def _watched(store: Path, parts: int) -> Iterator[tuple[sqlite3.Connection, Terminal]]:
    """Give a connection that writes to a store, and the browser with its long session open."""
    with contextlib.closing(sqlite3.connect(store, isolation_level=None, timeout=5)) as writer:
        writer.execute("PRAGMA synchronous = NORMAL")
        writer.execute("UPDATE chat_sessions SET agent = agent")
        writer.execute(_REMOVE)  # What a run that was killed has left.
        with app.running(store, last_words(SMALL_PARTS), poll_ms=POLL_MS) as terminal:
            terminal.send(app.DOWN)
            terminal.until(f"{parts} parts".encode())
            terminal.send(app.ENTER)
            terminal.until(last_words(parts).encode())
            settle(terminal)
            yield writer, terminal


def _take_away_what_is_ours(store: Path) -> None:
    connection = sqlite3.connect(store, isolation_level=None)
    rows = connection.execute("SELECT type, name FROM sqlite_master WHERE sql NOT NULL").fetchall()
    for kind, name in rows:
        if kind == "index" and f"INDEX {name} " not in CONTRACT_INDEXES:
            connection.execute(f"DROP INDEX IF EXISTS {name}")
    for kind, name in rows:
        if kind == "table" and name not in REQUIRED_COLUMNS and not name.startswith("sqlite_"):
            connection.execute(f"DROP TABLE {name}")
    connection.execute("PRAGMA application_id = 0")
    connection.execute("PRAGMA user_version = 0")
    connection.close()


def _idle(terminal: Terminal, seconds: int) -> Line:
    before, started = cpu_seconds(terminal.process.pid), time.perf_counter()
    terminal.rest(seconds)
    spent = cpu_seconds(terminal.process.pid) - before
    share = 100 * spent / (time.perf_counter() - started)
    return Line(
        "live", f"CPU when idle, {POLL_MS} ms polling", share, "%", limits=Limits(value=1),
        details={"seconds": seconds},
    )  # fmt: skip


def _watch(
    connection: sqlite3.Connection, terminal: Terminal, commits: int, *, own: bool
) -> list[float]:
    chance = random.Random(11)
    return [_seen(connection, terminal, chance, number, own=own) for number in range(commits)]


def _seen(
    connection: sqlite3.Connection, terminal: Terminal, chance: random.Random, number: int, *,
    own: bool,
) -> float:
    """Add a part after a random time; return the seconds to its text on the screen.

    Args:
        connection: Writes to the store.
        terminal: Shows the session.
        chance: Says how long to wait.
        number: Of the part.
        own: Whether the store is a library of ours.
    """
    terminal.rest(chance.uniform(*GAP_S))
    terminal.send(b"")
    words = f"Live-{number:04d}"
    committed = _commit(connection, number, words, own=own)
    return terminal.until(words.encode(), frame=True) - committed


def _commit(connection: sqlite3.Connection, number: int, words: str, *, own: bool) -> float:
    now = time.time_ns() // 1_000_000
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        'INSERT INTO chat_parts(id, message_id, session_id, "index", type, data_json, created_at,'
        " updated_at) VALUES (?, ?, ?, ?, 'text', ?, ?, ?)",
        (
            f"prt_live{number:022d}", LAST_MESSAGE, SESSION, PARTS_PER_MESSAGE + number,
            f'{{"type":"text","text":"{words} came in","state":"done"}}', now, now,
        ),
    )  # fmt: skip
    if own:
        connection.execute(_CHANGED, (SESSION, LAST_MESSAGE, now))
    connection.execute("COMMIT")
    return time.perf_counter()
