"""What changes in a store, for programs that follow it: ``async for change in store.watch()``.

The file is polled: ``PRAGMA data_version`` first, and the rest only when that moved. A library
logs its changes (``store.engine.changes``). In a host's file the sessions' rows are compared,
and the newest messages and parts, which are the ones that an agent writes. In a host's database
on a server, each row says which transaction wrote it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from store.engine import changes
from store.engine.async_database import AsyncDatabase
from store.engine.changes import Moved
from store.engine.connection import Connection
from store.engine.database import Database
from store.engine.dialect import quoted
from store.errors import BackscrollError, Invalid

NEWEST = 256
"""Rows at the end of a host's tables whose times are compared."""
PAGES = 2_048
"""Pages at the end of a host's table on a server that are looked through: 16 MB, where most rows
are written. They hold 8,000 rows or more, as longer ones than 2 kB are kept elsewhere."""
TABLES = 64
"""So many partitions of a table on a server are looked through, each by a statement of its own."""
_SHARE = 9
"""The time between two looks is at least so many times what a look took."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that was written to a store.

    Attributes:
        session_id: The session that changed, came or went. None if that is not known: read
            everything again that you show.
        message_ids: The messages that changed. None for the session's own row, or if that is
            not known.
    """

    session_id: str | None
    message_ids: frozenset[str] | None = None


Tail = dict[int, tuple[Any, ...]]


@dataclass(slots=True)
class Position:
    """How far a store was read.

    Attributes:
        version: ``PRAGMA data_version`` then.
        seq: The newest entry of a library's log of changes. Of a host's server: the oldest
            transaction that could still write.
        sessions: Of a host's tables: by session the columns that are compared.
        tails: Of a host's file: by table the newest rows, by rowid.
        written: Of a host's server: by table, and by place and the transaction that wrote it, the
            session and message of each row of a transaction since ``seq``.
    """

    version: int
    seq: int = 0
    sessions: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    tails: dict[str, Tail] = field(default_factory=dict)
    written: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)


def look(db: Database, before: Position | None) -> tuple[Position, Moved]:
    """Return where a store is now, and what changed since it was there.

    Args:
        db: The store.
        before: The position of the last look; None for the first one.
    """
    with _snapshot(db.connection) as connection:
        seq, moved = changes.since(db, before.seq) if before else (changes.newest(db), Moved())
        position = Position(0, seq)
        if db.form.name != "own":
            if db.server is not None:
                position.seq = changes.oldest_writer(db)
                position.written = _written(db, before.seq if before else position.seq)
            position.sessions = _sessions(connection)
            tables = [] if db.server else [
                name for name in _TAILS if _has_rowids(connection, name)]
            position.tails = {
                name: _tail(connection, name, before.tails.get(name) if before else None)
                for name in tables
            }
            moved = _differences(before, position) if before else moved
        # Last, as a transaction sees one version from its first read on.
        position.version = db.data_version()
    return position, moved


@contextlib.contextmanager
def _snapshot(connection: Connection) -> Iterator[Connection]:
    connection.execute("BEGIN")
    try:
        yield connection
    finally:
        connection.execute("COMMIT")


def _sessions(connection: Connection) -> dict[str, tuple[Any, ...]]:
    rows = connection.execute(
        "SELECT id, updated_at, archived_at, total_tokens FROM chat_sessions")
    return {row[0]: row[1:] for row in rows}


_TAILS = {
    "chat_messages": "session_id, id, updated_at, metadata_json",
    "chat_parts": "session_id, message_id, updated_at, length(data_json)",
}


def _has_rowids(connection: Connection, table: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE name = $1 AND type = 'table'"
        " AND upper(sql) NOT LIKE '%WITHOUT%ROWID%'", {"1": table}
    ).fetchone()
    return found is not None


def _tail(connection: Connection, table: str, before: Tail | None) -> Tail:
    (last,) = connection.execute(f"SELECT coalesce(max(rowid), 0) FROM {table}").fetchone()
    since = min(max(before, default=0) if before else last, last) - NEWEST
    rows = connection.execute(
        f"SELECT rowid, {_TAILS[table]} FROM {table} WHERE rowid > $1", {"1": since})
    return {row[0]: (row[1], row[2], row[3], hash(row[4])) for row in rows}


_ROWS_SINCE = (
    "SELECT CAST(ctid AS text) || ' ' || CAST(xmin AS text),"
    " CAST(session_id AS text), CAST({message} AS text)"
    " FROM ONLY {table} WHERE ctid >= CAST(CAST($1 AS text) AS tid)"
    " AND age(xmin) <= age(CAST(CAST($2 AS text) AS xid))")
"""``age`` counts back from now, so that numbers of transactions may begin anew."""
_TABLES_OF = (
    "WITH RECURSIVE held(id) AS (SELECT CAST(CAST(CAST($1 AS text) AS regclass) AS oid)"
    " UNION SELECT i.inhrelid FROM held JOIN pg_inherits i ON i.inhparent = held.id)"
    " SELECT n.nspname, c.relname, c.relkind = 'r' AND has_table_privilege(c.oid, 'SELECT'),"
    " pg_relation_size(c.oid) / CAST(current_setting('block_size') AS integer)"
    " FROM held JOIN pg_class c ON c.oid = held.id JOIN pg_namespace n ON n.oid = c.relnamespace"
    f" WHERE c.relkind <> 'p' LIMIT {TABLES + 1}")


def _written(db: Database, since: int) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the rows of messages and parts that a server's transactions since one have written.

    Args:
        db: A host's database on a server.
        since: The number of the transaction.
    """
    written = {}
    for table, message in (("chat_messages", "id"), ("chat_parts", "message_id")):
        for name, pages in _tables_of(db, table):
            rows = db.connection.execute(
                _ROWS_SINCE.format(table=name, message=message),
                {"1": f"({max(0, pages - PAGES)},0)", "2": str(since % 2**32)})
            written.update({(name, row[0]): (row[1], row[2]) for row in rows})
    return written


def _tables_of(db: Database, table: str) -> list[tuple[str, int]]:
    """Return the tables on a server that have the rows of one, and how many pages each has.

    These are its partitions and those that inherit from it. There are none where one of them does
    not tell when its rows were written: a view, another server's, or one that may not be read.

    Args:
        db: A host's database on a server.
        table: Its name in the contract.
    """
    # Until the look ends, nobody drops a partition that it is going to read.
    db.connection.execute(f"SELECT 1 FROM {table} LIMIT 0")
    rows = db.connection.execute(
        _TABLES_OF, {"1": db.remote.schemas.get(table, table)}).fetchall()
    # One without a size was dropped since the look began.
    found = [row for row in rows if row[-1] is not None]
    if len(found) > TABLES or not all(tells for _, _, tells, _ in found):
        return []
    return [(f"{quoted(place)}.{quoted(name)}", int(pages)) for place, name, _, pages in found]


def _differences(before: Position, now: Position) -> Moved:
    moved = Moved()
    for place in now.written.keys() - before.written.keys():
        moved.add(*now.written[place])
    for table, tail in now.tails.items():
        old = before.tails.get(table, {})
        least = max(old, default=0) - NEWEST
        for rowid in tail.keys() | old.keys():
            if rowid > least and tail.get(rowid) != old.get(rowid):
                session_id, message_id, *_ = tail.get(rowid) or old[rowid]
                moved.add(session_id, message_id)
    for session_id in before.sessions.keys() | now.sessions.keys():
        was, is_now = before.sessions.get(session_id), now.sessions.get(session_id)
        if was != is_now and (was is None or is_now is None or session_id not in moved.sessions):
            moved.add(session_id, None)
    moved.vague = not moved.sessions
    return moved


def require_seconds(name: str, value: object) -> None:
    """Raise unless a time between two looks can be slept.

    Raises:
        Invalid: It is no number, not more than 0, or without end.
    """
    if not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise Invalid(f"{name} must be more than 0 seconds")


class Watch:
    """The changes of a store from the call of ``Store.watch`` on; ends when the store closes."""

    def __init__(self, store: AsyncDatabase, session_id: str | None, every: float) -> None:
        """Begin; the position is read in the background.

        Args:
            store: The store.
            session_id: The session whose changes are wanted; None for all.
            every: Seconds between two looks.
        """
        require_seconds("every", every)
        self._store, self._session_id, self._every = store, session_id, every
        self._found: deque[Change] = deque()
        self._pause = every
        self._pulse: tuple[int, int] | None = None
        self._position: Position | None = None
        self.begun = asyncio.ensure_future(self._begin())
        self.begun.add_done_callback(_retrieved)

    async def _begin(self) -> None:
        generation, _ = await self._store.pulse()
        position, _ = await self._store.read(look, None)
        self._position, self._pulse = position, (generation, position.version)

    async def ready(self) -> None:
        """Wait until the position is known from which changes are reported."""
        await asyncio.shield(self.begun)

    def __aiter__(self) -> Watch:
        """Return itself."""
        return self

    async def __anext__(self) -> Change:
        """Return the next change, once there is one.

        Raises:
            StoreError: The file cannot be read any more.
        """
        while not self._found:
            if self._store.closed:
                raise StopAsyncIteration
            try:
                await self.ready()
                await self._look()
            except BackscrollError:
                if not self._store.closed:
                    raise
            if not self._found:
                await asyncio.sleep(self._pause)
        return self._found.popleft()

    async def _look(self) -> None:
        pulse = await self._store.pulse()
        if pulse == self._pulse:
            return
        began = time.monotonic()
        position, moved = await self._store.read(partial(look, before=self._position))
        self._pause = max(self._every, _SHARE * (time.monotonic() - began))
        self._position, self._pulse = position, (pulse[0], position.version)
        wanted = self._session_id
        if moved.vague:
            self._found.append(Change(wanted))
        for session_id, messages in moved.sessions.items():
            if wanted in (None, session_id):
                ids = None if messages is None else frozenset(messages)
                self._found.append(Change(session_id, ids))


def _retrieved(task: asyncio.Task[None]) -> None:
    """Keep asyncio from warning of an error that nobody waited for."""
    if not task.cancelled():
        task.exception()
