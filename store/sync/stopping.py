"""A flag that ends a sync: safe to raise in a signal handler, and a file to wait for."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from store.system.readable import readable


class Stop:
    """Raised once. Unlike ``threading.Event`` it takes no lock, so a handler may raise it."""

    def __init__(self) -> None:
        """Make one that is not raised."""
        self._raised = False
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def set(self) -> None:
        """Raise it."""
        self._raised = True
        with contextlib.suppress(OSError):
            os.write(self._writing, b".")

    def is_set(self) -> bool:
        """Return whether it was raised."""
        return self._raised

    def wait(self, timeout_s: float | None = None, others: Sequence[int] = ()) -> bool:
        """Wait until it is raised, one of some other files can be read, or time runs out.

        Returns:
            Whether it was raised.
        """
        if not self._raised:
            readable([self._reading, *others], timeout_s)
        return self._raised

    def close(self) -> None:
        """Give the files back; it cannot be waited for any more."""
        self._raised = True
        os.close(self._reading)
        os.close(self._writing)
