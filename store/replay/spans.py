"""Stretches of time, such as of calls that run, of which those at a moment are found quickly."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter


class Spans:
    """Stretches of time from a start, included, to an end, excluded; each has a number."""

    def __init__(self, spans: Iterable[tuple[int, int, int]] = ()) -> None:
        """Take ``(start, end, number)`` of each; one that ends where it starts is left out."""
        kept = sorted((span for span in spans if span[1] > span[0]), key=itemgetter(0))
        self._starts = array("q", (start for start, _end, _number in kept))
        self._ends = array("q", (end for _start, end, _number in kept))
        self._numbers = array("q", (number for _start, _end, number in kept))
        self._latest = array("q")
        """By span: the latest end of it and all that started before it."""
        latest = -(2**63)
        for end in self._ends:
            latest = max(latest, end)
            self._latest.append(latest)

    def at(self, at: int) -> list[int]:
        """Return the numbers of the stretches that a moment lies in, in no order."""
        place = bisect_right(self._starts, at) - 1
        found = []
        while place >= 0 and self._latest[place] > at:
            if self._ends[place] > at:
                found.append(self._numbers[place])
            place -= 1
        return found

    def until(self, at: int) -> int:
        """Return the latest end of what has started by a moment; the moment where there is none."""
        place = bisect_right(self._starts, at) - 1
        return max(at, self._latest[place]) if place >= 0 else at
