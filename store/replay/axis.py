"""The time that a replay takes: that of the session, or the same with long waits shortened."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter

from store.replay.spans import Spans

WAIT_MS = 2_000
"""A pause that lasts longer is a wait; where waits are skipped, it takes so long."""


class Axis:
    """Turns moments of a session into milliseconds of its replay, and back.

    Attributes:
        begin: The first moment, epoch ms.
        finish: The last one.
    """

    def __init__(self, moments: Sequence[int], writing: Spans | None = None) -> None:
        """Take the moments at which something happened, ascending, at least one.

        Args:
            moments: Epoch ms.
            writing: Times in which a text was written, which are no waits.
        """
        self._moments = array("q", moments)
        self._short = array("q", [0])
        self._gaps: list[tuple[int, int]] = []
        """Milliseconds of the whole replay at which waits begin and end, shortened."""
        for before, at in zip(self._moments, self._moments[1:], strict=False):
            length = at - before
            if length > WAIT_MS:
                covered = writing.until(before) - before if writing is not None else 0
                left = length - min(length, covered)
                if left > WAIT_MS:
                    length += WAIT_MS - left
                    start = self._short[-1] + length - WAIT_MS
                    self._gaps.append((start, start + WAIT_MS))
            self._short.append(self._short[-1] + length)
        self.begin, self.finish = self._moments[0], self._moments[-1]

    def length(self, *, skip: bool) -> int:
        """Return how long the replay takes at its plain speed, ms.

        Args:
            skip: Whether waits are shortened.
        """
        return self._short[-1] if skip else self.finish - self.begin

    def played(self, at: int, *, skip: bool) -> float:
        """Return where in the replay a moment is, ms from its begin.

        Args:
            at: Epoch ms; one outside of the session counts as its nearer end.
            skip: Whether waits are shortened.
        """
        at = max(self.begin, min(at, self.finish))
        if not skip:
            return at - self.begin
        place = bisect_right(self._moments, at) - 1
        if place == len(self._moments) - 1:
            return self._short[-1]
        length, short, own = self._pause(place)
        gone = at - self._moments[place]
        if gone <= own:
            return self._short[place] + gone
        return self._short[place] + own + (gone - own) * (short - own) / (length - own)

    def moment(self, played: float, *, skip: bool) -> int:
        """Return the moment that is shown at a place of the replay, epoch ms.

        Args:
            played: Ms from the begin of the replay; one outside of it counts as its nearer end.
            skip: Whether waits are shortened.
        """
        played = max(0.0, min(played, float(self.length(skip=skip))))
        if not skip:
            return self.begin + int(played + 0.001)
        place = bisect_right(self._short, played) - 1
        if place >= len(self._moments) - 1:
            return self.finish
        length, short, own = self._pause(place)
        gone = played - self._short[place]
        if gone > own:
            gone = own + (gone - own) * (length - own) / (short - own)
        return self._moments[place] + int(gone + 0.001)

    def _pause(self, place: int) -> tuple[int, int, int]:
        """Return what follows a moment: its length, what it is shortened to, its unshortened start.

        What is shortened is the end of a wait: what happens before it plays at its own pace.
        """
        length = self._moments[place + 1] - self._moments[place]
        short = self._short[place + 1] - self._short[place]
        return length, short, max(0, short - WAIT_MS) if short < length else short

    def has_wait(self, start: int, end: int) -> bool:
        """Return whether a wait lies between two moments, or goes on there.

        Args:
            start: Epoch ms.
            end: Epoch ms, excluded.
        """
        low, high = self.played(start, skip=True), self.played(end, skip=True)
        place = bisect_right(self._gaps, low, key=itemgetter(1))
        return place < len(self._gaps) and self._gaps[place][0] < high

    def reached(self, now: int) -> Axis:
        """Return the axis of a session that still runs: it ends now.

        Args:
            now: The present, epoch ms; one before the last moment changes nothing.
        """
        longer = Axis.__new__(Axis)
        longer._moments, longer._short = self._moments[:], self._short[:]
        longer._gaps, longer.begin, longer.finish = list(self._gaps), self.begin, self.finish
        if now > self.finish:
            length = now - self.finish
            if length > WAIT_MS:
                longer._gaps.append((self._short[-1], self._short[-1] + WAIT_MS))
            longer._moments.append(now)
            longer._short.append(self._short[-1] + min(length, WAIT_MS))
            longer.finish = now
        return longer
