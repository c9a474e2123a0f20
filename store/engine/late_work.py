"""Work that a thread does a little later, without being woken for each piece of it.

Waking a thread, handing it the interpreter's lock and waking the event loop again costs more than
a small transaction. So a thread that had such work naps as long as the next may wait, and then
looks for itself.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import TIMEOUT_MAX, Lock

_EARLY_S = 0.002
"""What is due so shortly after a nap is done at its end."""
_NAPS = 4
"""Naps without work after which the thread is free for all else."""
Work = Callable[[], object]


class LateWork:
    """Functions for one thread, which are added from others."""

    def __init__(self) -> None:
        """Begin without work."""
        self._guard, self._bell = Lock(), Lock()
        self._bell.acquire()
        self._works: deque[tuple[float, Work]] = deque()
        self._serves, self._leaving = False, 0
        self._wakes_at = self._nap_s = 0.0

    def add(self, work: Work, after_s: float) -> bool:
        """Have a function run within a time.

        Args:
            work: The function, which raises nothing.
            after_s: The time.

        Returns:
            Whether ``serve`` has to be queued for the thread.
        """
        with self._guard:
            self._put(work, after_s)
            begins = not self._serves
            self._serves = True
            return begins

    def add_now(self, work: Work) -> bool:
        """Have a function run at once, where ``serve`` runs and nothing else is queued.

        Args:
            work: As for ``add``.

        Returns:
            Whether it will run.
        """
        with self._guard:
            if not self._serves:
                return False
            self._put(work, 0.0)
            return True

    def leave(self) -> None:
        """Have ``serve`` end, after the work that it has: the thread is wanted for other work.

        What is added from now on waits for a ``serve`` that is queued after that other work, as
        it may come without end.
        """
        with self._guard:
            if self._serves:
                self._serves = False
                self._leaving += 1
                self._ring()

    def serve(self) -> None:
        """Run the work, on the thread, until none comes any more."""
        empty = 0
        while True:
            with self._guard:
                works = self._due()
                empty = 0 if works or self._works else empty + 1
                ends = self._leaving > 0 or empty > _NAPS
                if self._leaving:
                    self._leaving -= 1
                elif ends:
                    self._serves = False
            for work in works:
                work()
            if ends:
                return
            with self._guard:
                now = time.monotonic()
                self._wakes_at = min((due for due, _ in self._works), default=now + self._nap_s)
                nap_s = 0.0 if self._leaving else max(0.0, self._wakes_at - now)
            self._bell.acquire(timeout=min(nap_s, TIMEOUT_MAX))

    def _put(self, work: Work, after_s: float) -> None:
        due = time.monotonic() + after_s
        self._works.append((due, work))
        if after_s:
            self._nap_s = after_s
        if due < self._wakes_at:
            self._ring()

    def _ring(self) -> None:
        if self._bell.locked():
            self._bell.release()

    def _due(self) -> list[Work]:
        """Take out what is due, in the order in which it came."""
        until = float("inf") if self._leaving else time.monotonic() + _EARLY_S
        works = [work for due, work in self._works if due <= until]
        if works:
            self._works = deque(each for each in self._works if each[0] > until)
        return works
