"""A flag that ends a process: safe to set in a signal handler, and can be waited for."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from store.system.readable import readable


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
