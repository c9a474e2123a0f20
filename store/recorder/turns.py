"""Calls of one event loop that are done one after the other, in the order in which they came."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]


class Turns:
    """The line of calls in an event loop.

    Attributes:
        loop: The loop.
        calls: What ``call`` has at work or waiting.
    """

    def __init__(self) -> None:
        """Begin without calls, in the running loop."""
        self.loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self.calls: dict[Coroutine[Any, Any, Any], None] = {}
        self._behind: dict[asyncio.Task[Any], Coroutine[Any, Any, Any]] = {}
        self._rests: set[asyncio.Task[Any]] = set()

    @property
    def is_taken(self) -> bool:
        """Whether something is at work; another thread may ask."""
        return self._lock.locked()

    @property
    def is_used(self) -> bool:
        """Whether anything is at work or waits."""
        return bool(self.calls or self._behind)

    async def call(self, work: Work[T]) -> T:
        """Do something in turn; a caller that is cancelled does not end it."""
        doing = self._in_turn(work)
        self.calls[doing] = None
        goes_on = False
        try:
            while True:
                try:
                    # By hand, as a task for it takes two more rounds of the loop.
                    waited = doing.send(None)
                except StopIteration as end:
                    done: T = end.value
                    return done
                try:
                    await asyncio.shield(waited)
                except asyncio.CancelledError:
                    if not waited.cancelled():
                        self._do_rest(doing, waited)
                        goes_on = True
                        raise
                except Exception:  # noqa: S110 - what waits for it gets it
                    pass
        finally:
            if not goes_on:
                self.calls.pop(doing, None)

    def behind(self, work: Work[None]) -> None:
        """Do something in turn, for which nobody waits."""
        doing = self._in_turn(work)
        task = asyncio.create_task(doing)
        self._behind[task] = doing
        task.add_done_callback(self._behind.pop)

    async def _in_turn(self, work: Work[T]) -> T:
        async with self._lock:
            return await work()

    def _do_rest(self, doing: Coroutine[Any, Any, T], waited: asyncio.Future[Any]) -> None:
        """Do the rest of a call that has lost its caller.

        Args:
            doing: What has begun.
            waited: What it waits for now.
        """
        def ended(task: asyncio.Task[Any]) -> None:
            self._rests.discard(task)
            self.calls.pop(doing, None)
            if not task.cancelled():
                task.exception()  # Nobody waits for it; what was not written was reported.

        task = asyncio.ensure_future(_rest(doing, waited))
        self._rests.add(task)
        task.add_done_callback(ended)

    def abandon(self) -> None:
        """End what the loop has left undone, as it runs no more: each gets ``GeneratorExit``."""
        # The last one first: who is at work then wakes nobody.
        for doing in reversed((*self.calls, *self._behind.values())):
            with contextlib.suppress(RuntimeError):  # It would have to wait, or wakes the loop.
                doing.close()


async def _rest(doing: Coroutine[Any, Any, T], waited: asyncio.Future[Any]) -> T:
    await asyncio.wait([waited])
    return await _resumed(doing)


@coroutine
def _resumed(doing: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    return (yield from doing.__await__())
