"""Shows on the terminal how far a long command is."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from tui.cli.output import Printer

QUIET_S, EVERY_S = 0.4, 0.1
"""Seconds before the first line is shown, and between two of them."""
_MARKS = "-\\|/"


class Shown:
    """A line on stderr that says how far the work is; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        """Show nothing yet."""
        self._printer = Printer(sys.stderr) if sys.stderr.isatty() else None
        self._next_s = time.monotonic() + QUIET_S
        self._count = 0
        self._showing = False

    def __call__(self, what: str, done: int = 0, total: int = 0) -> None:
        """Show what is done now.

        Args:
            what: The work, such as "copying".
            done: How much of it is done.
            total: How much there is; 0 if unknown, a mark turns then.
        """
        now = time.monotonic()
        if self._printer is None or now < self._next_s:
            return
        self._next_s, self._count, self._showing = now + EVERY_S, self._count + 1, True
        far = f"{100 * done // total} %" if total else _MARKS[self._count % len(_MARKS)]
        with contextlib.suppress(OSError):
            self._printer.status(f"{what} {far}")

    def end(self) -> None:
        """Take the line away."""
        if self._printer is not None and self._showing:
            with contextlib.suppress(OSError):
                self._printer.status("")


@contextlib.contextmanager
def showing() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows what is done, how much of it, and of how much."""
    shown = Shown()
    try:
        yield shown
    finally:
        shown.end()
