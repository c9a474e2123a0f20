"""Connections to PostgreSQL servers, for reading alone, used from threads without a loop.

The driver is asynchronous and its caller is not, so one thread of the process runs a loop
for all connections. What is read is read in a transaction that is REPEATABLE READ and READ
ONLY, so it belongs together and writes nothing; its locks are those of any SELECT, and it
gives up where it would have to wait for one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import threading
import weakref
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib import import_module
from typing import Any, TypeVar

import orjson

from store.engine.server_url import ServerTrouble, ServerUrl
from store.sources.base.databases import Row

_WORDS = {
    "28P01": "refuses the login",
    "28000": "refuses the login",
    "3D000": "cannot be opened",
    "57P03": "is starting up or shutting down",
    "57P01": "closed the connection",
    "57P02": "closed the connection",
    "42501": "may not be read by this user",
    "57014": "took too long to answer",
    "55P03": "is locked by another program",
    "53300": "takes no more connections",
}
"""By SQLSTATE (PostgreSQL's manual, appendix A)."""
_NUMBER = re.compile(r"\[Errno (\d+)\]")


def reason(error: BaseException) -> str:
    """Return one line; the server's own words are part of it where they help."""
    state = getattr(error, "sqlstate", None)
    said = _first_line(str(error))
    if isinstance(state, str):
        if state.startswith("08"):
            return f"closed the connection: {said}"
        return f"{_WORDS.get(state, 'cannot be read')}: {said}"
    if isinstance(error, TimeoutError):
        return "does not answer"
    if isinstance(error, OSError):
        return f"cannot be reached: {_of_system(error)}"
    return f"cannot be read: {said or type(error).__name__}"


def is_of_password(error: BaseException) -> bool:
    """Return whether the server wanted another password, or one at all."""
    return getattr(error, "sqlstate", None) == "28P01"


def _of_system(error: OSError) -> str:
    found = _NUMBER.search(str(error))
    number = error.errno if error.errno is not None else int(found[1]) if found else None
    if number is not None and number > 0:
        return os.strerror(number)
    return _first_line(error.strerror or str(error)) or type(error).__name__


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


_MS = 1000


def plain(value: object) -> object:
    """Return a value of the driver's as text, number, bytes or None.

    Times become ISO text in UTC with milliseconds, with microseconds where there are any;
    arrays and rows become JSON. The driver gives JSON as text already.
    """
    if value is None or isinstance(value, str | int | float | bytes):
        return value
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral() else float(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return orjson.dumps([plain(one) for one in value], default=str).decode()
    return str(value)


def _time(value: datetime) -> str:
    try:
        utc = value.astimezone(UTC) if value.tzinfo is not None else value
    except OverflowError:
        return value.isoformat()
    fine = "milliseconds" if utc.microsecond % _MS == 0 else "microseconds"
    return f"{utc.replace(tzinfo=None).isoformat(timespec=fine)}Z"


APPLICATION = "backscroll"
CONNECT_S = 5.0
ANSWER_S = 5.0
"""How long a server that is only asked whether anything moved may take."""
READ_S = 60.0
CLOSE_S = 0.5
_BEGIN = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    f" SET LOCAL statement_timeout = '{READ_S:.0f}s'; SET LOCAL lock_timeout = '2s';"
    f" SET LOCAL idle_in_transaction_session_timeout = '{READ_S:.0f}s'"
)
_MOMENT = (
    "SELECT CASE WHEN pg_is_in_recovery() THEN CAST(pg_last_wal_replay_lsn() AS text)"
    " ELSE CAST({} AS text) END"
)
_TABLES = (
    "SELECT c.relname, a.attname FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
    " WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped"
    " AND n.nspname NOT IN ('pg_catalog', 'information_schema')"
    " AND pg_catalog.pg_table_is_visible(c.oid)"
)
_MISSING = (
    "cannot be read: PostgreSQL needs the driver asyncpg. Install Backscroll with the extra"
    " postgres, for example with `pip install '.[postgres]'` in a clone"
)
_NO_PASSWORD = " (none is in the URL, and none is kept; ~/.pgpass and PGPASSWORD serve as well)"
T = TypeVar("T")


class _Loop:
    """A thread with an event loop, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for what a coroutine returns or raises."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running()).result()

    def end(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that ends something, and wait for it a little where that can be."""
        ending = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        # The garbage collector, in whatever thread it runs, ends connections too.
        if threading.current_thread() is not self._thread:
            with contextlib.suppress(Exception):
                ending.result(timeout=2 * CLOSE_S)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="servers", daemon=True
                )
                self._thread.start()
            return self._loop


_LOOP = _Loop()


class Servers:
    """Keeps one connection to each server that is read; one thread at a time reads of it."""

    def __init__(self) -> None:
        """Start with none."""
        self._kept: dict[ServerUrl, Any] = {}
        self._made: Counter[ServerUrl] = Counter()
        self._locks: dict[ServerUrl, AbstractContextManager[Any]] = {}
        weakref.finalize(self, _close_all, self._kept)

    @contextlib.contextmanager
    def reading(self, url: ServerUrl) -> Iterator[PostgresRows]:
        """Give one transaction.

        Raises:
            ServerTrouble: The server cannot be reached or read, or the driver is missing.
        """
        with self._lock(url):
            connection = self._begun(url)
            try:
                yield PostgresRows(url, connection)
            finally:
                self._end(url, connection)

    def moment(self, url: ServerUrl) -> str:
        """Return a text that is another one whenever what can be read may have changed.

        It is the snapshot, which says of every transaction that writes whether it is seen
        (PostgreSQL's manual, "Transaction ID and Snapshot Information Functions"); writes
        to other databases of the server change it too. A standby does not list the
        transactions that run, so there the place in the log that it has got to is taken,
        which any write moves. It is to be asked for before the transaction that it is kept
        for, so that a change in between is seen the next time. The connection is part of it:
        a server that was restored may repeat a snapshot.

        Raises:
            ServerTrouble: The server cannot be reached, or the driver is missing.
        """
        with self._lock(url):
            fresh = url not in self._kept
            connection = self._kept[url] if not fresh else self._connect(url)
            new = connection.get_server_version().major > 12
            sql = _MOMENT.format("pg_current_snapshot()" if new else "txid_current_snapshot()")
            try:
                found = _LOOP.run(connection.fetchval(sql, timeout=ANSWER_S))
                return f"{self._made[url]} {found}"
            except Exception as error:
                self.close(url)
                if fresh or not _is_lost(error):
                    raise ServerTrouble(url, reason(error)) from None
            return self.moment(url)

    def close(self, url: ServerUrl) -> None:
        """Let a connection go."""
        kept = self._kept.pop(url, None)
        if kept is not None:
            _close_all({url: kept})

    def close_all(self) -> None:
        """Let all connections go."""
        _close_all(self._kept)

    def _lock(self, url: ServerUrl) -> AbstractContextManager[Any]:
        return self._locks.setdefault(url, threading.RLock())

    def _begun(self, url: ServerUrl) -> Any:
        """Begin on the kept connection, or on a new one where the server closed that."""
        kept = self._kept.get(url)
        if kept is not None:
            try:
                _LOOP.run(kept.execute(_BEGIN, timeout=ANSWER_S))
                return kept
            except Exception:
                self.close(url)
        connection = self._connect(url)
        try:
            _LOOP.run(connection.execute(_BEGIN, timeout=ANSWER_S))
        except Exception as error:
            self.close(url)
            raise ServerTrouble(url, reason(error)) from None
        return connection

    def _connect(self, url: ServerUrl) -> Any:
        if url.fault is not None:
            raise ServerTrouble(url, url.fault)
        try:
            driver = import_module("asyncpg")
        except ImportError:
            raise ServerTrouble(url, _MISSING) from None
        try:
            connection = _LOOP.run(
                driver.connect(
                    dsn=url.dsn, timeout=CONNECT_S, command_timeout=READ_S,
                    # Poolers hand each transaction to another server process.
                    statement_cache_size=0, server_settings={"application_name": APPLICATION},
                )
            )  # fmt: skip
        except Exception as error:
            hint = _NO_PASSWORD if is_of_password(error) and not url.has_password else ""
            # Without the cause: the driver's errors may quote the URL.
            raise ServerTrouble(url, reason(error) + hint) from None
        self._kept[url] = connection
        self._made[url] += 1
        return connection

    def _end(self, url: ServerUrl, connection: Any) -> None:
        try:
            _LOOP.run(connection.execute("ROLLBACK", timeout=ANSWER_S))
        except Exception:
            # What was to be read has been read, or its own error says why not.
            self.close(url)


class PostgresRows:
    """Fulfils ``store.sources.base.row_reader.RowReader`` on a PostgreSQL server."""

    def __init__(self, url: ServerUrl, connection: Any) -> None:
        """Read on a connection that is in a transaction."""
        self._url, self._connection = url, connection
        self._tables: dict[str, frozenset[str]] | None = None

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Return what a statement finds, by column name.

        Raises:
            ServerTrouble: The server does not answer, or not with rows.
        """
        try:
            found = _LOOP.run(self._connection.fetch(sql, *values))
        except Exception as error:
            raise ServerTrouble(self._url, reason(error)) from None
        return [{name: plain(value) for name, value in row.items()} for row in found]

    def tables(self) -> dict[str, frozenset[str]]:
        """Return the columns of each table on the search path, by its name."""
        if self._tables is None:
            found: dict[str, set[str]] = {}
            for row in self.rows(_TABLES):
                found.setdefault(row["relname"], set()).add(row["attname"])
            self._tables = {name: frozenset(columns) for name, columns in found.items()}
        return self._tables

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns; none where the table is missing."""
        return self.tables().get(table, frozenset())

    def any_of(self, place: int) -> str:
        """Return the condition of being one of ``bound_ids``, which is bound at a place."""
        return f"= ANY (ARRAY (SELECT json_array_elements_text(CAST(${place} AS json))))"

    def contains(self, column: str, place: int) -> str:
        """Return the condition that a column's text contains the text bound at a place."""
        return f"strpos(CAST({column} AS text), ${place}) > 0"


def _is_lost(error: BaseException) -> bool:
    """Return whether it was the connection that failed, so that a new one may serve."""
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        return state.startswith(("08", "57P"))
    return not isinstance(error, TimeoutError)


def _close_all(kept: dict[ServerUrl, Any]) -> None:
    connections = list(kept.values())
    kept.clear()

    async def end() -> None:
        for connection in connections:
            try:
                await connection.close(timeout=CLOSE_S)
            except Exception:
                connection.terminate()

    if connections:
        _LOOP.end(end())
