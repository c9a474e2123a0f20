"""What sync tells of itself while it runs, and how fast it goes."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

RATE_WINDOW_S = 5.0


@dataclass(slots=True)
class Progress:
    """How far a sync is.

    Attributes:
        rate: Bytes a second over the last seconds; 0 while unknown.
        eta_s: Seconds that are left at this rate; None while unknown.
        sessions: Sessions that were written so far.
        problems: Lines, files and folders that could not be read in this run.
        waiting: Whether another sync of this store runs and is waited for.
    """

    files_done: int = 0
    files_total: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    rate: float = 0.0
    eta_s: float | None = None
    sessions: int = 0
    problems: int = 0
    waiting: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


@dataclass(slots=True)
class Summary:
    """What a sync did.

    Attributes:
        units: Units that were listed; ``read`` those that had moved since the last sync.
        new: Sessions that were not in the store before; ``updated`` those that changed.
        problems: As in ``Progress``.
        stopped: Whether it was broken off; what was done stays done.
        unreadable: Places that are there and that nothing could be read from, each with the
            reason.
    """

    units: int = 0
    read: int = 0
    new: int = 0
    updated: int = 0
    problems: int = 0
    stopped: bool = False
    seconds: float = 0.0
    unreadable: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


@dataclass(slots=True)
class Meter:
    """Measures the rate over the last seconds."""

    marks: deque[tuple[float, int]] = field(default_factory=deque)

    def measure(self, progress: Progress) -> None:
        """Set ``rate`` and ``eta_s`` from how ``bytes_done`` has grown."""
        now = time.monotonic()
        self.marks.append((now, progress.bytes_done))
        while len(self.marks) > 2 and now - self.marks[0][0] > RATE_WINDOW_S:
            self.marks.popleft()
        since, done = self.marks[0]
        if now > since and progress.bytes_done > done:
            progress.rate = (progress.bytes_done - done) / (now - since)
            left = progress.bytes_total - progress.bytes_done
            progress.eta_s = max(0.0, left / progress.rate)
