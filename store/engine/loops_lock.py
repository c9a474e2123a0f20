"""A lock for tasks of several event loops, each in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_LOOK_S = 0.1
CLOSE_S = 2.0
"""So long the closing of a store on a server waits for who opens a connection to it."""
STOPPED_S = 5.0
"""A loop that has not run for so long is taken for one that has ended: it may never go on."""


class LoopsLock:
    """As ``asyncio.Lock``, which is for one loop; a loop that ends or stops releases it."""

    def __init__(self) -> None:
        """Make a lock that nobody holds."""
        self._guard = threading.Lock()
        self._holder: _Holder | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def locked(self) -> bool:
        """Return whether a loop that has not ended holds it."""
        holder = self._holder
        return holder is not None and not holder.has_ended()

    @asynccontextmanager
    async def held(self, *, within_s: float | None = None) -> AsyncIterator[None]:
        """Hold it, once nobody else does.

        Args:
            within_s: How long to wait for it; None for as long as it takes.

        Raises:
            TimeoutError: Somebody else held it for so long.
        """
        holder = _Holder(asyncio.get_running_loop())
        until = None if within_s is None else time.monotonic() + within_s
        while (told := self._waits(holder)) is not None:
            try:
                while not told.done() and self.locked():
                    if until is not None and time.monotonic() >= until:
                        raise TimeoutError
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
            told = holder.future()
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
        self._loop = loop
        self._stopped_at: float | None = None

    def has_ended(self) -> bool:
        """Return whether its loop was closed, or has run nothing for ``STOPPED_S`` since asked.

        A loop that somebody runs for a moment now and then, as a window's loop may, goes on.
        """
        if self._loop.is_closed():
            return True
        if self._loop.is_running():
            self._stopped_at = None
            return False
        since = self._stopped_at
        if since is None:
            since = self._stopped_at = time.monotonic()
            with suppress(RuntimeError):  # It is closed now.
                self._loop.call_soon_threadsafe(self._goes_on)
        return time.monotonic() - since >= STOPPED_S

    def _goes_on(self) -> None:
        self._stopped_at = None

    def future(self) -> asyncio.Future[None]:
        """Return a future of its loop."""
        return self._loop.create_future()


def _wake(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)
