"""What is fuzzed, and one round of it under a limit of time and memory."""

from __future__ import annotations

import faulthandler
import resource
from collections.abc import Callable

from tests.fuzz import hosts, imports, recognition, recorder, sources

TARGETS: dict[str, Callable[[int], None]] = {
    "sources": sources.run, "recognition": recognition.run, "hosts": hosts.run,
    "imports": imports.run, "recorder": recorder.run,
}
"""A round of each; it takes its seed, and raises where something is wrong."""
LONGEST_S = 300
"""A round that takes longer hangs: the stacks are printed and the process ends."""
MOST_GROWTH = 512 << 10
"""KiB by which one round may raise the peak of the process's memory."""


def one(name: str, seed: int) -> None:
    """Do one round.

    Args:
        name: One of ``TARGETS``.
        seed: Decides on everything in it.

    Raises:
        AssertionError: The round says what went wrong.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    faulthandler.dump_traceback_later(LONGEST_S, exit=True)
    try:
        TARGETS[name](seed)
    finally:
        faulthandler.cancel_dump_traceback_later()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MOST_GROWTH, f"{name}, seed {seed}: memory grew by {grown >> 10} MiB"
