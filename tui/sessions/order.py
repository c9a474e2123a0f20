"""When the order of the list is read again while the store is written to."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from store.errors import StoreError
from tui.kit.later import Later
from tui.sessions.jobs import Jobs

ORDER_EVERY_S = 0.25
"""At least so long between two reads of the order."""
ORDER_SHARE = 6
"""Before the next read, wait so many times as long as the last one took."""
STILL_S = 0.6
"""The order stays as it is while the selection is moved, and so long after it."""
AGAIN_EVERY_S = 1.0
"""Pause before the next try where the store is busy or gone."""
REPORTED_AFTER = 3
"""Report an error after so many failures in a row, where the file of the store exists."""


class LiveOrder:
    """Reads the order again: not too often, and not while the selection is moved."""

    def __init__(
        self, read: Callable[[], Awaitable[None]], store_exists: Callable[[], bool], jobs: Jobs,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make an order that is current.

        Args:
            read: Reads the order and shows it.
            store_exists: Returns whether the file of the store is there.
            jobs: Runs the reading and the pauses.
            clock: Returns seconds.
        """
        self._read, self._store_exists, self._jobs, self._clock = read, store_exists, jobs, clock
        self._due: Later | None = None
        self._running = self._again = False
        self._cost = self._read_at = self._moved_at = 0.0
        self._failures = 0

    @property
    def is_due(self) -> bool:
        """Whether the order is still to be read again."""
        return self._due is not None or self._running or self._again

    def selection_moved(self) -> None:
        """Keep the order as it is for a while."""
        self._moved_at = self._clock()

    def read_soon(self) -> None:
        """Read the order again as soon as the pace allows."""
        if self._running:
            self._again = True
        elif self._due is None:
            pause = max(
                self._read_at + max(ORDER_EVERY_S, ORDER_SHARE * self._cost),
                self._moved_at + STILL_S,
            ) - self._clock()
            if pause <= 0:
                self.read_now()
            else:
                self._due = self._jobs.later(pause, self._pause_over)

    def _pause_over(self) -> None:
        self._due = None
        self.read_soon()

    def read_now(self) -> None:
        """Read the order again at once."""
        if self._due is not None:
            self._due.stop()
            self._due = None
        self._again = False
        self._jobs.start(self._read_order, "order")

    async def _read_order(self) -> None:
        self._running, started = True, self._clock()
        try:
            await self._read()
            self._failures = 0
        except StoreError as error:
            self._failed(error)
        finally:
            self._running = False
            self._read_at = self._clock()
            self._cost = self._read_at - started
        if self._again:
            self._again = False
            self.read_soon()

    def _failed(self, error: StoreError) -> None:
        """Try again: the store is busy or gone for a while, which the top line shows."""
        self._failures += 1
        if self._failures == REPORTED_AFTER and self._store_exists():
            self._jobs.report(error)
        if self._due is None:
            self._due = self._jobs.later(AGAIN_EVERY_S, self._pause_over)
