"""A moment that is set and taken back many times, for which an event loop is woken seldom.

A timer that is made and cancelled for each save costs a tenth of a short one. Here a timer that
was made stays: when it rings too early, it is set to the moment that counts by then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_EARLY_S = 0.001
"""The moment has come so shortly before: the timer would wake the loop a little later for it."""


class Deadline:
    """Calls a function in the running loop when a moment has come, unless that is taken back.

    Attributes:
        at: The moment, by the monotonic clock; None where there is none that has not come.
    """

    def __init__(self, act: Callable[[], object]) -> None:
        """Set nothing yet.

        Args:
            act: The function.
        """
        self._act = act
        self.at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0

    def set(self, after_s: float) -> None:
        """Set the moment, whatever it was.

        Args:
            after_s: In how many seconds it comes.
        """
        now = time.monotonic()
        self.at = now + after_s - _EARLY_S
        if self._timer is None or self._rings_at > now + after_s:
            self._ring(after_s, now)

    def take_back(self) -> None:
        """Set no moment; what the timer does when it rings is nothing."""
        self.at = None

    def end(self) -> None:
        """Take the moment back, and the timer with it, also that of a loop that has ended."""
        self.at = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self, after_s: float, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = now + after_s
        self._timer = asyncio.get_running_loop().call_later(after_s, self._rung)

    def _rung(self) -> None:
        self._timer = None
        if self.at is None:
            return
        now = time.monotonic()
        if now >= self.at:
            self.at = None
            self._act()
        else:
            self._ring(self.at + _EARLY_S - now, now)
