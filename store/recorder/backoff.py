"""How long a recorder waits before it tries again to write a store that others hold."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

FIRST_S, LONGEST_S = 0.1, 5.0
GIVE_UP_S = 120.0
"""Seconds without success after which ``feed`` raises the reason."""
AGAIN = "the store can be written again; what waited is saved"


class Backoff:
    """Waits that double from one failure to the next, shortened at random so that writers differ.

    Attributes:
        tries: How often it failed since it last went well.
    """

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        """Begin without a failure.

        Args:
            chance: Returns a number from 0 to 1.
        """
        self.tries = 0
        self._chance = chance
        self._since = 0.0

    def failed(self) -> float:
        """Count a failure; return the seconds until the next try."""
        if not self.tries:
            self._since = time.monotonic()
        longest = min(LONGEST_S, FIRST_S * 2.0 ** min(self.tries, 10))
        self.tries += 1
        return longest * (0.5 + self._chance() / 2)

    def went_well(self) -> bool:
        """Begin again; return whether it had failed before."""
        failed, self.tries = self.tries > 0, 0
        return failed

    @property
    def is_hopeless(self) -> bool:
        """Whether it has failed for longer than ``GIVE_UP_S``."""
        return self.tries > 0 and time.monotonic() - self._since > GIVE_UP_S
