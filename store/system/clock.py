"""The one place that asks what time it is."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""A function that returns the present as epoch milliseconds."""


def system_clock() -> int:
    """Return the present as epoch milliseconds."""
    return time.time_ns() // 1_000_000
