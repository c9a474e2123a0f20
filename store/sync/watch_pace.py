"""When a root is listed whole: after changes that nothing else explains, and now and then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from store.sync.targets import Target

SAFETY_S = 300.0
"""Between two listings of a root that the system tells of."""
POLL_S = 0.5
"""Between two listings of a root that it does not tell of, while something moves there."""
SLOWEST_POLL_S = 5.0
SLOWER = 1.5
SHARE = 40
"""A listing is followed by a pause of this many times its length."""


@dataclass(slots=True)
class _Root:
    polled: bool
    due: float
    rests_until: float = 0.0
    pause: float = POLL_S


@dataclass(slots=True)
class Pace:
    """Says which roots are to be listed, so that listing costs little whatever its length."""

    monotonic: Callable[[], float] = time.monotonic
    _roots: dict[Target, _Root] = field(default_factory=dict)

    def start(self, targets: Sequence[Target], polled: Sequence[Target]) -> None:
        """Begin with roots that were all listed just now."""
        now = self.monotonic()
        self._roots = {
            target: _Root(target in polled, now + (POLL_S if target in polled else SAFETY_S))
            for target in targets
        }

    def due(self) -> float:
        """Return when the next listing is due."""
        return min((root.due for root in self._roots.values()), default=float("inf"))

    def is_due(self, target: Target) -> bool:
        """Say whether a root is to be listed now."""
        return self._roots[target].due <= self.monotonic()

    def wanted(self, target: Target, in_s: float = 0.0) -> None:
        """Have a root listed soon: as soon as its last listing has been rested from."""
        root = self._roots[target]
        root.due = min(root.due, max(self.monotonic() + in_s, root.rests_until))

    def moved(self, target: Target) -> None:
        """Look more often again where something was found."""
        root = self._roots[target]
        root.pause = POLL_S
        if root.polled:
            root.due = min(root.due, max(self.monotonic() + POLL_S, root.rests_until))

    @contextlib.contextmanager
    def measured(self, target: Target) -> Iterator[None]:
        """List a root in the block; sets when it is listed next."""
        root, began = self._roots[target], self.monotonic()
        # Also where the listing fails, so that it is not tried again at once.
        root.due = began + SLOWEST_POLL_S
        yield
        now = self.monotonic()
        root.rests_until = now + SHARE * (now - began)
        root.pause = min(SLOWEST_POLL_S, root.pause * SLOWER)
        root.due = max(root.rests_until, now + (root.pause if root.polled else SAFETY_S))
