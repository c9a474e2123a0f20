"""Dates as people write them: ``2026-11-01``, ``3d``, ``last week``.

A date stands for the moment at which it begins: ``2026-11`` for the start of November,
``last week`` for Monday of the week before. Weeks begin on Monday.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_UNITS = {
    "s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour",
    "d": "day", "w": "week", "wk": "week", "mo": "month", "y": "year", "yr": "year",
} | {unit: unit for unit in ("second", "minute", "hour", "day", "week", "month", "year")}
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_AGO = re.compile(r"(\d{1,6})\s*([a-z]+?)s?(?:\s+ago)?")
_ISO = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[t ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?"
    r"\s*(z|[+-][01]\d:?[0-5]\d)?)?)?)?"
)
_SPACES = re.compile(r"[\s_]+")
EXAMPLES = "2026-11-01, 3d, 2w, today, yesterday, monday, last week, this month"
"""What a date may look like, for a message."""
PHRASE = re.compile(
    rf"(?:(?:last|this)\s+(?:week|month|year|{'|'.join(_DAYS)})|\d{{1,6}}\s+[a-z]+s?\s+ago)"
    r"(?!\S)", re.IGNORECASE,
)
"""A date of several words that needs no quotes."""


class BadDate(ValueError):
    """Text that is no date."""


def moment(text: str, *, now: int, zone: tzinfo | None) -> int:
    """Return the moment at which a date begins, as epoch ms.

    Args:
        text: The date, as it was typed.
        now: The present, epoch ms.
        zone: The time zone of the day's limits; None is the computer's own.

    Raises:
        BadDate: The text is no date, or one that no clock can show.
    """
    words = _SPACES.sub(" ", text.strip().lower())
    try:
        found = _moment(words, _local(now, zone), zone)
    except (ValueError, OverflowError, OSError):
        found = None
    if found is None:
        raise BadDate(text)
    return found


def _local(now: int, zone: tzinfo | None) -> datetime:
    """Return the wall clock's time, without a zone."""
    return datetime.fromtimestamp(now / 1000, zone).replace(tzinfo=None)


def _epoch(wall: datetime, zone: tzinfo | None) -> int:
    """Return epoch ms of a wall clock's time; one that is skipped counts as the time after."""
    if zone is not None:
        wall = wall.replace(tzinfo=zone)
    return int(wall.timestamp() * 1000)


def _moment(words: str, now: datetime, zone: tzinfo | None) -> int | None:
    if found := _ISO.fullmatch(words):
        return _written(found, zone)
    if words == "now":
        return _epoch(now, zone)
    if found := _AGO.fullmatch(words):
        return _ago(int(found[1]), _UNITS.get(found[2]), now, zone)
    day = _named_day(words.replace("-", " "), now.date())
    return None if day is None else _epoch(datetime(day.year, day.month, day.day), zone)


def _written(found: re.Match[str], zone: tzinfo | None) -> int:
    year, month, day, hour, minute, second = (
        int(each) if each else least
        for each, least in zip(found.groups()[:6], (0, 1, 1, 0, 0, 0), strict=True)
    )
    offset = found[7]
    wall = datetime(year, month, day, hour, minute, second)
    if not offset:
        return _epoch(wall, zone)
    ahead = timedelta()
    if offset != "z":
        ahead = timedelta(hours=int(offset[1:3]), minutes=int(offset[-2:]))
        ahead = -ahead if offset[0] == "-" else ahead
    return int((wall.replace(tzinfo=UTC) - ahead).timestamp() * 1000)


def _ago(number: int, unit: str | None, now: datetime, zone: tzinfo | None) -> int | None:
    """Return the moment so long ago: the same time of an earlier day, or hours back."""
    if unit is None:
        return None
    if unit in _SECONDS:
        return _epoch(now, zone) - number * _SECONDS[unit] * 1000
    if unit in ("day", "week"):
        return _epoch(now - timedelta(days=number * (7 if unit == "week" else 1)), zone)
    months = now.year * 12 + now.month - 1 - number * (12 if unit == "year" else 1)
    first = date(months // 12, months % 12 + 1, 1)
    last = (_next_month(first) - timedelta(days=1)).day
    day = min(now.day, last)
    return _epoch(now.replace(year=first.year, month=first.month, day=day), zone)


def _next_month(first: date) -> date:
    return date(first.year + first.month // 12, first.month % 12 + 1, 1)


def _named_day(words: str, today: date) -> date | None:
    monday = today - timedelta(days=today.weekday())
    first = today.replace(day=1)
    named = {
        "today": today, "yesterday": today - timedelta(days=1),
        "tomorrow": today + timedelta(days=1),
        "this week": monday, "last week": monday - timedelta(days=7),
        "this month": first, "last month": (first - timedelta(days=1)).replace(day=1),
        "this year": date(today.year, 1, 1), "last year": date(today.year - 1, 1, 1),
    }
    named |= {words.replace(" ", ""): day for words, day in named.items()}
    if words in named:
        return named[words]
    which, _, name = words.rpartition(" ")
    if which not in ("", "last", "this") or len(name) < 3:
        return None
    for number, each in enumerate(_DAYS):
        if each.startswith(name):
            back = (today.weekday() - number) % 7
            return today - timedelta(days=7 if not back and which == "last" else back)
    for number, each in enumerate(_MONTHS, 1):
        if each.startswith(name):
            year = today.year - (number > today.month or (number == today.month
                                                          and which == "last"))
            return date(year, number, 1)
    return None
