"""Lets others come first: what works in the background has a lower priority than what is shown."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

NICE = 5
"""Added to the nice value: with both processors full, a reader gets three times as much."""
T = TypeVar("T")


def run_behind(work: Callable[[], T]) -> T:
    """Return what some work returns, which runs in a thread of lower priority.

    A process could never raise its own again. Where threads have none of their own (all systems
    but Linux), it runs like any other thread.

    Args:
        work: Called once.
    """
    with ThreadPoolExecutor(1, "behind", initializer=_lower) as thread:
        return thread.submit(work).result()


def _lower() -> None:
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with contextlib.suppress(OSError):
            os.setpriority(
                os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICE)
