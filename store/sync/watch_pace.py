"""Decides when a whole root is listed: after unexplained changes, and at intervals."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from store.sync.targets import Target

SAFETY_S = 300.0
"""Seconds between listings of a root that has events."""
POLL_S = 0.5
"""Seconds between listings of a root without events, while something changes there."""
SLOWEST_POLL_S = 5.0
SLOWER = 1.5
SHARE = 40
"""A listing is followed by a pause of this many times its duration."""


@dataclass(slots=True)
class _Root:
    polled: bool
    due: float
    rests_until: float = 0.0
    pause: float = POLL_S


@dataclass(slots=True)
class Pace:
    """Schedules listings, so that they take a small share of the time however long each is."""

    monotonic: Callable[[], float] = time.monotonic
    _roots: dict[Target, _Root] = field(default_factory=dict)

    def start(self, targets: Sequence[Target], polled: Sequence[Target]) -> None:
        """Start with roots that were all just listed."""
        now = self.monotonic()
        self._roots = {
            target: _Root(target in polled, now + (POLL_S if target in polled else SAFETY_S))
            for target in targets
        }

    def due(self) -> float:
        """Return when the next listing is due."""
        return min((root.due for root in self._roots.values()), default=float("inf"))

    def is_due(self, target: Target) -> bool:
        """Return whether a root should be listed now."""
        return self._roots[target].due <= self.monotonic()

    def wanted(self, target: Target, in_s: float = 0.0) -> None:
        """Schedule a listing of a root soon, but after the pause of its last one."""
        root = self._roots[target]
        root.due = min(root.due, max(self.monotonic() + in_s, root.rests_until))

    def moved(self, target: Target) -> None:
        """Poll a root more often again, since something changed there."""
        root = self._roots[target]
        root.pause = POLL_S
        if root.polled:
            root.due = min(root.due, max(self.monotonic() + POLL_S, root.rests_until))

    @contextlib.contextmanager
    def measured(self, target: Target) -> Iterator[None]:
        """Measure a listing done in the block and schedule the next one."""
        root, began = self._roots[target], self.monotonic()
        # Set first, so that a failing listing is not tried again at once.
        root.due = began + SLOWEST_POLL_S
        yield
        now = self.monotonic()
        root.rests_until = now + SHARE * (now - began)
        root.pause = min(SLOWEST_POLL_S, root.pause * SLOWER)
        root.due = max(root.rests_until, now + (root.pause if root.polled else SAFETY_S))
