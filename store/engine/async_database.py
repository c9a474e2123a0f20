"""A store file in an event loop: one hop to a thread for each operation."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from store.engine.beginning import Ended, begin, begin_later
from store.engine.connection_thread import ConnectionClosedError, ConnectionThread
from store.engine.database import Database, Form, in_transaction, open_database
from store.engine.loops_lock import CLOSE_S, LoopsLock
from store.engine.transactions import OfSession, for_user
from store.errors import Refused, StoreError
from store.ids import IdMinter
from store.system.clock import Clock, system_clock

P = ParamSpec("P")
T = TypeVar("T")


class _Moved(Exception):
    """The file must be opened again to see what is in it now."""


class AsyncDatabase:
    """An open store file, with one thread for reading and one for writing.

    Query functions take the ``Database`` first: ``await store.read(sessions.page, ...)``.
    Writes of other processes are seen by the next read. ``async with await Store.open(...)``
    closes it. ``store.store.Store`` adds what hosts use.
    """

    def __init__(
        self, path: Path, *, clock: Clock = system_clock, read_only: str | None = None
    ) -> None:
        """Name a store; ``open`` makes one that is ready.

        Args:
            path: The SQLite file.
            clock: Returns the present as epoch ms.
            read_only: Why ``write`` refuses; None to allow it.
        """
        self.path = path
        self.clock = clock
        self.ids = IdMinter(clock)
        self._read_only = read_only
        self._reader: ConnectionThread
        self._writer: ConnectionThread | None = None
        self._changing = LoopsLock()
        self._generation = 0
        self._closed = False

    @classmethod
    async def open(
        cls, path: str | Path, *, create: bool = False, clock: Clock = system_clock,
        read_only: str | None = None,
    ) -> Self:
        """Open a store file.

        Args:
            path: The SQLite file. ``~`` is not expanded.
            create: Make it, with our schema, where it is missing; migrate it where it is old.
            clock: Returns the present as epoch ms.
            read_only: Why ``write`` refuses, whatever the file allows; None to allow it.

        Raises:
            StoreError: The file is missing or is no store.
        """
        path = Path(path)
        store = cls(path, clock=clock, read_only=read_only)
        if create:
            await asyncio.to_thread(lambda: open_database(path, create=True, write=False).close())
        store._reader = await ConnectionThread(path, write=False).start()
        return store

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @property
    def form(self) -> Form:
        """The form of the file."""
        return self._reader.database.form

    @property
    def read_only(self) -> str | None:
        """Why no verb can write to this store, or None when they can.

        Of a store on a server, as it was at the last read, or two seconds before that.
        """
        return self._read_only or self._reader.database.file_read_only

    async def read(
        self, query: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a query function on the reading connection and return its result.

        If the file must be opened again to see other programs' writes, this does so, and the
        function may run twice.

        Args:
            query: The function; its first argument is the database.
            args: Its further positional arguments.
            kwargs: Its keyword arguments.

        Raises:
            StoreError: The file is locked, damaged or missing; the message says what to do.
        """
        while True:
            self._refuse_closed()
            reader = self._reader
            if reader.closed and not self._closed:
                await self._reopen(reader)
                continue
            try:
                work = partial(_looked_at, reader.database, query, *args, **kwargs)
                return await reader.run(work)
            except _Moved:
                await self._reopen(reader)
            except ConnectionClosedError:
                continue  # A task of another loop has opened it again, or closed the store.
            except sqlite3.Error as error:
                self._refuse_closed()  # Closing breaks off what is read.
                raise for_user(error, self.path) from error

    async def pulse(self) -> tuple[int, int]:
        """Return what differs from the last call when another connection has written.

        Own writes count as another connection's. Costs one hop and about 3 us of SQLite.
        """
        (version,) = await self.read(_data_version)
        return self._generation, version

    async def write(
        self, change: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function in one transaction on the writing connection and return its result.

        While another program writes, it waits for ``busy_timeout``. Cancelling a task that
        waits here does not stop a transaction that has started.

        Args:
            change: The function; its first argument is the database.
            args: Its further positional arguments.
            kwargs: Its keyword arguments.

        Raises:
            Refused: The store is read only, or locked for too long; the message says why.
            StoreError: The file is damaged, or its disk full.
        """
        self._refuse_closed()
        if self._read_only is not None:
            raise Refused(self._read_only)
        was_lost = False
        while True:
            writer = await self._writing()
            database = writer.database
            work = partial(in_transaction, database, change, *args, **kwargs)
            try:
                if database.read_only:
                    await self._renew_reading(writer)
                    continue
                return await writer.run(work)
            except ConnectionClosedError:
                self._refuse_closed()  # Else a task of another loop has opened it again.
            except sqlite3.Error as error:
                # A server that was started again has closed the connection before anything.
                if was_lost or not getattr(error, "nothing_done", False):
                    raise for_user(error, self.path, writing=True) from error
                was_lost = True

    @property
    def can_begin(self) -> bool:
        """Whether ``begin`` has a connection to write on; ``write`` opens one."""
        writer = self._writer
        return (writer is not None and writer.is_open and not self._closed
                and self._read_only is None and not self._changing.locked()
                and not writer.database.read_only)

    def begin(self, change: OfSession, ended: Ended) -> None:
        """Begin what ``write`` does, and return without waiting.

        Args:
            change: The function.
            ended: Called once it has ended, with the error that ``write`` would raise: on the
                thread that writes, or in the running loop. Where a file was replaced or a
                connection was lost, ``write`` may still go well, as it opens the store again.

        Raises:
            StoreError: The connection was closed.
        """
        assert self._writer is not None
        begin(self._writer, change, partial(self._end, ended))

    def begin_later(
        self, take: Callable[[], tuple[OfSession, Ended] | None], after_s: float
    ) -> bool:
        """Begin a write within a time, where that takes no thread to be woken: in a file.

        Args:
            take: Returns the function and the ``ended`` of ``begin``, or None for nothing to
                write; called on the thread that writes.
            after_s: The time.

        Returns:
            Whether it will be begun.
        """
        writer = self._writer
        if writer is None or not writer.is_open or writer.database.server is not None \
                or not self.can_begin:
            return False

        def taken() -> tuple[OfSession, Ended] | None:
            found = take()
            return None if found is None else (found[0], partial(self._end, found[1]))

        try:
            begin_later(writer, taken, after_s)
        except ConnectionClosedError:
            return False
        return True

    async def begun_ended(self) -> None:
        """Return once nothing that was begun is being written, for whichever loop.

        Raises:
            StoreError: The store is closed, or cannot be opened for writing.
        """
        self._refuse_closed()
        while self._writer is not None:
            try:
                return await (await self._writing()).run(_nothing)
            except ConnectionClosedError:
                self._refuse_closed()

    async def _renew_reading(self, writer: ConnectionThread) -> None:
        """Close a connection that cannot write, where another one could.

        Raises:
            Refused: The store is read only.
        """
        database = writer.database
        if database.server is None or not await writer.run(database.is_stale):
            raise Refused(str(database.read_only))
        async with self._changing.held():
            if self._writer is writer:
                self._writer = None
        await writer.close()

    def _end(self, ended: Ended, error: BaseException | None) -> None:
        ended(None if error is None else self._raised(error))

    def _raised(self, error: BaseException) -> BaseException:
        """Return the error that ``write`` raises for one of a change."""
        if not isinstance(error, sqlite3.Error):
            return error
        found = for_user(error, self.path, writing=True)
        if found is not error:
            found.__cause__ = error
        return found

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreError(
                f"the store {self._reader.database.name} is closed; open it again")

    def interrupt(self) -> None:
        """Break off the query that the reading connection runs now."""
        self._reader.interrupt()

    async def close(self) -> None:
        """Close both connections and their threads; twice does no harm.

        Whoever is cancelled here does not wait for the end of it.
        """
        if self._closed:
            return
        self._closed = True
        self._reader.interrupt()
        is_file = self._reader.database.server is None
        try:
            async with self._changing.held(within_s=None if is_file else CLOSE_S):
                await self._close_threads()
        except TimeoutError:
            self._begin_close()  # Somebody opens it again on a server that does not answer.
        except asyncio.CancelledError:
            self._begin_close()  # Perhaps before it was their turn.
            raise

    def _begin_close(self) -> None:
        for thread in filter(None, (self._reader, self._writer)):
            thread.begin_close()

    async def _close_threads(self) -> None:
        if self._writer is not None and self._writer.is_open and (
            self._writer.database.server is not None
        ):
            await asyncio.gather(self._reader.close(), self._writer.close())
            return
        # The writer last: only a writing connection can take away the -wal it has made.
        try:
            await self._reader.close()
        finally:
            if self._writer is not None:
                await self._writer.close()

    async def __aenter__(self) -> Self:
        """Return the store."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store."""
        await self.close()

    async def _reopen(self, stale: ConnectionThread) -> None:
        async with self._changing.held():
            if self._reader is not stale or self._closed:
                return
            await self._open_reader()
            await stale.close()

    @asynccontextmanager
    async def none_open(self) -> AsyncIterator[None]:
        """Close every connection for a while, as one that is open holds on to its ``-wal``.

        SQLite lets all connections of a process to one file share what it has beside it,
        even what has been deleted. Whoever reads meanwhile waits.

        Raises:
            StoreError: What is there now is no store; a later read tries again.
        """
        async with self._changing.held():
            if not self._closed:
                await self._close_threads()
                self._writer = None
            yield
            if not self._closed:
                await self._open_reader()

    async def _open_reader(self) -> None:
        """Read on a new connection from now on."""
        self._reader = await ConnectionThread(self.path, write=False).start()
        self._generation += 1
        if self._closed:  # Perhaps by a task that was cancelled and waits no more.
            await self._reader.close()

    async def _writing(self) -> ConnectionThread:
        async with self._changing.held():
            self._refuse_closed()
            writer = self._writer
            if writer is not None and (
                writer.closed or (writer.is_open and writer.database.moved())
            ):
                self._writer = None
                await writer.close()
                self._refuse_closed()
            # Kept before it is open, as this loop may end, and another one goes on.
            writer = self._writer = self._writer or ConnectionThread(self.path, write=True)
            if not writer.is_open:
                try:
                    await writer.start()
                except StoreError as error:
                    raise Refused(str(error)) from error
            return writer


def _nothing() -> None:
    """Take one's turn on a thread."""


def _data_version(database: Database) -> tuple[int]:
    return (database.data_version(),)


def _looked_at(
    database: Database,
    query: Callable[Concatenate[Database, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run a query on a file that has not moved, before or (where it failed) meanwhile."""
    if database.moved():
        raise _Moved
    try:
        if database.has_other_rights():
            raise _Moved
        return query(database, *args, **kwargs)
    except sqlite3.DatabaseError:
        if database.moved():
            raise _Moved from None
        raise
