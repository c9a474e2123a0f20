"""The current time; the only module that reads the system clock for rows."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""A function that returns the current time as epoch milliseconds."""


def system_clock() -> int:
    """Return the current time as epoch milliseconds."""
    return time.time_ns() // 1_000_000
