"""A connection to PostgreSQL that fulfils ``store.engine.connection.Connection``.

The driver is asynchronous; each connection has an event loop of its own, which is used in the
calling thread for the time of a statement. A hop to a loop in another thread costs 0.3 ms, this
0.05 ms, about as much as SQLite's pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet
from zlib import crc32

from store.engine.connection import Parameters
from store.engine.dialect import SQLITE, Dialect
from store.engine.server.addresses import AddressLoop, use
from store.engine.server.errors import ServerError, interrupted, is_lost, mapped
from store.engine.server.holder import holder
from store.engine.server.login import SETTINGS, Login, login_of
from store.engine.server.rights import ASKED_EVERY_S
from store.engine.server.rows import row_class
from store.engine.server.sent import Sent
from store.engine.server.statements import NO_READINGS, Turned, turned
from store.engine.server.waiting import AnswerLoop
from store.engine.server.words import MISSING_DRIVER, is_of_password, reason
from store.engine.server_url import ServerTrouble, ServerUrl
from store.engine.transactions import is_busy

CONNECT_S = 5.0
ANSWER_S = 60.0
LOOK_S = 5.0
"""How long an answer to a look for changes may take: a server that is silent is shown then."""
CLOSE_S = 0.5
SILENT_S = 1.5
"""A server that has not answered for so long is not waited for at the end."""
BUSY_S = 5
"""As SQLite's ``busy_timeout`` in the contract."""
_KEPT = 500
"""Statements that are kept, prepared where the server keeps them."""
_WITH_JIT = 11
"""The first version that compiles statements, whose plans often look expensive with
partitions: the 40 rows of a list took 8.4 s to compile and 0.05 to run. Behind a pooler the
server's connection is not ours to set; the role can be (`ALTER ROLE x SET jit = off`)."""
_WRITERS, _VERBS, _SESSION = 0x42534352, 0x42535642, 0x42535345
"""Keys of the advisory locks that a writer holds to the end of its transaction.

The first is held alone by who writes whatever it likes, as SQLite has one writer, and shared by
those who name what they write: a recorder its session, a verb the sessions that it looks at. So
they wait for each other where they have a session in common, and all verbs for each other.
"""
TRY_LOCKS = (
    f"set_config('lock_timeout', '{BUSY_S}s', TRUE) IS NOT NULL"
    f" AND pg_try_advisory_xact_lock_shared({_WRITERS})"
    f" AND pg_try_advisory_xact_lock({_SESSION}, CAST($lock AS integer))"
)
"""True where a statement got the locks of a recorder; $lock is the session's ``lock_number``."""
_BEGIN = (
    f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '{BUSY_S}s';"
    f" SET LOCAL idle_in_transaction_session_timeout = '{ANSWER_S:.0f}s'; SELECT")
"""What is read once the locks are there is what others committed before, whatever isolation the
role has. Others wait for a writer's locks: one whose network is gone has them no longer than
that."""
_SETTINGS = (
    "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;"
    " SET default_transaction_isolation = 'read committed'")
"""The server misses a client after a minute; else mostly after two hours. Each statement by itself
sees what was committed, as in ``_BEGIN``."""
_TEXTS = frozenset(("text", "varchar", "bpchar", "json", "jsonb", "name", "unknown"))
_WHOLE = frozenset(("int2", "int4", "int8"))
T = TypeVar("T")


_OPEN: WeakSet[ServerConnection] = WeakSet()
_OPEN_GUARD = threading.Lock()


class ServerCursor:
    """Fulfils ``store.engine.connection.Cursor``: rows that are fetched.

    Attributes:
        records: The rows as the driver gives them, for who reads them by place: they have parts
            and lengths as tuples have, but are no tuples, and so not equal to one.
        rowcount: How many rows a change wrote.
        description: The names of the columns.
    """

    __slots__ = ("_at", "_row", "description", "records", "rowcount")

    def __init__(
        self, records: Sequence[Sequence[Any]], rowcount: int = -1,
        description: Sequence[tuple[str]] | None = None,
        row: Callable[[Iterable[Any]], tuple[Any, ...]] = tuple,
    ) -> None:
        """Take what a statement found.

        Args:
            records: The rows as the driver gives them.
            rowcount: How many rows a change wrote.
            description: The names of the columns.
            row: Makes a row of one of the driver's.
        """
        self.records, self._row, self._at = records, row, 0
        self.rowcount, self.description = rowcount, description

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        if self._at >= len(self.records):
            return None
        self._at += 1
        return self._row(self.records[self._at - 1])

    def fetchmany(self, size: int, /) -> list[Any]:
        """Return some of the rows that are left."""
        rows = list(map(self._row, self.records[self._at : self._at + size]))
        self._at += len(rows)
        return rows

    def close(self) -> None:
        """Leave the rows that are left."""
        self._at = len(self.records)

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        rows = list(map(self._row, self.records[self._at :] if self._at else self.records))
        self._at = len(self.records)
        return rows

    def __iter__(self) -> Iterator[Any]:
        """Go through the rows that are left."""
        return iter(self.fetchall())


class _Statement:
    """A statement that the server has prepared."""

    __slots__ = ("_kinds", "columns", "only_reads", "prepared", "turned")

    def __init__(self, turned: Turned, prepared: Any) -> None:
        self.turned, self.prepared, self.only_reads = turned, prepared, False
        self._kinds: list[tuple[Any, Callable[[Any], object]]] = [
            (_FIT.get(convert), convert)
            for convert in (converter(each.name) for each in prepared.get_parameters())]
        attributes = prepared.get_attributes()
        self.columns = [(each.name,) for each in attributes] if attributes else None

    def values(self, given: Parameters) -> list[object]:
        found = self.turned.values(given)
        # Most values fit as they are; a call for each would take longer than all else here.
        return [
            value if value is None or (type(value) is fit and (fit is int or "\0" not in value))
            else convert(value)
            for (fit, convert), value in zip(self._kinds, found, strict=True)]


def converter(kind: str) -> Callable[[Any], object]:
    """Return what makes a value fit a parameter, as SQLite takes any value for any column."""
    if kind in _TEXTS:
        return _as_text
    if kind in _WHOLE:
        return _as_whole
    return bytes if kind == "bytea" else _as_it_is


def _as_text(value: Any) -> object:
    if type(value) is str:
        # A text of PostgreSQL cannot hold it; JSON writes it in another way.
        return value.replace("\0", "�") if "\0" in value else value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace").replace("\0", "�")
    return str(int(value) if isinstance(value, bool) else value)


def _as_whole(value: Any) -> object:
    return value if type(value) is int else int(value)


def _as_it_is(value: Any) -> object:
    return value


_FIT: dict[Callable[[Any], object], type] = {_as_text: str, _as_whole: int}
"""Values of these types are left as they are, but for a text with a NUL."""


class ServerConnection:
    """A connection, used by one thread at a time.

    Attributes:
        url: The database.
        schemas: Names of the store's tables, and what they are called on the server.
        readings: What is read in the place of a host's tables with columns of other types.
        version: The server's major version.
        sql: The words of its engine for the columns of the store; set when these are known.
        is_pooled: Whether a pooler may give each transaction another connection of the server.
        total_changes: How many rows it has written.
        text_factory: As in ``sqlite3``, what makes a value of the bytes of a text; ``str`` leaves
            texts as they are. Bytes are taken for those of a text, as in the event log.
        claimed: Sessions that only its recorders may record.
        process: The server's process; a pooler makes a number up.
        rights_question: A statement that finds ``rights``; set when the store's tables are known.
        rights: What the server let the login do when the store was opened.
        waits: Which table a statement waits for, and who has locked it, as
            ``store.engine.server.lock_waits`` has found; None where that is not known.
    """

    def __init__(self, url: ServerUrl) -> None:
        """Connect.

        Args:
            url: The database.

        Raises:
            ServerTrouble: The server cannot be reached, or the driver is missing.
        """
        self.url = url
        self.schemas: Mapping[str, str] = {}
        self.readings: Mapping[str, str] = NO_READINGS
        self.sql: Dialect = SQLITE
        self.total_changes = 0
        self.text_factory: Callable[[bytes], Any] = str
        self.claimed: set[str] = set()
        self.rights_question = self.rights = ""
        self._rights_asked_at = 0.0
        self.waits: str | None = None
        self._beside: sqlite3.Connection | None = None
        self._loop = AnswerLoop()
        self._waited: asyncio.Future[Any] | None = None
        self._is_kept = self._was_asked_to_end = False
        self._was_broken_off = False
        self._is_beside_others = False
        self._statements: OrderedDict[str, _Statement] = OrderedDict()
        login = login_of(url)
        try:
            import_module("asyncpg")
        except ImportError:
            self._loop.close()
            raise ServerTrouble(url, MISSING_DRIVER) from None
        try:
            self._driver = self._run(connected(login, self._loop))
            self.is_pooled = self._run(is_pooled(self._driver))
            self.version = int(self._driver.get_server_version().major)
            if not self.is_pooled:
                jit = "; SET jit = off" if self.version >= _WITH_JIT else ""
                self._run(self._driver.execute(_SETTINGS + jit))
        except BaseException as error:
            self._loop.close()
            if not isinstance(error, Exception):
                raise
            hint = login.password_hint if is_of_password(error) else ""
            # Without the cause: the driver's errors may quote the URL.
            words = login.without_secrets(reason(error)) + hint
            refuses = str(getattr(error, "sqlstate", "")).startswith("28")
            raise ServerTrouble(url, words, is_refusal=refuses) from None
        self.search_path = login.search_path
        self.process = int(self._driver.get_server_pid())
        self._prepared_ever = 0
        with _OPEN_GUARD:
            _OPEN.add(self)

    @cached_property
    def scratch(self) -> sqlite3.Connection:
        """A SQLite database without content, whose functions edit JSON as in files."""
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    @property
    def waited(self) -> object:
        """The answer that is waited for now, as something to compare; None where there is none."""
        return self._waited

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return not self.is_closed and bool(self._driver.is_in_transaction())

    @property
    def is_closed(self) -> bool:
        """Whether it is closed, by either side."""
        return bool(self._driver.is_closed())

    def execute(self, sql: str, parameters: Parameters = (), /) -> ServerCursor:
        """Run a statement, and fetch all rows that it finds."""
        if sql.startswith(("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")):
            if sql == "BEGIN IMMEDIATE":
                self._begin_writing(f"pg_advisory_xact_lock({_WRITERS})")
            else:
                self._begin_or_end(sql)
                if sql in ("COMMIT", "ROLLBACK"):
                    self._end_beside(sql)
            return ServerCursor([])
        statement = self._prepared(sql)
        try:
            records = self._answer(self._fetching(statement, parameters))
        except ServerError as error:
            if not error.is_stale or self.in_transaction:
                raise
            statement = self._prepared(sql)
            records = self._answer(self._fetching(statement, parameters))
        return self._cursor(statement, records)

    def take_rights(self, question: str) -> None:
        """Learn what the server lets the login do.

        Args:
            question: A statement that finds it, as one text.
        """
        self.rights_question = question
        self.rights = self._found_rights()

    def has_other_rights(self, *, at_once: bool = False) -> bool:
        """Return whether the login may do something else than when the store was opened.

        Args:
            at_once: Ask the server now; else it is asked every ``ASKED_EVERY_S`` at most.
        """
        if not self.rights_question or not at_once and (
                time.monotonic() - self._rights_asked_at < ASKED_EVERY_S):
            return False
        return self._found_rights() != self.rights

    def _found_rights(self) -> str:
        self._rights_asked_at = time.monotonic()
        (found,) = self.execute(self.rights_question).fetchone()
        return str(found)

    def send(self, sql: str, parameters: Parameters, /) -> Sent | None:
        """Send a statement without waiting for its answer; None where ``execute`` has to.

        It is for an event loop that waits for the answer itself. Until it is there, nothing else
        may be done with the connection.

        Raises:
            sqlite3.Error: It cannot be sent.
        """
        statement = self._statements.get(sql)
        if statement is None or self._was_broken_off or not self._loop.may_be_left:
            return None
        self._statements.move_to_end(sql)
        return Sent(
            self._loop, self._fetching(statement, parameters),
            partial(self._cursor, statement), self._failure, ANSWER_S)

    def _cursor(self, statement: _Statement, records: list[Any]) -> ServerCursor:
        written = -1
        if not statement.only_reads:
            try:
                written = _written(statement.prepared)
            except Exception as error:
                # The connection was closed right after the answer: what was written is unknown.
                raise mapped(error, self.url) from None
            if written < 0:
                statement.only_reads = True
            else:
                self.total_changes += written
        made = self.text_factory
        row = tuple if made is str else partial(_exact, made)
        return ServerCursor(records, written, statement.columns, row)

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> ServerCursor:
        """Run a statement with each of several sets of values, all or none."""
        statement = self._prepared(sql)
        values = [statement.values(each) for each in parameters]
        if values:
            self._answer(statement.prepared.executemany(values), as_task=True)
        self.total_changes += len(values)
        return ServerCursor([], len(values))

    def read_host(self, readings: Mapping[str, str], as_text: Iterable[str]) -> None:
        """Read a host's tables, whose columns may have any type.

        Args:
            readings: Of tables with other types than ours, the statement that has their rows.
            as_text: Types whose values come as texts.
        """
        self.readings = readings
        for kind in as_text:
            self._answer(self._driver.set_type_codec(
                kind, schema="pg_catalog", format="text", encoder=str, decoder=str), as_task=True)
        self._statements.clear()

    def beside(self, path: Path) -> sqlite3.Connection:
        """Return a SQLite file whose transaction ends as that of the server does.

        Args:
            path: The file, which exists.
        """
        if self._beside is None:
            self._beside = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._beside.execute(f"PRAGMA busy_timeout = {BUSY_S * 1000}")
        if self.in_transaction and not self._beside.in_transaction:
            self._beside.execute("BEGIN IMMEDIATE")
        return self._beside

    def _end_beside(self, how: str) -> None:
        if self._beside is not None and self._beside.in_transaction:
            self._beside.execute(how)

    def begin_beside_others(self, session_id: str | None) -> None:
        """Begin a transaction of changes of some sessions, beside writers of other sessions.

        Args:
            session_id: The only session that a recorder writes; None for a verb, which calls
                ``lock_session`` before it reads a session.
        """
        first = f"pg_advisory_xact_lock({_VERBS}), " if session_id is None else ""
        last = "" if session_id is None else f", {_lock_of(session_id)}"
        self._begin_writing(f"{first}pg_advisory_xact_lock_shared({_WRITERS}){last}")
        self._is_beside_others = True

    @cached_property
    def changes_sequence(self) -> int | None:
        """The sequence that numbers ``changes``; None if there is none."""
        (found,) = self.execute(
            "SELECT CAST(CAST(pg_get_serial_sequence($1, 'seq') AS regclass) AS oid)",
            {"1": self.schemas.get("changes", "changes")}).fetchone()
        return None if found is None else int(found)

    def lock_session(self, session_id: str) -> None:
        """Keep others from changing a session until the transaction ends.

        All sessions are locked before the first is changed: the event log has a lock of its own.

        Args:
            session_id: The session; nothing is to do where no others write at all.
        """
        if self._is_beside_others and self.in_transaction:
            self.script(f"SELECT {_lock_of(session_id)}")

    def lock_all(self) -> None:
        """Keep all others from writing until the transaction ends; before any session is locked."""
        if self._is_beside_others and self.in_transaction:
            self.script(f"SELECT pg_advisory_xact_lock({_WRITERS})")
            self._is_beside_others = False

    def _begin_writing(self, locks: str) -> None:
        self._end_beside("ROLLBACK")
        self._is_beside_others = False
        try:
            self.script(f"{_BEGIN} {locks}")
        except ServerError as error:
            error.nothing_done = error.is_lost
            if self.in_transaction:
                self.script("ROLLBACK")
            if is_busy(error) and (who := holder(self, (_WRITERS, _VERBS, _SESSION))):
                error.name_holder(who)
            raise

    def _begin_or_end(self, sql: str) -> None:
        """Begin or end a transaction, which is never broken off halfway.

        A transaction that nobody ends would have all that follows on the connection fail.

        Args:
            sql: The statements.

        Raises:
            sqlite3.Error: The server's error. ``interrupt`` came while a transaction was begun;
                it was rolled back.
        """
        self._is_kept, self._was_asked_to_end = True, False
        try:
            self.script(sql)
            if self._was_asked_to_end and sql.startswith("BEGIN"):
                self.script("ROLLBACK")
                raise interrupted()
        finally:
            self._is_kept = False

    def script(self, sql: str, *, patient: bool = False) -> None:
        """Run statements without values, as they are.

        Args:
            sql: The statements.
            patient: Whether to wait as long as they take.
        """
        self._answer(self._driver.execute(sql), patient=patient)

    def interrupt(self) -> None:
        """Break off the statement that runs now; called from another thread."""
        waited = self._waited
        if self._is_kept:
            self._was_asked_to_end = True
        elif waited is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(waited.cancel)

    def cut_if_silent(self) -> bool:
        """End the connection where the server does not answer others either.

        Called from another thread, while a statement may run. It takes ``SILENT_S`` at most.

        Returns:
            Whether it was ended.
        """
        loop = AddressLoop()
        try:
            loop.run_until_complete(_limited(_answered(self.url), SILENT_S))
        except Exception as error:
            if not isinstance(error, OSError):  # It answers, if only that it takes no more.
                return False
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._driver.terminate)
            return True
        finally:
            loop.close()
        return False

    def close(self) -> None:
        """Close it; twice does no harm."""
        if self._loop.is_closed():
            return
        try:
            # The driver waits without a limit for the end of what was broken off.
            self._run(_limited(self._driver.close(timeout=CLOSE_S), CLOSE_S))
        except Exception:
            self._driver.terminate()
        self._loop.close()
        if self._beside is not None:
            self._beside.close()

    def _prepared(self, sql: str) -> _Statement:
        if self._driver.is_closed():
            # The driver says so before there is anything to await.
            raise mapped(ConnectionResetError("the connection is closed"), self.url)
        found = self._statements.get(sql)
        if found is not None:
            self._statements.move_to_end(sql)
            return found
        made = turned(sql, self.schemas, self.readings)
        self._prepared_ever += 1
        # Without a name, the driver sends its text with each execution.
        name = None if self.is_pooled else f"backscroll_{self._prepared_ever}"
        prepared = self._answer(self._driver.prepare(made.text, name=name), as_task=True)
        try:
            found = _Statement(made, prepared)
        except Exception as error:
            # The connection was closed right after the answer.
            raise self._failure(error) from None
        self._statements[sql] = found
        if len(self._statements) > _KEPT:
            self._statements.popitem(last=False)
        return found

    def _fetching(
        self, statement: _Statement, parameters: Parameters
    ) -> Coroutine[Any, Any, list[Any]]:
        values = statement.values(parameters)
        try:
            found: Coroutine[Any, Any, list[Any]] = statement.prepared.fetch(*values)
        except Exception as error:
            # The driver says that the connection is closed before there is anything to await.
            raise self._failure(error) from None
        return found

    def _answer(
        self, question: Coroutine[Any, Any, T], *, as_task: bool = False, patient: bool = False
    ) -> T:
        """Return what the server answers.

        Args:
            question: A call of the driver.
            as_task: Whether it asks for the running loop, as all calls may that wait for more
                than one answer.
            patient: Whether to wait as long as it takes.

        Raises:
            sqlite3.Error: The server's error, see ``store.engine.server.errors``.
        """
        try:
            limit_s = None if patient else ANSWER_S
            if as_task:
                return self._run(_limited(question, limit_s))
            return self._stepped(question, limit_s)
        except (asyncio.CancelledError, Exception) as error:
            raise self._failure(error) from None

    def _failure(self, error: BaseException) -> BaseException:
        """Return the error of a statement that was broken off, or that the server refused."""
        self._was_broken_off = True
        if isinstance(error, asyncio.CancelledError):
            return interrupted()
        if is_lost(error):
            self._driver.terminate()
        found = mapped(error, self.url)
        if self.waits and isinstance(found, ServerError) and (
                isinstance(error, TimeoutError) or is_busy(found)):
            found.name_wait(self.waits)
        if getattr(found, "is_stale", False):
            # Tables have changed, or somebody else forgot what was prepared.
            self._statements.clear()
        return found

    def _stepped(self, question: Coroutine[Any, Any, T], limit_s: float | None) -> T:
        """Return what the server answers to one statement, without a task of the loop.

        Args:
            question: A call in which the driver waits for one future.
            limit_s: How long to wait.
        """
        if self._was_broken_off or _is_in_loop():
            # The driver first waits for the end of what was broken off, which takes a task.
            self._was_broken_off = False
            return self._run(_limited(question, limit_s))
        try:
            while True:
                self._waited = waited = question.send(None)
                self._loop.wait(waited, limit_s)
        except StopIteration as end:
            found: T = end.value
            return found
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException:
            # Ctrl-C: what comes now would be taken for the next statement's answer.
            self._driver.terminate()
            question.close()
            raise
        finally:
            self._waited = None

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if _is_in_loop():
            return self._run_aside(coroutine)
        self._waited = task = self._loop.create_task(coroutine)
        try:
            return self._loop.run_until_complete(task)
        finally:
            self._waited = None
            if not task.done():  # Ctrl-C.
                self._was_broken_off = True
                task.cancel()
                self._loop.run_until_complete(asyncio.wait((task,)))

    def _run_aside(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run in another thread, as this one runs a loop already."""
        found: list[T] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                found.append(self._run(coroutine))
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return found[0]


def open_connections() -> list[ServerConnection]:
    """Return the connections of this process, to any server."""
    with _OPEN_GUARD:
        return [each for each in _OPEN if not each.is_closed]


def lock_number(session_id: str) -> int:
    """Return the number of a session's lock; others of the same number wait without need."""
    return crc32(session_id.encode("utf-8", "surrogateescape")) - (1 << 31)


def _lock_of(session_id: str) -> str:
    return f"pg_advisory_xact_lock({_SESSION}, {lock_number(session_id)})"


async def connected(login: Login, loop: AnswerLoop | None = None) -> Any:
    """Return a connection of the driver whose values are as SQLite has them.

    Args:
        login: How to connect.
        loop: The running loop, where it is one that waits for answers of this connection; else
            it is for looks alone.
    """
    asyncpg = import_module("asyncpg")
    base = asyncpg.Connection
    use(login.addresses)
    driver = await asyncpg.connect(
        **login.arguments, connection_class=base if loop is None else loop.connection_class(base),
        record_class=row_class(),
        timeout=CONNECT_S, command_timeout=LOOK_S if loop is None else None,
        # Statements are kept here, with what their values are.
        statement_cache_size=0, server_settings=SETTINGS,
    )  # fmt: skip
    # As SQLite has them: no booleans, and sums that are numbers of Python.
    await driver.set_type_codec(
        "bool", schema="pg_catalog", format="binary", encoder=_as_bool, decoder=_of_bool)
    await driver.set_type_codec(
        "numeric", schema="pg_catalog", format="text", encoder=str, decoder=_of_numeric)
    await driver.set_type_codec(
        "uuid", schema="pg_catalog", format="text", encoder=str, decoder=str)
    return driver


async def _limited(question: Coroutine[Any, Any, T], limit_s: float | None) -> T:
    async with asyncio.timeout(limit_s):
        return await question


async def _answered(url: ServerUrl) -> None:
    """Return once a server has answered on a connection of its own."""
    (await connected(login_of(url))).terminate()


async def is_pooled(driver: Any) -> bool:
    """Return whether a pooler is between, which may change the server's connection.

    A pooler cannot give the process id of a connection that it has yet to choose, so it makes
    one up; nothing kept in a connection, such as LISTEN or a prepared statement, lasts there.
    """
    return bool(await driver.fetchval("SELECT pg_backend_pid()") != driver.get_server_pid())


def _exact(made: Callable[[bytes], Any], record: Iterable[Any]) -> tuple[Any, ...]:
    """Return a row whose texts are what a ``text_factory`` makes of their bytes."""
    return tuple([
        made(value.encode()) if isinstance(value, str)
        else made(value) if isinstance(value, bytes) else value
        for value in record
    ])


def _as_bool(value: object) -> bytes:
    return b"\1" if value else b"\0"


def _of_bool(value: bytes) -> int:
    return value[0]


def _of_numeric(value: str) -> int | float:
    return int(value) if value.lstrip("-").isdecimal() else float(value)


def _written(prepared: Any) -> int:
    """Return how many rows a statement wrote; -1 for one that only reads."""
    kind, _, rest = (prepared.get_statusmsg() or "").partition(" ")
    return int(rest.split(" ")[-1]) if kind in ("INSERT", "UPDATE", "DELETE") else -1


def _is_in_loop() -> bool:
    """Return whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
