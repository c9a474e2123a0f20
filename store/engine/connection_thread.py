"""A thread with one connection to a store, which runs whole functions."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

import aiosqlite

from store.engine.database import Database, open_database
from store.errors import StoreError

T = TypeVar("T")


class ConnectionThread:
    """An aiosqlite connection that runs whole functions, not one cursor call a hop.

    Attributes:
        closed: Whether it takes no more work.
    """

    def __init__(self, path: Path, *, write: bool) -> None:
        """Name a file; ``start`` opens it."""
        self.closed = False
        self._path, self._write = path, write
        self._opened: Database | None = None
        self._connection = aiosqlite.Connection(self._connect, iter_chunk_size=64)
        # Its thread would keep a process alive that ends with an error before close().
        self._connection._thread.daemon = True

    def _connect(self) -> sqlite3.Connection:
        self._opened = open_database(self._path, write=self._write)
        return self._opened.connection

    @property
    def database(self) -> Database:
        """The database that is open.

        Raises:
            StoreError: It is not.
        """
        if self._opened is None:
            raise StoreError(f"{self._path} is not open")
        return self._opened

    async def start(self) -> Self:
        """Open the file on the thread; returns when it is open."""
        opening = asyncio.ensure_future(self._wait_for_connection())
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            # Left alone, the thread would answer to a loop that may be closed by then.
            await asyncio.wait([opening])
            if not opening.exception():
                await self.close()
            raise
        return self

    async def _wait_for_connection(self) -> None:
        await self._connection

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function on the thread, after those that wait already."""
        # aiosqlite offers no public way to run one function on its thread.
        return await self._connection._execute(work)  # type: ignore[no-any-return, no-untyped-call]

    def interrupt(self) -> None:
        """Break off the query that runs now."""
        if self._opened is not None:
            self._opened.connection.interrupt()

    async def close(self) -> None:
        """Close the connection and end the thread, after what waits already is done."""
        if self.closed:
            return
        self.closed = True
        try:
            await self._connection.close()
        finally:
            if self._opened is not None:
                self._opened.close()
