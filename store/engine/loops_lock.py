"""A lock for tasks of several event loops, each in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_LOOK_S = 0.1


class LoopsLock:
    """As ``asyncio.Lock``, which is for one loop; a loop that ends lets go of what it held."""

    def __init__(self) -> None:
        """Make a lock that nobody holds."""
        self._guard = threading.Lock()
        self._holder: _Holder | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def locked(self) -> bool:
        """Return whether a loop that has not ended holds it."""
        holder = self._holder
        return holder is not None and not holder.loop.is_closed()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold it, once nobody else does."""
        holder = _Holder(asyncio.get_running_loop())
        while (told := self._waits(holder)) is not None:
            try:
                while not told.done() and self.locked():
                    # Nobody tells of a loop that ends.
                    await asyncio.wait([told], timeout=_LOOK_S)
            finally:
                with self._guard, suppress(ValueError):
                    self._waiting.remove(told)
        try:
            yield
        finally:
            self._let_go(holder)

    def _waits(self, holder: _Holder) -> asyncio.Future[None] | None:
        """Return a future that is set when it may be free; None where it is held now."""
        with self._guard:
            if not self.locked():
                self._holder = holder
                return None
            told = holder.loop.create_future()
            self._waiting.append(told)
            return told

    def _let_go(self, holder: _Holder) -> None:
        with self._guard:
            if self._holder is not holder:
                return  # Its loop has ended, and another one holds it.
            self._holder = None
            waiting, self._waiting = self._waiting, []
        for told in waiting:
            with suppress(RuntimeError):  # Its loop has ended.
                told.get_loop().call_soon_threadsafe(_wake, told)


class _Holder:
    """Somebody who holds a lock, in a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop


def _wake(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)
