"""When and where what a recording has is saved: in an event loop, and on the thread of its store.

Most saves are begun and not waited for. In a file the thread of the store takes what waits itself,
a little after it came; to a server the loop sends a statement. Whatever else a recorder does is
done in turn, after the save that was begun. A save that the store refuses is tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from store.engine.async_database import AsyncDatabase
from store.engine.transactions import OfSession, is_lost
from store.errors import BackscrollError, Refused
from store.recorder.backoff import AGAIN, Backoff
from store.recorder.deadline import Deadline
from store.recorder.procedures import Procedure
from store.recorder.recording import Recording, Saving
from store.recorder.turns import Turns

if TYPE_CHECKING:
    from store.engine.beginning import Ended

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Begun:
    """A save that was begun.

    Attributes:
        turns: The line of the loop that it was begun in.
        since: When it was begun, by the monotonic clock.
        waiters: Get its error, in that loop.
        has_ended: Whether it has.
        error: What it ended with.
    """

    saving: Saving
    turns: Turns
    since: float
    waiters: list[asyncio.Future[BaseException | None]] = field(default_factory=list)
    has_ended: bool = False
    error: BaseException | None = None


class Saver:
    """Saves what a recording has, and does all else that its recorder asks of the store.

    Attributes:
        guard: Held by who looks at the recording out of turn: chunks and the thread of the store.
        backoff: How often the store has refused.
        closed: Whether nothing is saved any more.
        loop: The event loop that it is used in.
        calls: What is at work or waits, but for a save that was begun: that has its rows.
        is_late: Whether the thread of the store will take what waits.
        due: When what waits is saved, where that thread will not.
    """

    def __init__(self, store: AsyncDatabase, recording: Recording) -> None:
        """Begin in the running loop."""
        self._store, self._recording = store, recording
        self.guard = threading.RLock()
        self.backoff = Backoff()
        self.closed = False
        self._use(Turns())
        self._begun: _Begun | None = None
        self.due = Deadline(self._save_due)
        self.is_late = False
        self._took_s = 0.0

    def end(self) -> None:
        """Save nothing any more."""
        self.closed = True
        self.due.end()

    # -- calls in turn

    def _use(self, turns: Turns) -> None:
        self._turns, self.loop, self.calls = turns, turns.loop, turns.calls

    def enter(self) -> None:
        """Begin a call, which may be the first one in another loop.

        Raises:
            Refused: A call is at work in a loop that has not ended.
        """
        if self.loop is asyncio.get_running_loop():
            return
        turns, begun = self._turns, self._begun
        if not turns.loop.is_closed() and (turns.is_used or (begun is not None and begun.waiters)):
            raise Refused(
                f"the recorder of session {self._recording.session_id} is at work in another event"
                " loop; use it in one loop at a time")
        self.due.end()
        turns.abandon()
        self._use(Turns())

    async def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do something after what other tasks began; a caller that is cancelled does not end it.

        What is being written then is written whole, and counted once.
        """
        self.enter()

        async def after_save() -> T:
            await self._save_end()
            return await work()

        return await self._turns.call(after_save)

    async def run(self, procedure: Procedure[T]) -> T:
        """Do what a procedure asks of the store; for the ``work`` of a ``call``.

        Raises:
            Refused: It is closed.
        """
        store = self._store
        if self.closed:
            raise Refused(
                f"the recorder of session {self._recording.session_id} is closed; open another"
                " one with Store.recorder")
        try:
            operation = next(procedure)
            while True:
                run = store.write if operation.writes else store.read
                try:
                    result = await run(operation.work)
                except BaseException as error:
                    operation = procedure.throw(error)
                else:
                    operation = procedure.send(result)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    async def save_or_wait(self) -> None:
        """Save what waits, or later where the store is held; for the ``work`` of a ``call``."""
        if not self._is_put_off:
            with contextlib.suppress(Refused):
                await self.save_now(self._recording.save())

    async def save_or_refuse(self) -> None:
        """Save what waits; for the ``work`` of a ``call``.

        Raises:
            Refused: The store is held, and too much waits.
        """
        waiting = self._recording.waiting
        try:
            await self.save_now(self._recording.save())
        except Refused as error:
            raise Refused(
                f"{error}. {waiting:,} bytes of session {self._recording.session_id} wait for it"
                " and are kept; this chunk was not taken: feed it again when the store is free"
            ) from error

    async def save_now(self, saving: Procedure[None]) -> None:
        """Save at once, for the ``work`` of a ``call``; what is refused is tried again later.

        Raises:
            Refused: Another program holds the store.
        """
        self.due.take_back()
        waiting = self._recording.waiting
        try:
            await self.run(saving)
        except Refused as error:
            if not self.closed:
                self._try_again(error, waiting)
            raise
        if self.backoff.went_well():
            self._recording.report(AGAIN)

    @property
    def _is_put_off(self) -> bool:
        """Whether the store was held at the last try, and the next one is due later."""
        return self.backoff.tries > 0 and self.due.at is not None

    def _try_again(self, error: Refused, waiting: int) -> None:
        """Keep the rows, which are written a little later, or by ``close``.

        Args:
            error: Why they cannot be written now.
            waiting: The bytes that could not.
        """
        self._recording.report(str(error))
        # Where the try failed before it took a batch, they are counted still.
        counted = self._recording.waiting
        self._recording.waiting = (counted if counted >= waiting else counted + waiting) or 1
        self.due.set(self.backoff.failed())

    # -- saves out of turn

    async def save_at_once(self) -> None:
        """Save what waits, or later where the store is held."""
        begun = self._begin()
        if begun is None or not await self._is_saved(begun):
            await self.call(self.save_or_wait)

    async def flush(self) -> None:
        """Save what waits, whatever the policy says.

        Raises:
            Refused: Another program holds the store.
        """
        if self.loop is not asyncio.get_running_loop():
            self.enter()
        begun = self._begin(exact=True)
        if begun is None or not await self._is_saved(begun, or_refuse=True):
            await self.call(lambda: self.save_now(self._recording.save(exact=True)))

    def save_soon(self) -> None:
        """Have what waits saved within the time of the policy, or now where that is over.

        It is for a recording that nobody saves late, and that ``due`` has no moment for yet or
        one that has come: the timer would wake the loop a moment later, for this alone.
        """
        if self.due.at is not None:
            self.due.take_back()
            self._save_due()
        elif self._recording.waiting:
            self._plan()

    def _begin(self, *, exact: bool = False) -> _Begun | None:
        """Begin to save what waits where nobody else saves, with no task and no lock.

        Args:
            exact: As for ``Recording.save``.

        Returns:
            None where nothing was begun, and a call has to.
        """
        with self.guard:
            if (self._begun or self.closed or self.backoff.tries or self._turns.is_taken
                    or not self._store.can_begin):
                return None
            begun = self._taken(exact=exact)
        if begun is None:
            return None
        self.due.take_back()
        try:
            self._store.begin(begun.saving.change, partial(self._ended, begun))
        except Exception as error:
            # It is for a call, which says why.
            self._note_end(begun, error)
            return None
        return begun

    def _taken(self, *, exact: bool = False) -> _Begun | None:
        """Take what waits, with the guard held."""
        saving = self._recording.begin_save(exact=exact)
        if saving is not None:
            self._begun = _Begun(saving, self._turns, time.monotonic())
        return self._begun

    def _take_late(self) -> tuple[OfSession, Ended] | None:
        """Take what waits, on the thread that writes; None where the loop has to, or need not."""
        with self.guard:
            self.is_late = False
            if not self._recording.waiting or self.closed or self.backoff.tries:
                return None
            waiting, begun = self._recording.waiting, None
            if self._begun is None and not self._turns.is_taken:
                try:
                    begun = self._taken()
                except Exception:
                    # A value of the host is no JSON, or the host is changing it: in the loop
                    # it fails again and the host sees why, or it can be saved.
                    self._recording.waiting = waiting
            turns = self._turns
        if begun is None:
            self._have(turns, self._save_after_all)
            return None
        return begun.saving.change, partial(self._ended, begun)

    def _save_after_all(self) -> None:
        """Save what the thread could not take, as the loop was at it."""
        if self.due.at is None:
            self._save_due()

    def _have(self, turns: Turns, work: Callable[[], object]) -> None:
        """Have a loop call a function, unless it has ended or is no longer used."""
        def in_use() -> None:
            if turns is self._turns:
                work()

        with contextlib.suppress(RuntimeError):  # What is not saved waits for a call elsewhere.
            turns.loop.call_soon_threadsafe(in_use)

    def _ended(self, begun: _Begun, error: BaseException | None) -> None:
        """Take the end of a save, on the thread that writes or in the loop.

        Args:
            begun: The save.
            error: What it ended with.
        """
        if self._note_end(begun, error):
            if begun.turns.loop is _running_loop():
                self._tell_end(begun)
            else:
                self._have(begun.turns, partial(self._tell_end, begun))

    def _note_end(self, begun: _Begun, error: BaseException | None) -> bool:
        """Note what became of the rows of a save.

        Args:
            begun: The save.
            error: What it ended with.

        Returns:
            Whether the loop wants to know.
        """
        with self.guard:
            if begun.has_ended:
                return False
            begun.has_ended, begun.error, self._begun = True, error, None
            self._took_s = time.monotonic() - begun.since
            if error is None:
                self._recording.saved(begun.saving)
            else:
                self._recording.not_saved(begun.saving, error)
                self._recording.waiting += begun.saving.waiting or 1
            return error is not None or bool(begun.waiters)

    def _tell_end(self, begun: _Begun) -> None:
        error = begun.error
        waiters = [waiter for waiter in begun.waiters if not waiter.done()]
        if isinstance(error, Refused) and not is_lost(error):
            self._try_again(error, self._recording.waiting)
        elif error is not None:
            if self.due.at is None and not self.is_late:
                self._plan()
            if not waiters:
                self._save_behind()
        for waiter in waiters:
            waiter.set_result(error)

    async def _save_end(self) -> None:
        """Wait for the end of the save that was begun."""
        with self.guard:
            begun = self._begun
        if begun is not None:
            await self._end_of(begun)

    async def _end_of(self, begun: _Begun) -> BaseException | None:
        """Wait for the end of a save; return its error."""
        with self.guard:
            if begun.has_ended:
                return begun.error
            waiter = begun.turns.loop.create_future()
            if begun.turns is self._turns:
                begun.waiters.append(waiter)
        if begun.turns is self._turns:
            found: BaseException | None = await waiter
            return found
        await self._store.begun_ended()
        # Where its connection was closed before it came to it, nobody writes it any more.
        self._note_end(begun, asyncio.CancelledError())
        return begun.error

    async def _is_saved(self, begun: _Begun, *, or_refuse: bool = False) -> bool:
        """Wait for the end of a save.

        Args:
            begun: The save.
            or_refuse: Whether to raise what it was refused for, which is tried again later.

        Returns:
            False where it has to be tried again now.

        Raises:
            Refused: Another program holds the store.
        """
        error = await self._end_of(begun)
        refused = isinstance(error, Refused) and not is_lost(error)
        if error is not None and refused and or_refuse:
            raise error
        return error is None or refused

    # -- timers

    def _plan(self) -> None:
        """Have the thread, or a timer, save what waits, within the time of the policy."""
        policy = self._recording.policy
        if policy.save_on != "chunk":
            return
        if not self.backoff.tries:
            self.is_late = True  # Before, as the thread may be quick.
            if self._store.begin_later(self._take_late, policy.wait_s()):
                return
            self.is_late = False
        self.due.set(policy.wait_s(self._took_s))

    def _save_due(self) -> None:
        if self._recording.waiting and self._begin() is None:
            self._save_behind()

    def _save_behind(self) -> None:
        """Save what waits after what has begun."""
        self._turns.behind(self._save_after_others)

    async def _save_after_others(self) -> None:
        await self._save_end()
        if not self._recording.waiting or self._is_put_off:
            return
        try:
            with contextlib.suppress(Refused):  # It was reported, and is tried again.
                await self.save_now(self._recording.save())
        except BackscrollError as error:
            self._recording.report(str(error))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
