"""The async face of a store: one hop to a thread for each operation."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import aiosqlite

from store.clock import Clock, system_clock
from store.database import Database, Form, open_database
from store.errors import Refused
from store.ids import IdMinter

P = ParamSpec("P")
T = TypeVar("T")


class _Thread:
    """An aiosqlite connection that runs whole functions, not one cursor call a hop."""

    def __init__(self, path: Path, *, create: bool, write: bool) -> None:
        self._path, self._create, self._write = path, create, write
        self.database: Database | None = None
        self._connection = aiosqlite.Connection(self._connect, iter_chunk_size=64)

    def _connect(self) -> sqlite3.Connection:
        self.database = open_database(self._path, create=self._create, write=self._write)
        return self.database.connection

    async def start(self) -> Database:
        await self._connection
        assert self.database is not None
        return self.database

    async def run(self, work: Callable[[], T]) -> T:
        # aiosqlite offers no public way to run one function on its thread.
        return await self._connection._execute(work)  # type: ignore[no-any-return, no-untyped-call]

    def interrupt(self) -> None:
        if self.database is not None:
            self.database.connection.interrupt()

    async def close(self) -> None:
        await self._connection.close()


class Store:
    """A store that is open, with one thread for reading and one for writing.

    Query functions take the ``Database`` first: ``await store.read(sessions.page, ...)``.
    """

    def __init__(self, path: Path, *, clock: Clock = system_clock) -> None:
        """Name a store; ``open`` makes one that is ready."""
        self.path = path
        self.clock = clock
        self.ids = IdMinter(clock)
        self._reader: _Thread
        self._writer: _Thread | None = None
        self._database: Database

    @classmethod
    async def open(
        cls, path: Path, *, create: bool = False, clock: Clock = system_clock
    ) -> Store:
        """Open a store file.

        Args:
            path: The SQLite file.
            create: Make it, with our schema, where it is missing; migrate it where it is old.
            clock: Returns the present as epoch ms.

        Raises:
            StoreError: The file is missing or is no store.
        """
        store = cls(path, clock=clock)
        if create:
            open_database(path, create=True).close()
        store._reader = _Thread(path, create=False, write=False)
        store._database = await store._reader.start()
        return store

    @property
    def form(self) -> Form:
        """The form of the file."""
        return self._database.form

    async def read(
        self, query: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a query function on the reading connection, in one hop."""
        return await self._reader.run(lambda: query(self._database, *args, **kwargs))

    async def write(
        self, change: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function in one transaction on the writing connection.

        Raises:
            Refused: The store is read only; the message says why.
        """
        if self._writer is None:
            self._writer = _Thread(self.path, create=False, write=True)
            await self._writer.start()
        database = self._writer.database
        assert database is not None
        if database.read_only:
            raise Refused(database.read_only)
        return await self._writer.run(lambda: in_transaction(database, change, *args, **kwargs))

    def interrupt(self) -> None:
        """Break off the query that the reading connection runs now."""
        self._reader.interrupt()

    async def close(self) -> None:
        """Close both connections and their threads."""
        if self._writer is not None:
            await self._writer.close()
        await self._reader.close()


def in_transaction(
    database: Database,
    change: Callable[Concatenate[Database, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run a function in ``BEGIN IMMEDIATE`` ... ``COMMIT``, rolled back on any error."""
    connection = database.connection
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = change(database, *args, **kwargs)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return result
