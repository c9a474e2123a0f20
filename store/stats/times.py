"""Hours, days, weeks and months: where each begins and ends, and sums over quarter hours.

They are those of a time zone, so a day may have 23 or 25 hours. Months may begin on another day
than the first, as bills do.
"""

from __future__ import annotations

import bisect
from calendar import monthrange
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal, NamedTuple

from store.stats.facts import QUARTER_MS

Period = Literal["hour", "day", "week", "month"]
PERIODS: tuple[Period, ...] = ("hour", "day", "week", "month")

_DAY = 96
"""Quarter hours of a day."""
_YEAR = 365 * _DAY
_ORIGIN = datetime(1, 1, 1)
"""A Monday, from which periods are numbered."""
_BEFORE = (_ORIGIN - datetime(1970, 1, 1)) // timedelta(milliseconds=QUARTER_MS)
"""The quarter hour of that."""
_FIRST = _BEFORE + _YEAR
_LAST = 253_339_228_800_000 // QUARTER_MS
"""The start of the year 9998: every period after it has an end. Later times count as this one,
and those before the year 2 as its start."""
_STEP = 7 * _DAY
"""Distance of looks at a zone's offset; no zone changes it twice within so little."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Where periods of time begin.

    An hour that a change of the clock repeats is one period of two hours.

    Attributes:
        zone: The time zone; None is the computer's own.
        month_starts: The day on which a month begins; where a month has no such day, its last.
    """

    zone: tzinfo | None = None
    month_starts: int = 1

    def start(self, at: int, period: Period) -> int:
        """Return where the period begins that a moment falls in, epoch ms."""
        return self.moment(self._first(at, period))

    def end(self, at: int, period: Period) -> int:
        """Return where the period after it begins, epoch ms."""
        first = self._first(at, period)
        if period == "month":
            return self.moment(self._month(first.year, first.month + 1))
        steps = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
        return self.moment(first + steps[period])

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

    def moment(self, wall: datetime) -> int:
        """Return epoch ms of a clock's time: the first of two, the next where it is skipped."""
        return round(wall.replace(tzinfo=self.zone, fold=0).timestamp() * 1000)

    def month(self, year: int, month: int) -> date:
        """Return the day on which a month begins; months count on past 12."""
        return self._month(year, month).date()

    def _month(self, year: int, month: int) -> datetime:
        year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
        return datetime(year, month, min(self.month_starts, monthrange(year, month)[1]))

    def _first(self, at: int, period: Period) -> datetime:
        wall = datetime.fromtimestamp(at / 1000, self.zone).replace(tzinfo=None)
        if period == "hour":
            return wall.replace(minute=0, second=0, microsecond=0)
        today = datetime.combine(wall, time())
        if period == "week":
            return today - timedelta(days=today.weekday())
        if period == "month":
            begun = self._month(today.year, today.month)
            return begun if begun <= today else self._month(today.year, today.month - 1)
        return today


class Bucket(NamedTuple):
    """One period.

    Attributes:
        key: ``2026-11-28T14``, ``2026-11-28`` (of a week its Monday), or ``2026-11``; of a month
            that does not begin on the first, its first day.
        label: What a screen shows: ``14:00``, ``28 Nov``, ``week of 23 Nov``, ``Nov 2026``,
            ``from 15 Nov 2026``.
        start: Epoch ms.
        end: Epoch ms, excluded.
    """

    key: str
    label: str
    start: int
    end: int


def years_sql(quarter: str) -> str:
    """Return the SQL expression for the stretch of 365 days that a quarter hour is in.

    Args:
        quarter: The expression of the quarter hour.
    """
    return f"(min(max({quarter}, {_FIRST}), {_LAST}) - {_BEFORE}) / {_YEAR}"


class Buckets:
    """The periods of a calendar in which something is."""

    def __init__(self, calendar: Calendar, period: Period, years: Iterable[int]) -> None:
        """Find the offsets of the zone.

        Args:
            calendar: Where periods begin.
            period: What to divide time into.
            years: The stretches that have something, of ``years_sql``. Others are not looked at:
                one damaged time may be thousands of years away.
        """
        self._calendar, self._period = calendar, period
        self._starts, self._offsets = list[int](), list[int]()
        for year in sorted(years):
            first = min(max(_BEFORE + year * _YEAR, _FIRST), _LAST)
            self._find_offsets(first, min(first + _YEAR, _LAST))

    def _find_offsets(self, first: int, last: int) -> None:
        if not self._offsets or self._offset(first) != self._offsets[-1]:
            self._starts.append(first)
            self._offsets.append(self._offset(first))
        at = first
        while at < last:
            after = min(at + _STEP, last)
            if self._offset(after) != self._offsets[-1]:
                places = range(at, after + 1)
                old = self._offsets[-1]
                place = bisect.bisect_left(places, True, key=lambda q: self._offset(q) != old)
                self._starts.append(places[place])
                self._offsets.append(self._offset(places[place]))
            at = after

    def _offset(self, quarter: int) -> int:
        """Return what a zone adds to UTC, in quarter hours."""
        moment = datetime.fromtimestamp(quarter * QUARTER_MS / 1000, UTC)
        offset = moment.astimezone(self._calendar.zone).utcoffset() or timedelta()
        return int(offset.total_seconds() // (QUARTER_MS / 1000))

    def sql(self, quarter: str) -> str:
        """Return the SQL expression for the number of a quarter hour's period.

        Args:
            quarter: The expression of the quarter hour.
        """
        whole = f"min(max({quarter}, {_FIRST}), {_LAST})"
        if len(self._offsets) > 1:
            cases = " ".join(
                f"WHEN {quarter} < {start} THEN {offset}"
                for start, offset in zip(self._starts[1:], self._offsets, strict=False)
            )
            local = f"({whole} + CASE {cases} ELSE {self._offsets[-1]} END)"
        else:
            local = f"({whole} + {max(self._offsets, default=0)})"
        # Numbers below zero would be rounded up.
        since = f"({local} - {_BEFORE})"
        if self._period == "hour":
            return f"({since} / 4)"
        if self._period == "day":
            return f"({since} / {_DAY})"
        if self._period == "week":
            return f"({since} / {7 * _DAY})"
        at = f"{local} * {QUARTER_MS // 1000}, 'unixepoch'"
        month = (
            f"CAST(strftime('%Y', {at}) AS INTEGER) * 12"
            f" + CAST(strftime('%m', {at}) AS INTEGER) - 1"
        )
        if self._calendar.month_starts == 1:
            return f"({month})"
        last = f"strftime('%d', {at}, 'start of month', '+1 month', '-1 day')"
        begins = f"min({self._calendar.month_starts}, CAST({last} AS INTEGER))"
        return f"({month} - (CAST(strftime('%d', {at}) AS INTEGER) < {begins}))"

    def bucket(self, number: int) -> Bucket:
        """Return the period of a number that ``sql`` gave."""
        start = self._local(number)
        span = self._calendar.moment(start), self._calendar.moment(self._local(number + 1))
        label = f"{start.day} {start:%b}"
        if self._period == "hour":
            return Bucket(start.isoformat()[:13], f"{start:%H}:00", *span)
        if self._period == "month":
            if self._calendar.month_starts == 1:
                return Bucket(start.isoformat()[:7], f"{start:%b} {start.year}", *span)
            label = f"from {label} {start.year}"
        elif self._period == "week":
            label = f"week of {label}"
        return Bucket(start.date().isoformat(), label, *span)

    def _local(self, number: int) -> datetime:
        if self._period == "hour":
            return _ORIGIN + timedelta(hours=number)
        if self._period == "day":
            return _ORIGIN + timedelta(days=number)
        if self._period == "week":
            return _ORIGIN + timedelta(days=number * 7)
        first = self._calendar.month(number // 12, number % 12 + 1)
        return datetime.combine(first, time())
