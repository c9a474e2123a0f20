"""A flag that ends a process: safe to set in a signal handler, and can be waited for."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence

from store.system.readable import readable

GRACE_S = 5.0
"""What a process is given to end by its flag, before it is ended."""


class Stop:
    """A flag like ``threading.Event``, but without locks, so a signal handler may set it."""

    def __init__(self) -> None:
        """Make a flag that is not set."""
        self._raised = False
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def set(self) -> None:
        """Set the flag."""
        self._raised = True
        with contextlib.suppress(OSError):
            os.write(self._writing, b".")

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._raised

    def wait(self, timeout_s: float | None = None, others: Sequence[int] = ()) -> bool:
        """Wait until the flag is set, another file is readable, or the timeout passes.

        Args:
            timeout_s: The timeout; None waits without limit.
            others: File descriptors that also end the wait when they are readable.

        Returns:
            Whether the flag is set.
        """
        if not self._raised:
            readable([self._reading, *others], timeout_s)
        return self._raised

    def close(self) -> None:
        """Close the pipe; the flag counts as set from then on."""
        self._raised = True
        os.close(self._reading)
        os.close(self._writing)


def stop_on_signals(stop: Stop) -> None:
    """Set the flag on Ctrl+C and on SIGTERM; threads other than the main one get no signals."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())


def _nothing_heard(chunk: bytes) -> None:
    pass


def stop_with_parent(stop: Stop, heard: Callable[[bytes], None] = _nothing_heard) -> None:
    """Set the flag when standard input ends, and end the process if it does not end then.

    For a thread of its own: a parent that goes away closes the input of its children.

    Args:
        stop: The flag.
        heard: Takes what comes in until then.
    """
    while chunk := os.read(sys.stdin.fileno(), 4096):
        heard(chunk)
    stop.set()
    # Let the running transaction end first; killing it would be safe too.
    time.sleep(GRACE_S)
    os._exit(1)
