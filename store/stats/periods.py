"""Hours, days, weeks and months of a calendar: where each begins and ends, and its name.

Hours, days and weeks are those of a time zone, so a day may have 23 or 25 hours. Months may begin
on another day than the first, as bills do.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Literal

Period = Literal["hour", "day", "week", "month"]
PERIODS: tuple[Period, ...] = ("hour", "day", "week", "month")
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Calendar:
    """Where periods of time begin.

    Attributes:
        zone: The time zone; None is the computer's own.
        month_starts: The day on which a month begins; where a month has no such day, its last.
    """

    zone: tzinfo | None = None
    month_starts: int = 1

    def start(self, at: int, period: Period) -> int:
        """Return where the period begins that a moment falls in, epoch ms."""
        if period == "hour":
            wall = self._wall(at)
            past = (wall.minute * 60 + wall.second) * 1000 + at % 1000
            return at - past
        return self._midnight(self.first_day(at, period))

    def end(self, at: int, period: Period) -> int:
        """Return where the period after it begins, epoch ms."""
        if period == "hour":
            return self.start(at, period) + _HOUR_MS
        first = self.first_day(at, period)
        if period == "month":
            return self._midnight(self._month_start(first.year, first.month + 1))
        return self._midnight(first + timedelta(days=1 if period == "day" else 7))

    def key(self, at: int, period: Period) -> str:
        """Return the name of the period that a moment falls in; names sort as their periods do.

        An hour is ``2026-11-28T14:00+01:00``, a day and the Monday of a week ``2026-11-28``, a
        month ``2026-11``, or its first day where months do not begin on the first.
        """
        if period == "hour":
            return self.moment(self.start(at, period)).isoformat(timespec="minutes")
        first = self.first_day(at, period)
        return first.isoformat()[: 7 if period == "month" and self.month_starts == 1 else 10]

    def steps(self, start: int, end: int, period: Period) -> Iterator[int]:
        """Yield where each period begins that has a moment of a span.

        Args:
            start: The first moment, epoch ms.
            end: The moment after the last one.
            period: How long they are.
        """
        at = self.start(start, period)
        while at < end:
            yield at
            at = self.end(at, period)

    def moment(self, at: int) -> datetime:
        """Return a moment with its time zone."""
        wall = datetime.fromtimestamp(at / 1000, self.zone)
        return wall.astimezone() if self.zone is None else wall

    def first_day(self, at: int, period: Period) -> date:
        """Return the first day of the day, week or month that a moment falls in."""
        today = self._wall(at).date()
        if period == "week":
            return today - timedelta(days=today.weekday())
        if period == "month":
            begun = self._month_start(today.year, today.month)
            return begun if begun <= today else self._month_start(today.year, today.month - 1)
        return today

    def _month_start(self, year: int, month: int) -> date:
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
        return date(year, month, min(self.month_starts, monthrange(year, month)[1]))

    def _wall(self, at: int) -> datetime:
        return datetime.fromtimestamp(at / 1000, self.zone)

    def _midnight(self, day: date) -> int:
        """Return where a day begins, also where its midnight is skipped."""
        wall = datetime(day.year, day.month, day.day, tzinfo=self.zone)
        return int(wall.timestamp() * 1000)
