"""LangGraph's source: files are known by their tables, and named by their owner."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from store.sources.base.databases import SqliteRows, stamp_of_rows
from store.sources.base.named_files import NamedFiles
from store.sources.base.protocol import Problem, Reading, Unit
from store.sources.base.row_reader import Row, RowReader
from store.sources.base.row_session import RowSession
from store.sources.base.values import number, string
from store.sources.langgraph.session import KIND, read_session
from store.sources.langgraph.thread import ThreadReader, uuid_ms

_COLUMNS = frozenset({
    "thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"
})  # fmt: skip
_WRITES = frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel"})
_BYTES_PER_CHECKPOINT = 8192
_THREADS_HELD = 3
"""Threads that may grow at the same time, and are not read anew each time."""


class LanggraphSource(NamedFiles):
    """Fulfils ``Source`` and ``FollowedSource``; reads only."""

    kind = KIND
    label = "LangGraph"
    tells = ("thoughts", "tokens", "rewinds")
    places = "name its SQLite file (`SqliteSaver`), or a folder in `[sources.paths]`"

    def __init__(self) -> None:
        """Make a source."""
        super().__init__()
        self._threads: dict[tuple[str, str], ThreadReader] = {}

    def _known(self, path: Path, name: str) -> ThreadReader:
        """Return what reads a thread; of the last ones what was read of them before."""
        key = str(path), name
        found = self._threads.pop(key, None) or ThreadReader(name)
        while len(self._threads) >= _THREADS_HELD:
            del self._threads[next(iter(self._threads))]
        self._threads[key] = found
        return found

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell by the columns of its table whether a database has checkpoints."""
        return SqliteRows(connection).columns("checkpoints") >= _COLUMNS

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each thread.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """
        reader = SqliteRows(connection)
        found: dict[str, list[Row]] = {}
        tables = ["checkpoints"]
        if reader.columns("writes") >= _WRITES:
            tables.append("writes")
        told = [reader.rows(_counted(reader, table)) for table in tables]
        for rows in told:
            for row in rows:
                if string(row["thread_id"]) is not None:
                    found.setdefault(row["thread_id"], []).append(row)
        for name, held in sorted(found.items()):
            at = max(uuid_ms(str(row["last"])) for row in held)
            sign = [sorted(row.items()) for row in held]
            size = _BYTES_PER_CHECKPOINT * number(held[0]["count"])
            yield Unit(f"{path.name}/{name}", (stamp_of_rows(path, sign, at=at, size=size),), at)

    def read_session(
        self, connection: sqlite3.Connection, path: Path, session_id: str, unit: Unit
    ) -> Reading:
        """Read one thread whole; no session where it is not there any more.

        Args:
            connection: The database, open for reading.
            path: Its file.
            session_id: The thread's id.
            unit: The unit as it was listed.
        """
        session = RowSession(session_id, str(path))
        draft = read_session(SqliteRows(connection), session, self._known(path, session_id))
        return Reading([draft] if draft else [], session.problems, unit.stamps)


def _counted(reader: RowReader, table: str) -> str:
    """Return the query for what differs by thread where a table moved; its index has all of it.

    A row that is put again has another number.
    """
    numbered = not reader.rows(
        "SELECT 1 AS one FROM sqlite_master WHERE name = $1 AND sql LIKE '%WITHOUT ROWID%'", table
    )
    numbers = ", max(rowid) AS newest, total(rowid) AS numbers" if numbered else ""
    return ("SELECT thread_id, count(*) AS count, max(checkpoint_id) AS last"
            f"{numbers} FROM {table} GROUP BY thread_id")  # fmt: skip
