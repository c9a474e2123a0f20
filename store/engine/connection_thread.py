"""A thread with one store connection, which runs whole functions."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self, TypeVar, cast

import aiosqlite

from store.engine.database import Database, open_database
from store.engine.following import Followed, Following, Work
from store.engine.late_work import LateWork
from store.errors import StoreError

T = TypeVar("T")
_LOOK_S = 0.1


class ConnectionThread:
    """An aiosqlite connection that runs whole functions instead of single cursor calls.

    An event loop may end while a function runs for it. The thread, which has nobody to answer to,
    then closes the connection and does nothing more; the store opens another one where it is used
    in another loop.
    """

    def __init__(self, path: Path, *, write: bool) -> None:
        """Make a thread for a file; ``start`` opens the file."""
        self._closed = False
        self._loops: list[asyncio.AbstractEventLoop] = []
        self._path, self._write = path, write
        self._opened: Database | None = None
        self._closing: asyncio.Future[None] | None = None
        self._following: Following | None = None
        self._late = LateWork()
        self._abandoned = Event()
        self._connection = _daemonic(self._connect)

    def _connect(self) -> sqlite3.Connection:
        self._opened = open_database(self._path, write=self._write)
        # aiosqlite passes its arguments on unchanged: here functions instead of SQL.
        return cast(sqlite3.Connection, _Functions(self._opened))

    @property
    def closed(self) -> bool:
        """Whether it no longer accepts work."""
        return self._closed or any(loop.is_closed() for loop in tuple(self._loops))

    @property
    def database(self) -> Database:
        """The open database.

        Raises:
            StoreError: It is not open.
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
            # Otherwise the thread would call back into a loop that may be closed.
            self._closing = asyncio.ensure_future(self._close_once_open(opening))
            # Whoever is cancelled again leaves, and it is closed all the same.
            await asyncio.shield(self._closing)
            raise
        return self

    async def _close_once_open(self, opening: asyncio.Future[None]) -> None:
        await asyncio.wait([opening])
        if not opening.exception():
            await self.close()

    async def _wait_for_connection(self) -> None:
        await self._connection

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function on the thread, after those already queued, and return its result."""
        self._late.leave()
        self._leave_to_thread()
        done: Any = await self._connection.execute_fetchall(self._for_loop(work))
        # Taken out: the thread holds on to the list until its next work.
        return cast(T, done.pop())

    def post(self, work: Work) -> None:
        """Run a function on the thread, after those already queued; return without waiting.

        Args:
            work: The function, which raises nothing. What it returns is called on the thread,
                too, once that has nothing else to do for it.
        """
        if not self._late.add_now(lambda: work()()):
            self._leave_to_thread()
            self._queue(work)

    def later(self, work: Callable[[], object], after_s: float) -> None:
        """Run a function on the thread within a time, mostly without waking it for that.

        Args:
            work: The function, which raises nothing.
            after_s: The time.
        """
        if self._late.add(work, after_s):
            self._queue(partial(_served, self._late))

    def _queue(self, work: Work) -> None:
        tells: list[Callable[[], object]] = []
        queued = self._for_loop(lambda: tells.append(work()), tells)
        # Up to where it waits, which is after it has queued the function.
        next(self._connection.execute_fetchall(queued).__await__())

    def _for_loop(
        self, work: Callable[[], object], tells: Iterable[Callable[[], object]] = ()
    ) -> str:
        """Return what aiosqlite takes for its SQL: a function that works for the running loop.

        Args:
            work: What it does.
            tells: Called once the thread has nothing else to do for it.
        """
        loop = asyncio.get_running_loop()

        def work_for_loop() -> object:
            try:
                return work()
            finally:
                is_over = loop.is_closed()
                if not is_over:
                    self._loops.remove(loop)
                for tell in tells:
                    tell()
                if is_over:
                    self._abandon()

        self._loops.append(loop)
        return cast(str, work_for_loop)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued, runs, or is waited for."""
        return not self._loops and (self._following is None or self._following.followed is None)

    def follow(self, followed: Followed) -> None:
        """Wait in the running loop for a statement that was sent on this thread's connection.

        Args:
            followed: The statement; the thread was idle.
        """
        loop = asyncio.get_running_loop()
        following = self._following
        if following is None or following.loop is not loop:
            self._leave_to_thread()
            following = self._following = Following(
                loop, self._leave_to_thread, self.post)
        following.follow(followed)

    def _leave_to_thread(self) -> None:
        """Have the thread wait for what a loop waits for, before it does anything else."""
        following, self._following = self._following, None
        if following is None:
            return
        followed = following.stop()
        if followed is not None:
            self.post(followed.wait)

    def _abandon(self) -> None:
        """Close the connection on its thread, and never return."""
        if self._opened is not None:
            self._opened.close()
        self._abandoned.set()
        Event().wait()

    def _wait_for_abandoned(self) -> None:
        """Wait for the end of what the thread does for a loop that has ended."""
        if not self._write:
            with contextlib.suppress(sqlite3.ProgrammingError):  # It is closed already.
                self.interrupt()
        while self.closed and not self._abandoned.wait(_LOOK_S):
            pass

    def interrupt(self) -> None:
        """Interrupt the running query."""
        if self._opened is not None:
            self._opened.connection.interrupt()

    async def close(self) -> None:
        """Close the connection and end the thread, after the queued functions."""
        if self._closed:
            return
        self._late.leave()
        self._leave_to_thread()
        if self.closed:
            await asyncio.to_thread(self._wait_for_abandoned)
            return
        self._closed = True
        try:
            await self._connection.close()
        finally:
            if self._opened is not None:
                self._opened.close()


def _served(late: LateWork) -> Callable[[], None]:
    late.serve()
    return _tell_nobody


def _tell_nobody() -> None:
    """Tell nobody."""


class _Functions:
    """Replaces the connection that aiosqlite owns: ``execute`` calls a function."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def execute(self, work: Callable[[], Any], _: object) -> _Done:
        """Call a function on aiosqlite's thread."""
        return _Done([work()])

    def close(self) -> None:
        """Close the real connection."""
        self._database.connection.close()


class _Done:
    """A function's result as the only row of a cursor."""

    __slots__ = ("fetchall",)

    def __init__(self, rows: list[Any]) -> None:
        self.fetchall = lambda: rows


def _daemonic(connect: Callable[[], sqlite3.Connection]) -> aiosqlite.Connection:
    """Return a connection with a daemon thread, which does not keep a failed process alive.

    A new thread is a daemon if the thread that creates it is one.
    """
    made: list[aiosqlite.Connection] = []
    maker = Thread(
        target=lambda: made.append(aiosqlite.Connection(connect, iter_chunk_size=64)), daemon=True
    )
    maker.start()
    maker.join()
    return made[0]
