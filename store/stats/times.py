"""Hours, days, weeks and months of a time zone, as sums over quarter hours."""

from __future__ import annotations

import bisect
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Literal, NamedTuple

from store.stats.facts import QUARTER_MS

Period = Literal["hour", "day", "week", "month"]
PERIODS: tuple[Period, ...] = ("hour", "day", "week", "month")

_DAY = 96
"""Quarter hours of a day."""
_LAST = 253_402_214_400_000 // QUARTER_MS
"""Of the years of four digits, a day to spare; hostile times count as this one."""
_STEP = 7 * _DAY
"""Distance of looks at a zone's offset; no zone changes it twice within so little."""


class Bucket(NamedTuple):
    """One period.

    Attributes:
        key: ``2026-11-28T14``, ``2026-11-28`` (of a week its Monday) or ``2026-11``.
        label: What a screen shows: ``14:00``, ``28 Nov``, ``week of 23 Nov``, ``Nov 2026``.
        start: Epoch ms.
        end: Epoch ms, excluded.
    """

    key: str
    label: str
    start: int
    end: int


class Buckets:
    """The periods of a time zone between two quarter hours."""

    def __init__(self, zone: tzinfo, period: Period, first: int, last: int) -> None:
        """Find the offsets of a zone.

        Args:
            zone: The time zone.
            period: What to divide time into.
            first: The first quarter hour, counted from 1970.
            last: The last one.
        """
        self._zone, self._period = zone, period
        first, last = (min(max(each, 0), _LAST) for each in (first, last))
        self._starts, self._offsets = [first], [self._offset(first)]
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
        offset = moment.astimezone(self._zone).utcoffset() or timedelta()
        return int(offset.total_seconds() // (QUARTER_MS / 1000))

    def sql(self, quarter: str) -> str:
        """Return the SQL expression for the number of a quarter hour's period.

        Args:
            quarter: The expression of the quarter hour.
        """
        whole = f"min(max({quarter}, 0), {_LAST})"
        if len(self._offsets) == 1:
            local = f"({whole} + {self._offsets[0]})"
        else:
            cases = " ".join(
                f"WHEN {quarter} < {start} THEN {offset}"
                for start, offset in zip(self._starts[1:], self._offsets, strict=False)
            )
            local = f"({whole} + CASE {cases} ELSE {self._offsets[-1]} END)"
        # Numbers below zero would be rounded up.
        local = f"max({local}, 0)"
        if self._period == "hour":
            return f"({local} / 4)"
        if self._period == "day":
            return f"({local} / {_DAY})"
        if self._period == "week":
            return f"(({local} / {_DAY} + 3) / 7)"
        at = f"{local} * {QUARTER_MS // 1000}, 'unixepoch'"
        return (
            f"(CAST(strftime('%Y', {at}) AS INTEGER) * 12"
            f" + CAST(strftime('%m', {at}) AS INTEGER) - 1)"
        )

    def bucket(self, number: int) -> Bucket:
        """Return the period of a number that ``sql`` gave."""
        start, end = _local(self._period, number), _local(self._period, number + 1)
        span = self._moment(start), self._moment(end)
        if self._period == "hour":
            return Bucket(f"{start:%Y-%m-%dT%H}", f"{start:%H}:00", *span)
        if self._period == "month":
            return Bucket(f"{start:%Y-%m}", f"{start:%b %Y}", *span)
        label = f"{start.day} {start:%b}"
        return Bucket(
            f"{start:%Y-%m-%d}", f"week of {label}" if self._period == "week" else label, *span
        )

    def _moment(self, local: datetime) -> int:
        return round(local.replace(tzinfo=self._zone).timestamp() * 1000)


def _local(period: Period, number: int) -> datetime:
    epoch = datetime(1970, 1, 1)
    if period == "hour":
        return epoch + timedelta(hours=number)
    if period == "day":
        return epoch + timedelta(days=number)
    if period == "week":
        return epoch + timedelta(days=number * 7 - 3)
    return datetime.combine(date(number // 12, number % 12 + 1, 1), datetime.min.time())
