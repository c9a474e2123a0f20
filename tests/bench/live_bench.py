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
from collections.abc import Iterator, Mapping
from pathlib import Path

from store.engine.schema import CONTRACT_INDEXES, REQUIRED_COLUMNS
from tests.bench import app
from tests.bench.browse_bench import cpu_seconds, open_talk, settle
from tests.bench.long_session import (
    LAST_MESSAGE,
    PARTS_PER_MESSAGE,
    SESSION,
    SMALL_PARTS,
    last_words,
    long_store,
)
from tests.bench.report import Limits, Line, p95
from tests.bench.talks import NOTED, Talk
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
        with _opened(parts, own=own) as (talk, connection, terminal):
            if own:
                lines.append(_idle(terminal, 2 if quick else 20))
            times = _watch(connection, terminal, 4 if quick else 60, talk, own=own)
        lines.append(
            Line(
                "live", f"commit to screen, {parts:,} parts, {_KIND[own]}, p95",
                p95(times) * 1_000, "ms", float(POLL_MS), Limits(over=OVER_MS),
                {"commits": len(times), "median_ms": statistics.median(times) * 1_000},
            )
        )  # fmt: skip
    return lines


def commit_times(
    talks: Mapping[int, Talk], commits: int
) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """Add parts to sessions that are open side by side, in turn, and take them out again.

    Args:
        talks: The sessions, by what is compared, in stores whose search index is whole.
        commits: How many parts are added to each.

    Returns:
        The seconds of each commit to its text on the screen, by size, and the CPU seconds of
        the browser with those of half a second of polling before it.
    """
    found: dict[int, list[float]] = {size: [] for size in talks}
    spent: dict[int, list[float]] = {size: [] for size in talks}
    with contextlib.ExitStack() as stack:
        shown = [
            (size, talk, *stack.enter_context(_watched(talk))) for size, talk in talks.items()
        ]
        chance = random.Random(11)
        for _, talk, writer, terminal in shown:
            stack.callback(_take_out, writer, talk)
            _seen(writer, terminal, chance, 0, talk, own=True)
            terminal.rest(COUNT_AFTER_S)
            settle(terminal)
        for number in range(1, commits + 1):
            first = number % len(shown)
            for size, talk, writer, terminal in shown[first:] + shown[:first]:
                before = cpu_seconds(terminal.process.pid)
                found[size].append(_seen(writer, terminal, chance, number, talk, own=True))
                spent[size].append(cpu_seconds(terminal.process.pid) - before)
    return found, spent


def _take_out(writer: sqlite3.Connection, talk: Talk) -> None:
    """Remove the parts that were added to a session."""
    writer.execute(_REMOVE)
    writer.execute(NOTED, (talk.session, talk.message, time.time_ns() // 1_000_000))


_REMOVE = "DELETE FROM chat_parts WHERE id >= 'prt_live' AND id < 'prt_livf'"
_KIND = {True: "our store", False: "a host's file"}


@contextlib.contextmanager
def _opened(parts: int, *, own: bool) -> Iterator[tuple[Talk, sqlite3.Connection, Terminal]]:
    kept = long_store(parts)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=kept.parent))
        store = Path(folder) / "live.db"
        shutil.copyfile(kept, store)
        if not own:
            _take_away_what_is_ours(store)
        talk = Talk(store, parts, SESSION, LAST_MESSAGE, 1)
        yield talk, *stack.enter_context(_watched(talk))


@contextlib.contextmanager
def _watched(talk: Talk) -> Iterator[tuple[sqlite3.Connection, Terminal]]:
    """Give a connection that writes to a store, and the browser with a session of it open."""
    opened = sqlite3.connect(talk.store, isolation_level=None, timeout=5)
    with contextlib.closing(opened) as writer:
        writer.execute("PRAGMA synchronous = NORMAL")
        writer.execute("UPDATE chat_sessions SET agent = agent WHERE id = ?", (talk.session,))
        writer.execute(_REMOVE)  # What a run that was killed has left.
        with app.running(talk.store, last_words(SMALL_PARTS), poll_ms=POLL_MS) as terminal:
            open_talk(terminal, talk)
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
    connection: sqlite3.Connection, terminal: Terminal, commits: int, talk: Talk, *, own: bool
) -> list[float]:
    chance = random.Random(11)
    return [
        _seen(connection, terminal, chance, number, talk, own=own) for number in range(commits)
    ]


def _seen(
    connection: sqlite3.Connection, terminal: Terminal, chance: random.Random, number: int,
    talk: Talk, *, own: bool,
) -> float:
    """Add a part after a random time; return the seconds to its text on the screen.

    Args:
        connection: Writes to the store.
        terminal: Shows the session.
        chance: Says how long to wait.
        number: Of the part.
        talk: The session.
        own: Whether the store is a library of ours.
    """
    terminal.rest(chance.uniform(*GAP_S))
    terminal.send(b"")
    words = f"Live-{number:04d}"
    committed = _commit(connection, number, words, talk, own=own)
    return terminal.until(words.encode(), frame=True) - committed


def _commit(
    connection: sqlite3.Connection, number: int, words: str, talk: Talk, *, own: bool
) -> float:
    now = time.time_ns() // 1_000_000
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        'INSERT INTO chat_parts(id, message_id, session_id, "index", type, data_json, created_at,'
        " updated_at) VALUES (?, ?, ?, ?, 'text', ?, ?, ?)",
        (
            f"prt_live{number:022d}", talk.message, talk.session, PARTS_PER_MESSAGE + number,
            f'{{"type":"text","text":"{words} came in","state":"done"}}', now, now,
        ),
    )  # fmt: skip
    if own:
        connection.execute(NOTED, (talk.session, talk.message, now))
    connection.execute("COMMIT")
    return time.perf_counter()
