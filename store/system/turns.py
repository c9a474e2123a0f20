"""Long work on a thread beside an event loop, which must not wait for it.

Only one thread of Python runs at a time. One that computes is interrupted after 5 ms
(``sys.getswitchinterval``), and an event loop waits for that twice between a timer and its task.
Work of a tenth of a second or more gives way itself, much earlier.
"""

from __future__ import annotations

import time

_EVERY_S = 0.001
_REST_S = 0.000_05
"""Long enough for another thread to wake up: one that only yields takes the lock again first."""


class Turns:
    """Lets other threads run at times during long work; one for each piece of work."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        """Begin the work."""
        self._next = time.perf_counter() + _EVERY_S

    def give(self) -> None:
        """Let other threads run, if the last time was a millisecond ago."""
        if time.perf_counter() >= self._next:
            time.sleep(_REST_S)
            self._next = time.perf_counter() + _EVERY_S
