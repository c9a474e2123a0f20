"""What the parts of the session list need of the pane: work beside the keys, and timers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from textual.timer import Timer
    from textual.worker import Worker

Work = Callable[[], Awaitable[None]]


class Jobs(Protocol):
    """Starts work and timers; the pane is one."""

    def start(self, work: Work, group: str) -> Worker[None]:
        """Start work on the event loop, in place of older work of its group.

        Args:
            work: Makes the coroutine; called only when it is its turn.
            group: Of these one runs at a time.
        """
        ...

    def set_timer(self, delay: float, callback: Callable[[], object]) -> Timer:
        """Call something after so many seconds."""
        ...

    def report(self, error: Exception) -> None:
        """Show that the list could not be read."""
        ...
