"""What the parts of the session list need of the pane: work beside the keys, and pauses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from tui.kit.later import Later

if TYPE_CHECKING:
    from textual.worker import Worker

Work = Callable[[], Awaitable[None]]


class Jobs(Protocol):
    """What starts work and timers for the parts of the pane: the pane itself."""

    def start(self, work: Work, group: str) -> Worker[None]:
        """Start work on the event loop, in place of older work of its group.

        Args:
            work: Makes the coroutine; called only when it is its turn.
            group: Of these one runs at a time.
        """
        ...

    def later(self, seconds: float, callback: Callable[[], object]) -> Later:
        """Call something after so many seconds."""
        ...

    def report(self, error: Exception) -> None:
        """Show that the list could not be read."""
        ...
