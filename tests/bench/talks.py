"""Sessions that benches open in the browser and write to: a long one, or one of a hundred parts.

The short one is put into stores of many sessions while these are measured.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from store.engine.database import open_database
from tests.bench import long_session, many_sessions
from tests.bench.kept import with_sidecars
from tests.bench.long_session import (
    LAST_MESSAGE,
    PARTS_PER_MESSAGE,
    SESSION,
    SMALL_PARTS,
    _Session,
)

_SHORT = f"ses_{SMALL_PARTS:012x}other000000000"
_SHORT_LAST = f"msg_{SMALL_PARTS // PARTS_PER_MESSAGE - 1:06x}{SMALL_PARTS:06x}bench000000000"
_NEWEST = many_sessions.NEWEST + 86_400_000
NOTED = "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, ?, ?)"


class Talk(NamedTuple):
    """A session in a store.

    Attributes:
        parts: How many it has; its title says so.
        session: Its id.
        message: The id of its last message.
        above: How many sessions are above it in the list.
    """

    store: Path
    parts: int
    session: str
    message: str
    above: int


def long_talk(parts: int) -> Talk:
    """Return the long session of the kept store for it, whose sidecars are whole."""
    store = with_sidecars(long_session.long_store(parts))
    return Talk(store, parts, SESSION, LAST_MESSAGE, 1)


@contextlib.contextmanager
def short_talk() -> Iterator[Talk]:
    """Give a session of a hundred parts that is alone in its store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "short.db"
        open_database(store, create=True).close()
        with short_talk_in(store) as talk:
            yield talk


@contextlib.contextmanager
def short_talk_in(store: Path) -> Iterator[Talk]:
    """Give a session of a hundred parts that is the newest of a store until the end."""
    with contextlib.closing(sqlite3.connect(store, isolation_level=None, timeout=30)) as writer:
        _remove(writer)  # What a run that was killed has left.
        writer.execute("BEGIN IMMEDIATE")
        _Session(SMALL_PARTS, _NEWEST, longest=False).insert(writer)
        writer.execute(NOTED, (_SHORT, None, time.time_ns() // 1_000_000))
        writer.execute("COMMIT")
        try:
            yield Talk(with_sidecars(store), SMALL_PARTS, _SHORT, _SHORT_LAST, 0)
        finally:
            _remove(writer)


def _remove(writer: sqlite3.Connection) -> None:
    writer.execute("PRAGMA foreign_keys = ON")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM chat_sessions WHERE id = ?", (_SHORT,))
    writer.execute(NOTED, (_SHORT, None, time.time_ns() // 1_000_000))
    writer.execute("COMMIT")
