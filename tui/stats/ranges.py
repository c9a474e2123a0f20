"""The stretch of time that is shown, and the bars that it is cut into; times are local."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo
from itertools import islice
from typing import Literal, NamedTuple

from store.language.dates import BadDate, moment
from store.stats.times import PERIODS, Calendar, Period

RangeName = Literal["today", "7d", "30d", "1y", "all", "custom"]
LABELS: dict[RangeName, str] = {
    "today": "today", "7d": "7 d", "30d": "30 d", "1y": "1 y", "all": "all", "custom": "custom",
}
"""The ranges, in the order in which they are shown."""
RANGES: tuple[RangeName, ...] = tuple(LABELS)
Bucket = Period
BUCKETS = PERIODS
_DAYS: dict[RangeName, int] = {"today": 1, "7d": 7, "30d": 30, "1y": 365}
_USUAL: dict[RangeName, Bucket] = {"today": "hour", "7d": "day", "30d": "day", "1y": "week"}
_TYPICAL_HOURS: dict[Bucket, int] = {"hour": 1, "day": 24, "week": 168, "month": 730}
_EARLIEST = datetime(1, 1, 2)
MOST_BARS = 400
"""A bucket that gives more bars than this is not offered."""


class Between(NamedTuple):
    """A stretch of time.

    Attributes:
        start: Epoch ms; None for the beginning of all.
        end: Epoch ms, not in it; None for no end.
    """

    start: int | None
    end: int | None


class Slot(NamedTuple):
    """The time of one bar.

    Attributes:
        start: Epoch ms.
        end: Epoch ms, not in it.
        label: Below the bar.
        major: Whether the label goes before others.
    """

    start: int
    end: int
    label: str
    major: bool


class BadRange(ValueError):
    """What was typed is no range; its text says why."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range as it was chosen.

    Attributes:
        name: Which.
        back: How many times its own length it lies before the present.
        start: Of a custom range, epoch ms; None for the beginning of all.
        end: Of a custom range.
    """

    name: RangeName = "30d"
    back: int = 0
    start: int | None = None
    end: int | None = None

    def between(self, now: int, zone: tzinfo | None) -> Between:
        """Return its limits; they are midnights, except of a custom range."""
        if self.name == "custom":
            return self._custom(now, zone)
        if self.name == "all":
            return Between(None, None)
        days = _DAYS[self.name]
        tomorrow = _day(now, zone) + timedelta(days=1 - self.back * days)
        return Between(_epoch(tomorrow - timedelta(days=days), zone), _epoch(tomorrow, zone))

    def _custom(self, now: int, zone: tzinfo | None) -> Between:
        if self.start is None or not self.back:
            return Between(self.start, self.end)
        # By the clock on the wall: days stay days where it is changed.
        first, last = _wall(self.start, zone), _wall(now if self.end is None else self.end, zone)
        whole_years = last - _EARLIEST
        start, end = (
            _moment(last - min(whole_years, times * (last - first)), zone)
            for times in (self.back + 1, self.back)
        )
        return Between(start, end)

    @property
    def why_not_moved(self) -> str | None:
        """Why it has no earlier one, or None."""
        whole = self.name == "all" or (self.name == "custom" and self.start is None)
        return "All of the past is shown" if whole else None

    def moved(self, by: int) -> Range:
        """Return the range before (-1) or after (1) it; the last one is now."""
        return replace(self, back=max(0, self.back - by))

    @property
    def usual_bucket(self) -> Bucket | None:
        """The bucket that it is shown in at first; None where its length decides."""
        return _USUAL.get(self.name)


def parse_range(text: str, *, now: int, zone: tzinfo | None) -> Range:
    """Return the custom range that was typed: ``2026-11-01 .. 2026-11-15``, ``last month ..``.

    Args:
        text: One date, which is the start, or two with ``..`` or ``to`` between them. An end that
            is a day is the last day of the range.
        now: The present, epoch ms.
        zone: The time zone; None is the computer's own.

    Raises:
        BadRange: It is none; the text of the error says why.
    """
    separator = ".." if ".." in text else " to "
    first, _, last = (each.strip() for each in text.partition(separator))
    try:
        start = moment(first, now=now, zone=zone) if first else None
    except BadDate:
        raise BadRange(f"“{first}” is no date, such as 2026-11-01, 3w or last month") from None
    try:
        end = moment(last, now=now, zone=zone) if last else None
    except BadDate:
        raise BadRange(f"“{last}” is no date, such as 2026-11-15, today or 2d") from None
    if start is None and end is None:
        raise BadRange("A date is needed, such as 2026-11-01 .. 2026-11-15")
    if end is not None and _is_midnight(end, zone):
        end = _epoch(_day(end, zone) + timedelta(days=1), zone)
    if start is not None and end is not None and start >= end:
        raise BadRange("The range ends before it begins")
    return Range("custom", 0, start, end)


# Buckets


def fitting_bucket(between: Between) -> Bucket:
    """Return the bucket that shows a stretch in some ten to a hundred bars."""
    hours = _hours(between)
    if hours <= 50:
        return "hour"
    if hours <= 24 * 93:
        return "day"
    return "week" if hours <= 24 * 750 else "month"


def allowed(bucket: Bucket, between: Between) -> bool:
    """Return whether a stretch in this bucket has not too many bars."""
    return _hours(between) / _TYPICAL_HOURS[bucket] <= MOST_BARS


def _hours(between: Between) -> float:
    return ((between.end or 0) - (between.start or 0)) / 3_600_000


def slots(start: int, end: int, bucket: Bucket, calendar: Calendar) -> list[Slot]:
    """Return the bars of a stretch; the first and the last may be cut by its limits.

    Args:
        start: Epoch ms.
        end: Epoch ms, not in it.
        bucket: What it is cut into.
        calendar: Where days, weeks and months begin.
    """
    found: list[Slot] = []
    for begin in islice(calendar.steps(start, end, bucket), 2 * MOST_BARS):
        label, major = _label(_wall(begin, calendar.zone), bucket, first=not found)
        found.append(Slot(max(begin, start), min(calendar.end(begin, bucket), end), label, major))
    return found


def _label(wall: datetime, bucket: Bucket, *, first: bool) -> tuple[str, bool]:
    if bucket == "hour":
        if wall.hour == 0 and not first:
            return f"{wall:%a} {wall.day}", True
        return f"{wall.hour:02}", False
    if bucket == "month":
        return (f"{wall.year}", True) if wall.month == 1 or first else (f"{wall:%b}", False)
    if first or wall.day <= (7 if bucket == "week" else 1):
        return f"{wall.day} {wall:%b}", True
    return str(wall.day), False


def slot_words(slot: Slot, bucket: Bucket, zone: tzinfo | None) -> str:
    """Return the time of a bar in words, such as ``Thu 12 Nov 2026``.

    Args:
        slot: The bar's time.
        bucket: Its size.
        zone: The time zone; None is the computer's own.
    """
    wall = _wall(slot.start, zone)
    if bucket == "hour":
        return f"{wall:%a} {wall.day} {wall:%b} {wall.hour:02}:00"
    if bucket == "month":
        return f"{wall:%B} {wall.year}"
    if bucket == "week":
        last = _wall(slot.end - 1, zone)
        return f"{wall.day} {wall:%b} to {last.day} {last:%b} {last.year}"
    return f"{wall:%a} {wall.day} {wall:%b} {wall.year}"


def time_words(at: int, now: int, zone: tzinfo | None) -> str:
    """Return a time within a week, such as ``16:00`` and ``Mon 09:00``.

    Args:
        at: Epoch ms.
        now: Epoch ms.
        zone: The time zone; None is the computer's own.
    """
    wall = _wall(at, zone)
    day = "" if wall.date() == _day(now, zone) else f"{wall:%a} "
    return f"{day}{wall:%H:%M}"


def range_words(between: Between, zone: tzinfo | None) -> str:
    """Return the days of a stretch, such as ``30 Oct to 28 Nov 2026``."""
    first = None if between.start is None else _wall(between.start, zone)
    last = None if between.end is None else _wall(between.end - 1, zone)
    if first is None or last is None:
        known = first or last
        if known is None:
            return "all time"
        day = f"{known.day} {known:%b} {known.year}"
        return f"since {day}" if last is None else f"until {day}"
    if first.date() == last.date():
        return f"{first:%a} {first.day} {first:%b} {first.year}"
    year = f" {first.year}" if first.year != last.year else ""
    return f"{first.day} {first:%b}{year} to {last.day} {last:%b} {last.year}"


def dates_query(between: Between, zone: tzinfo | None) -> str:
    """Return the filters of a stretch, as they are typed into a query."""
    pieces = []
    for field, at in (("after", between.start), ("before", between.end)):
        if at is not None:
            pieces.append(f"{field}:{_typed(at, zone)}")
    return " ".join(pieces)


def _typed(at: int, zone: tzinfo | None) -> str:
    """Return a moment as a query takes it, which reads days in the computer's own zone."""
    day = f"{_day(at, zone)}"
    if moment(day, now=at, zone=None) == at:
        return day
    wall = datetime.fromtimestamp(at / 1000, zone)
    return wall.isoformat(timespec="seconds" if wall.second else "minutes")


# Local time


def _wall(at: int, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(at / 1000, zone).replace(tzinfo=None)


def _day(at: int, zone: tzinfo | None) -> date:
    return _wall(at, zone).date()


def day_of(at: int, zone: tzinfo | None) -> date:
    """Return the local day of a moment, epoch ms."""
    return _day(at, zone)


def day_between(day: date, zone: tzinfo | None) -> Between:
    """Return the limits of a local day."""
    return Between(_epoch(day, zone), _epoch(day + timedelta(days=1), zone))


def _moment(wall: datetime, zone: tzinfo | None) -> int:
    return round(wall.replace(tzinfo=zone).timestamp() * 1000)


def _epoch(day: date, zone: tzinfo | None) -> int:
    return _moment(datetime.combine(day, time()), zone)


def _is_midnight(at: int, zone: tzinfo | None) -> bool:
    return _epoch(_day(at, zone), zone) == at
