"""A thread with one store connection, which runs whole functions."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Self, TypeVar, cast

from store.engine.database import SERVERS, Database, open_database
from store.engine.following import Followed, Following, Work
from store.engine.late_work import LateWork
from store.errors import StoreError

_PATIENCE_S = 0.75
"""After so long a server is asked whether it answers at all."""
T = TypeVar("T")
_Jobs = SimpleQueue[Callable[[], object] | None]
_Outcome = tuple[object, BaseException | None]


class ConnectionClosedError(StoreError):
    """A connection was closed before it could take the work; another one may."""


class ConnectionThread:
    """A connection on a thread of its own, for any number of event loops in other threads.

    What is queued is done, one after the other, even where the loop that queued it has ended: its
    result is then dropped, and the connection serves the others. The thread is a daemon, which does
    not keep a failed process alive.
    """

    def __init__(self, path: Path, *, write: bool) -> None:
        """Start a thread for a file; ``start`` opens the file."""
        self._path, self._write = path, write
        self._guard = threading.RLock()
        self._closed = False
        self._left = 0
        self._works_for: asyncio.AbstractEventLoop | None = None
        self._opened: Database | None = None
        self._owned: list[Database] = []
        self._following: Following | None = None
        self._stopped: list[Following] = []
        self._late = LateWork()
        self._jobs: _Jobs = SimpleQueue()
        serve = partial(_serve, self._jobs, self._owned)
        threading.Thread(target=serve, name="store", daemon=True).start()

    @property
    def closed(self) -> bool:
        """Whether it no longer accepts work."""
        return self._closed

    @property
    def is_open(self) -> bool:
        """Whether it was opened, and accepts work."""
        return self._opened is not None and not self._closed

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
        """Open the file on the thread, unless it is open; returns when it is."""
        try:
            await self.run(self._open)
        except (Exception, asyncio.CancelledError):
            # Whoever is cancelled again leaves, and it is closed all the same.
            await self.close()
            raise
        return self

    def _open(self) -> None:
        if self._opened is not None:
            return  # The loop that began this has ended.
        self._opened = open_database(self._path, write=self._write)
        self._owned.append(self._opened)

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function on the thread, after those already queued, and return its result.

        Raises:
            ConnectionClosedError: It is closed.
        """
        self._late.leave()
        outcomes = await self._call(work)
        # Taken out: the thread holds on to the list for a moment.
        return cast(T, _taken(outcomes))

    def _call(
        self, work: Callable[[], object], *, is_last: bool = False
    ) -> asyncio.Future[list[_Outcome]]:
        """Queue a function; return what gets its result, or its error, in a list.

        Args:
            work: The function.
            is_last: Whether nothing is accepted after it.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[_Outcome]] = loop.create_future()

        def called() -> Callable[[], object]:
            return partial(_tell, answer, [_outcome(work)])

        with self._guard:
            self._refuse_closed()
            self._leave_to_thread()
            self._interrupt_for_nobody()
            self._queue(called, loop)
            self._closed = is_last
        return answer

    def post(self, work: Work) -> None:
        """Run a function on the thread, after those already queued; return without waiting.

        Args:
            work: The function, which raises nothing. What it returns is called on the thread,
                too, once that has nothing else to do for it.

        Raises:
            ConnectionClosedError: It is closed.
        """
        with self._guard:
            self._refuse_closed()
            if not self._late.add_now(lambda: work()()):
                self._leave_to_thread()
                self._queue(work)

    def later(self, work: Callable[[], object], after_s: float) -> None:
        """Run a function on the thread within a time, mostly without waking it for that.

        Args:
            work: The function, which raises nothing.
            after_s: The time.

        Raises:
            ConnectionClosedError: It is closed.
        """
        with self._guard:
            self._refuse_closed()
            if self._late.add(work, after_s):
                self._queue(partial(_served, self._late))

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ConnectionClosedError(f"the store {self._name} was closed; open it again")

    @property
    def _name(self) -> str:
        return str(self._path) if self._opened is None else self._opened.name

    def _queue(self, work: Work, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Queue a function, with the guard held.

        Args:
            work: The function.
            loop: The loop that waits for its result.
        """
        self._left += 1
        self._jobs.put(partial(self._do, work, loop))

    def _do(self, work: Work, loop: asyncio.AbstractEventLoop | None) -> None:
        with self._guard:
            self._works_for = loop
        tell: Callable[[], object] = _tell_nobody
        try:
            tell = work()
        finally:
            with self._guard:
                self._works_for = None
                self._left -= 1
            # Who hears of it finds the thread free.
            tell()

    @property
    def _is_idle(self) -> bool:
        """Whether nothing is queued, runs, or is waited for."""
        return not self._left and (self._following is None or self._following.followed is None)

    def follow(self, send: Callable[[], Followed | None]) -> bool:
        """Send a statement, and wait for its answer in the running loop, where the thread is idle.

        Args:
            send: Sends it on this thread's connection; returns None where the thread has to.

        Returns:
            Whether it was sent.
        """
        loop = asyncio.get_running_loop()
        with self._guard:
            if self._closed or not self._is_idle:
                return False
            followed = send()
            if followed is None:
                return False
            following = self._following
            if following is None or following.loop is not loop:
                self._leave_to_thread()
                self._unwatch_in(loop)
                following = self._following = Following(
                    loop, self._guard, self._leave_to_thread, self.post)
            following.follow(followed)
            return True

    def _leave_to_thread(self) -> None:
        """Have the thread wait for what a loop waits for, before it does anything else."""
        with self._guard:
            following, self._following = self._following, None
            if following is None:
                return
            followed = following.stop()
            self._stopped = [each for each in (*self._stopped, following) if each.is_watching]
            if followed is not None:
                self._queue(followed.wait)

    def _unwatch_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have a loop watch no more what other threads stopped: it would end what begins now."""
        for each in self._stopped:
            if each.loop is loop:
                each.unwatch()

    def _interrupt_for_nobody(self) -> None:
        """Break off a query whose loop has ended; a change is left to its end."""
        if not self._write and self._works_for is not None and self._works_for.is_closed():
            self.interrupt()

    def interrupt(self) -> None:
        """Interrupt the running query."""
        if self._opened is not None:
            with contextlib.suppress(sqlite3.ProgrammingError):  # It is closed already.
                self._opened.connection.interrupt()

    async def close(self) -> None:
        """Close the connection and end the thread, after the queued functions.

        A server that does not answer is waited for two seconds or so; the thread ends later then.
        """
        closing = self.begin_close()
        if closing is not None and (
            str(self._path) not in SERVERS or await self._is_waited_for(closing)
        ):
            _taken(await closing)

    async def _is_waited_for(self, closing: asyncio.Future[list[_Outcome]]) -> bool:
        """Wait for the end of a connection for as long as its server answers.

        Args:
            closing: The end.

        Returns:
            Whether it has come.
        """
        was_cut = False
        while not (await asyncio.wait((closing,), timeout=_PATIENCE_S))[0]:
            if was_cut or self._opened is None:
                return False
            was_cut = await asyncio.to_thread(self._opened.remote.cut_if_silent)
        return True

    def begin_close(self) -> asyncio.Future[list[_Outcome]] | None:
        """Begin what ``close`` does; return what it waits for, None where it was begun before."""
        self._late.leave()
        with self._guard:
            if self._closed:
                return None
            closing = self._call(partial(_close, self._owned), is_last=True)
            self._jobs.put(None)
            return closing

    def __del__(self) -> None:
        """End the thread of a connection that nobody has closed."""
        if self._closed:
            return
        warnings.warn(f"{self._name} was not closed", ResourceWarning, source=self, stacklevel=1)
        self._jobs.put(None)


def _serve(jobs: _Jobs, owned: list[Database]) -> None:
    """Do what is queued, up to None. It holds on to no work while it waits.

    Args:
        jobs: The queue.
        owned: What is closed at the end, where nobody could: a database that is garbage together
            with a loop may not be closed by its thread while the collector takes it apart.
    """
    while (job := jobs.get()) is not None:
        _try(job)
        del job
    _try(partial(_close, owned))


def _try(job: Callable[[], object]) -> None:
    """Do something whose mistake must not end the work of others; it is reported."""
    try:
        job()
    except BaseException as error:
        threading.excepthook(threading.ExceptHookArgs(
            (type(error), error, error.__traceback__, threading.current_thread())))


def _close(owned: list[Database]) -> None:
    while owned:
        owned.pop().close()


def _outcome(work: Callable[[], object]) -> _Outcome:
    """Return the result of a function, or its error."""
    try:
        return work(), None
    except BaseException as error:
        return None, error


def _taken(outcomes: list[_Outcome]) -> object:
    """Take an outcome out of its list; raise it where it is an error."""
    result, error = outcomes.pop()
    if error is None:
        return result
    try:
        raise error
    finally:
        del error  # Its traceback has this frame.


def _tell(answer: asyncio.Future[list[_Outcome]], outcomes: list[_Outcome]) -> None:
    with contextlib.suppress(RuntimeError):  # Its loop has ended: nobody waits.
        answer.get_loop().call_soon_threadsafe(_set, answer, outcomes)


def _set(answer: asyncio.Future[list[_Outcome]], outcomes: list[_Outcome]) -> None:
    if not answer.done():
        answer.set_result(outcomes)


def _served(late: LateWork) -> Callable[[], None]:
    late.serve()
    return _tell_nobody


def _tell_nobody() -> None:
    """Tell nobody."""
