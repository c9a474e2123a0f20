"""Times that cannot be right, told by the records around them.

A clock that was wrong for a moment writes a wrong year into a record. What follows would move
behind it, or the session to the top of a list for years. A file that only grows is in the
order of its times, so a few records whose times fit neither what is before nor what is after
them take the time of what is before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

DAY_MS = 24 * 60 * 60 * 1000
LONG_MS = 2 * 365 * DAY_MS
"""A gap that one record alone does not make."""
_MOST = 4
"""Records in a row whose times are odd; where more say the same, it is the clock that was set."""


class Timed(Protocol):
    """A record with a time, epoch ms; 0 where none is known."""

    at: int


_Record = TypeVar("_Record", bound=Timed)


class OddTimes(Generic[_Record]):
    """Puts right the times of a file's records, as they come.

    Attributes:
        changes: How many times earlier records got another time.
    """

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.changes = 0
        self._doubted: tuple[_Record, int] | None = None
        self._first = 0

    def take(self, before: Sequence[_Record], new: _Record) -> None:
        """Look at the next record, which may show which of those before it was odd.

        Args:
            before: The records before it, in the order of the file.
            new: The record.
        """
        if not before or not new.at or not before[-1].at:
            return
        if len(before) > 2 * _MOST:
            self._compare(before, new)
        elif not self._goes_back(before, new):
            self._compare(before, new)
            self._begins_ahead([*before, new])

    def _compare(self, before: Sequence[_Record], new: _Record) -> None:
        """Compare a record with those just before it."""
        if self._doubted is None and len(before) > 2 and 0 <= new.at - before[-1].at <= DAY_MS:
            return
        if self._doubted is not None:
            doubted, at = self._doubted
            self._doubted = None
            if abs(new.at - at) < abs(new.at - doubted.at):
                doubted.at = at
                self.changes += 1
        last = before[-1].at
        if abs(new.at - last) > DAY_MS:
            put_right = self._fell(before, new) if new.at < last else self._rose(before, new)
            if not put_right and abs(new.at - last) > LONG_MS and len(before) > 1:
                # A later record decides whether time really went on like that.
                self._doubted = new, new.at
                new.at = last
        elif len(before) == 2 and (
            before[0].at > last + DAY_MS or last - (before[0].at or last) > LONG_MS
        ):
            # Two agree, and the first one is years off, or ahead.
            self._first = before[0].at
            before[0].at = last
            self.changes += 1

    def _goes_back(self, before: Sequence[_Record], new: _Record) -> bool:
        """Return whether a record agrees with the first one, which two after it did not.

        These and what agrees with them were odd, then.
        """
        first, last = self._first, before[-1].at
        if not first or len(before) > _MOST + 1 or abs(last - first) <= LONG_MS:
            return False
        if abs(new.at - first) > LONG_MS or new.at < first - DAY_MS:
            return False
        self._first, self._doubted = 0, None
        self._give(before, first)
        return True

    def _begins_ahead(self, records: Sequence[_Record]) -> None:
        """Put right a few records at the beginning that are years ahead of more after them."""
        fall = next((place for place in range(1, len(records))
                     if 0 < records[place].at < records[place - 1].at - LONG_MS), 0)  # fmt: skip
        later = records[fall:]
        if (
            0 < fall <= _MOST and len(later) > fall and self._doubted is None
            and max(each.at for each in later) < records[fall - 1].at - LONG_MS
        ):  # fmt: skip
            self._give(records[:fall], later[0].at)

    def _fell(self, before: Sequence[_Record], new: _Record) -> bool:
        """Time fell; return whether some records were ahead of those before them and this one."""
        for place in range(len(before) - 1, max(-1, len(before) - 1 - _MOST), -1):
            if place and 0 < before[place - 1].at <= new.at + DAY_MS:
                self._give(before[place:], before[place - 1].at)
                return True
        return False

    def _rose(self, before: Sequence[_Record], new: _Record) -> bool:
        """Time rose; return whether some records were behind those before them and this one."""
        for place in range(len(before) - 1, max(0, len(before) - 1 - _MOST), -1):
            earlier = before[place - 1].at
            if earlier > before[place].at + DAY_MS:
                if new.at < earlier - DAY_MS:
                    return False
                self._give(before[place:], earlier)
                return True
        return False

    def _give(self, records: Sequence[_Record], at: int) -> None:
        for record in records:
            record.at = at
        self.changes += 1
