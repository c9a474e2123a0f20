"""Connections to PostgreSQL servers, for reading alone, used from threads without a loop.

The driver is asynchronous and its caller is not, so one thread of the process runs a loop
for all connections. What is read is read in a transaction that is REPEATABLE READ and READ
ONLY, so it belongs together and writes nothing; its locks are those of any SELECT, and it
gives up where it would have to wait for one.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import orjson

from store.engine.dialect import quoted
from store.engine.server.addresses import AddressLoop, use
from store.engine.server.connection import converter
from store.engine.server.login import SETTINGS, Login, login_of, url_address
from store.engine.server.rows import row_class
from store.engine.server.words import MISSING_DRIVER, is_of_password, reason
from store.engine.server_url import ServerTrouble, ServerUrl
from store.sources.base.databases import Row
from store.sources.base.row_reader import Later
from store.sources.base.servers import values

CONNECT_S = 5.0
ANSWER_S = 5.0
"""How long a server that is only asked whether anything moved may take."""
READ_S = 60.0
CLOSE_S = 0.5
SILENT_S = 0.5
"""Seconds for which a server that did not answer is not asked again."""
_BEGIN = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    f" SET LOCAL statement_timeout = '{READ_S:.0f}s'; SET LOCAL lock_timeout = '2s';"
    f" SET LOCAL idle_in_transaction_session_timeout = '{READ_S:.0f}s'; {values.SETTINGS}"
)
_MOMENT = (
    "SELECT CASE WHEN pg_is_in_recovery() THEN CAST(pg_last_wal_replay_lsn() AS text)"
    " ELSE CAST({} AS text) END"
)
_TABLES = (
    "SELECT n.nspname AS schema, c.relname AS name, a.attname AS column,"
    " CAST(c.relkind AS text) AS kind, has_table_privilege(c.oid, 'SELECT') AS whole,"
    " has_column_privilege(c.oid, a.attnum, 'SELECT') AS readable,"
    " row_security_active(c.oid) AS narrowed FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
    " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped"
    " AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"
    " AND {} ORDER BY n.nspname, c.relname, a.attnum"
)
_ON_PATH = "pg_catalog.pg_table_is_visible(c.oid)"
_IDENTITY = "SELECT system_identifier FROM pg_control_system()"
_LOCK = (
    "SELECT coalesce('the table ' || c.relname, 'a lock') AS name, coalesce((SELECT"
    " string_agg(DISTINCT coalesce(nullif(a.application_name, ''), a.usename, 'another program'),"
    " ' and ') FROM pg_stat_activity a WHERE a.pid = ANY (pg_blocking_pids(l.pid))),"
    " 'another program') AS holder FROM pg_locks l"
    " LEFT JOIN pg_catalog.pg_class c ON c.oid = l.relation"
    " WHERE l.pid = CAST($1 AS integer) AND NOT l.granted LIMIT 1"
)
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
                self._loop = AddressLoop()
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
        self._logins: dict[ServerUrl, Login] = {}
        self._silent: dict[str, float] = {}
        self._tables: dict[ServerUrl, dict[str, Table] | None] = {}
        self._made: Counter[ServerUrl] = Counter()
        self._locks: dict[ServerUrl, AbstractContextManager[Any]] = {}
        weakref.finalize(self, _close_all, self._kept)

    @contextlib.contextmanager
    def reading(self, url: ServerUrl, *, anew: bool = True) -> Iterator[PostgresRows]:
        """Give one transaction.

        Args:
            url: The database.
            anew: Whether its tables are looked up again, which may have other columns now.

        Raises:
            ServerTrouble: The server cannot be reached or read, or the driver is missing.
        """
        with self._lock(url):
            connection = self._begun(url)
            reader = PostgresRows(url, connection, self._made[url])
            if not anew:
                reader.known = self._tables.get(url)
            try:
                yield reader
                self._tables[url] = reader.known
            except Exception:
                self._tables.pop(url, None)
                raise
            finally:
                self._end(url, connection)

    def identity(self, url: ServerUrl, table: str) -> str:
        """Return a text that is the same for all URLs of a database, and of no other database.

        It names the cluster of databases (``system_identifier``), the database, and the schema.

        Args:
            url: The database.
            table: A table whose schema counts.

        Raises:
            ServerTrouble: The server cannot be reached, or the driver is missing.
        """
        with self.reading(url) as reader:
            sql = (
                "SELECT current_database() AS database, coalesce((SELECT n.nspname"
                " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid ="
                f" c.relnamespace WHERE c.relname = $1 AND {_ON_PATH}), current_schema()) AS schema"
            )
            (found,) = reader.rows(sql, table)
        try:
            with self.reading(url) as reader:
                cluster = str(reader.rows(_IDENTITY)[0]["system_identifier"])
        except ServerTrouble:
            # Some hosts forbid it: what the URL names tells servers apart then.
            cluster = url_address(url)
        return f"{cluster}/{found['database']}/{found['schema']}"

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

    def waits_for(self, url: ServerUrl) -> str | None:
        """Return what a statement that is being answered waits for; None where that is unknown.

        It is asked on a connection of its own, without waiting for the other one.
        """
        kept, login = self._kept.get(url), self._logins.get(url)
        if kept is None or login is None:
            return None
        try:
            found = _LOOP.run(_lock_of(login, kept.get_server_pid()))
        except Exception:
            # Another answer says why the server cannot be read.
            return None
        return None if found is None else "waits for {}, which {} has locked".format(*found)

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
                self._begin(url, kept)
                return kept
            except Exception:
                self.close(url)
        connection = self._connect(url)
        try:
            self._begin(url, connection)
        except Exception as error:
            self.close(url)
            raise ServerTrouble(url, reason(error)) from None
        return connection

    def _connect(self, url: ServerUrl) -> Any:
        login = login_of(url)
        if time.monotonic() < self._silent.get(url.dsn, 0.0):
            raise ServerTrouble(url, reason(TimeoutError()))
        try:
            import_module("asyncpg")
        except ImportError:
            raise ServerTrouble(url, MISSING_DRIVER) from None
        try:
            connection = _LOOP.run(_connected(login))
        except Exception as error:
            if isinstance(error, TimeoutError):
                self._silent[url.dsn] = time.monotonic() + SILENT_S
            hint = login.password_hint if is_of_password(error) else ""
            # Without the cause: the driver's errors may quote the URL.
            words = login.without_secrets(reason(error)) + hint
            refuses = str(getattr(error, "sqlstate", "")).startswith("28")
            raise ServerTrouble(url, words, is_refusal=refuses) from None
        self._kept[url] = connection
        self._logins[url] = login
        self._made[url] += 1
        return connection

    def _begin(self, url: ServerUrl, connection: Any) -> None:
        """Begin a transaction, with the schema that the URL names."""
        path = self._logins[url].search_path
        path = f"; SET LOCAL search_path = {path}" if path else ""
        _LOOP.run(connection.execute(_BEGIN + path, timeout=ANSWER_S))

    def _end(self, url: ServerUrl, connection: Any) -> None:
        try:
            _LOOP.run(connection.execute("ROLLBACK", timeout=ANSWER_S))
        except Exception:
            # What was to be read has been read, or its own error says why not.
            self.close(url)


class Moment(NamedTuple):
    """When something was read.

    Attributes:
        connected: As in ``PostgresRows``.
        oldest: The transaction before which all had ended.
    """

    connected: int
    oldest: str


@dataclass(slots=True)
class Table:
    """A table or view on the search path.

    Attributes:
        kind: As ``pg_class.relkind``.
        columns: Each with whether it may be read.
        whole: Whether the table as a whole may be read, system columns too.
        narrowed: Whether row security hides rows of it.
    """

    kind: str
    whole: bool
    narrowed: bool
    columns: dict[str, bool] = field(default_factory=dict)


class PostgresRows:
    """Fulfils ``store.sources.base.row_reader.RowReader`` on a PostgreSQL server.

    Attributes:
        connected: Another number after each reconnection, which may be to another server.
        known: The tables on the search path, by name; None before they are looked up.
    """

    def __init__(self, url: ServerUrl, connection: Any, connected: int = 0) -> None:
        """Read on a connection that is in a transaction.

        Args:
            url: The database, for errors.
            connection: The driver's connection.
            connected: As in the attributes.
        """
        self.connected = connected
        self._url, self._connection = url, connection
        self.known: dict[str, Table] | None = None

    def rows(self, sql: str, *bound: object) -> list[Row]:
        """Return what a statement finds, by column name.

        Raises:
            ServerTrouble: The server does not answer, or not with rows.
        """
        return self.later(sql, *bound)()

    def later(self, sql: str, *bound: object) -> Later:
        """Fetch what a statement finds; return what decodes it.

        Raises:
            ServerTrouble: The server does not answer, or not with rows.
        """
        try:
            return _LOOP.run(_fetched(self._connection, sql, bound)).rows
        except Exception as error:
            raise ServerTrouble(self._url, reason(error)) from None

    def tables(self) -> dict[str, frozenset[str]]:
        """Return the columns of each table and view on the search path, by its name."""
        return {name: frozenset(table.columns) for name, table in self._tables().items()}

    def elsewhere(self) -> dict[str, dict[str, frozenset[str]]]:
        """Return the columns of the tables off the search path, by schema and name."""
        found: dict[str, dict[str, frozenset[str]]] = {}
        for row in self.rows(_TABLES.format(f"NOT {_ON_PATH}")):
            tables = found.setdefault(row["schema"], {})
            tables[row["name"]] = tables.get(row["name"], frozenset()) | {row["column"]}
        return found

    def usable_schemas(self) -> frozenset[str]:
        """Return the names of the schemas in which this user may read what it is let read."""
        return frozenset(row["name"] for row in self.rows(
            "SELECT nspname AS name FROM pg_catalog.pg_namespace"
            " WHERE has_schema_privilege(oid, 'USAGE')"))

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns; none where the table is missing."""
        known = self._tables().get(table)
        return frozenset(known.columns) if known is not None else frozenset()

    def readable(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns that may be read; all where none may be.

        The server says then what is missing.
        """
        return self.permitted(table) or self.columns(table)

    def permitted(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns that may be read; none where none may be."""
        known = self._tables().get(table)
        columns = known.columns if known is not None else {}
        return frozenset(name for name, may in columns.items() if may)

    def listed(self, table: str, name: str = "") -> str:
        """Return the columns of a table that may be read, as a statement lists them.

        Args:
            table: The table.
            name: What the statement calls it.
        """
        known, prefix = self._tables().get(table), f"{name}." if name else ""
        readable = self.readable(table)
        if known is None or not readable:
            return f"{prefix}*"
        names = [name for name in known.columns if name in readable]
        return ", ".join(f"{prefix}{quoted(name)}" for name in names)

    def has_versions(self, table: str) -> bool:
        """Return whether rows of a table name the transaction that wrote them (``xmin``)."""
        known = self._tables().get(table)
        return known is None or (known.whole and known.kind in ("r", "p", "m"))

    def is_narrowed(self, table: str) -> bool:
        """Return whether row security, or a view, may hide rows of a table."""
        known = self._tables().get(table)
        return known is not None and (known.narrowed or known.kind == "v")

    def written(self, table: str) -> str:
        """Return an expression that differs once a row of a table was written anew."""
        if self.has_versions(table):
            return "CAST(CAST(xmin AS text) AS bigint)"
        return f"CAST(hashtextextended(CAST(ROW({self.listed(table)}) AS text), 0) AS numeric)"

    def moment(self) -> Moment:
        """Return what ``written_since`` compares the rows of a later transaction with."""
        (found,) = self.rows("SELECT txid_snapshot_xmin(txid_current_snapshot()) AS oldest")
        return Moment(self.connected, str(found["oldest"] & 0xFFFFFFFF))

    def written_since(self, place: int, name: str = "") -> str:
        """Return the condition that a row may have been written since a moment.

        Args:
            place: Where the moment's transaction is bound.
            name: What the statement calls the table.
        """
        column = f"{name}.xmin" if name else "xmin"
        return f"age({column}) <= age(CAST(CAST(${place} AS text) AS xid))"

    def any_of(self, place: int) -> str:
        """Return the condition of being one of ``bound_ids``, which is bound at a place."""
        # Of the column's type; the ids are taken out of their JSON where they are bound.
        return f"= ANY (${place})"

    def contains(self, column: str, place: int) -> str:
        """Return the condition that a column's text contains the text bound at a place."""
        return f"strpos(CAST({column} AS text), CAST(${place} AS text)) > 0"

    def _tables(self) -> dict[str, Table]:
        if self.known is None:
            self.known = {}
            for row in self.rows(_TABLES.format(_ON_PATH)):
                made = Table(row["kind"], bool(row["whole"]), bool(row["narrowed"]))
                table = self.known.setdefault(row["name"], made)
                table.columns[row["column"]] = bool(row["readable"])
        return self.known


async def _connected(login: Login) -> Any:
    use(login.addresses)
    return await import_module("asyncpg").connect(
        **login.arguments, record_class=row_class(), timeout=CONNECT_S, command_timeout=READ_S,
        # Poolers hand each transaction to another server process.
        statement_cache_size=0, server_settings=SETTINGS,
    )  # fmt: skip


async def _lock_of(login: Login, process: int) -> tuple[str, str] | None:
    """Return the table whose lock a server process waits for, and who has that."""
    connection = await _connected(login)
    try:
        row = await connection.fetchrow(_LOCK, process, timeout=ANSWER_S)
    finally:
        await connection.close(timeout=CLOSE_S)
    return None if row is None else (str(row["name"]), str(row["holder"]))


async def _fetched(connection: Any, sql: str, bound: Sequence[object]) -> values.Fetched:
    """Return what a statement finds, each value as its text."""
    shape = await connection.prepare(sql)
    columns = values.columns_of(shape.get_attributes())
    bound = [
        value if value is None else _fitting(each, value)
        for each, value in zip(shape.get_parameters(), bound, strict=True)
    ]
    if not sql.startswith("SELECT"):
        # What a transaction refuses, or answers with texts alone, such as SHOW.
        found = await connection.fetch(sql, *bound)
        texts = [[str(value).encode() for value in record.values()] for record in found]
        return values.Fetched(columns, texts)
    encoding = values.encoding_of(connection.get_settings().server_encoding)
    records = await connection.fetch(values.statement(sql, columns, encoding.server), *bound)
    return values.Fetched(columns, records, encoding.python)


def _fitting(parameter: Any, value: Any) -> object:
    """Return a value as a parameter of a statement takes it, of whatever type a column is.

    Args:
        parameter: As the driver tells it.
        value: Text, a number, or what ``bound_ids`` made.
    """
    if parameter.kind != "array":
        return converter(parameter.name)(value)
    convert = converter(parameter.name.removesuffix("[]"))
    return [convert(one) for one in orjson.loads(value)]


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
