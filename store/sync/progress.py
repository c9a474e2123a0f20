"""Progress and summary of a sync, and its measured speed."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

RATE_WINDOW_S = 5.0


@dataclass(slots=True)
class Progress:
    """Progress of a sync.

    Attributes:
        files_listed: Number of new files whose sessions are listed, before they are read.
        listing: Whether more of them are being listed.
        rate: Bytes per second over the last seconds; 0 while unknown.
        eta_s: Seconds left at this rate; None while unknown.
        sessions: Number of sessions written so far.
        problems: Number of lines, files and folders that this run could not read.
        waiting: Whether this sync waits for another one of the same store.
    """

    files_listed: int = 0
    listing: bool = False
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
    """Result of a sync.

    Attributes:
        units: Number of units listed; ``read`` counts those that changed since the last sync.
        new: Number of sessions added; ``updated`` counts those that changed.
        problems: As in ``Progress``.
        stopped: Whether it was stopped early; committed changes are kept.
        unreadable: Existing places from which nothing could be read, and folders that could not
            be listed, each with the reason.
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
        """Set ``rate`` and ``eta_s`` from the growth of ``bytes_done``."""
        now = time.monotonic()
        self.marks.append((now, progress.bytes_done))
        while len(self.marks) > 2 and now - self.marks[0][0] > RATE_WINDOW_S:
            self.marks.popleft()
        since, done = self.marks[0]
        if now > since and progress.bytes_done > done:
            progress.rate = (progress.bytes_done - done) / (now - since)
            left = progress.bytes_total - progress.bytes_done
            progress.eta_s = max(0.0, left / progress.rate)
