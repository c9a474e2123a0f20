"""Values of PostgreSQL's types as they are in a SQLite file of the same rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import orjson

_MS = 1000


def plain(value: object) -> object:
    """Return a value of the driver's as text, number, bytes or None.

    Times become ISO text in UTC with milliseconds, with microseconds where there are any;
    arrays and rows become JSON. The driver gives JSON as text already.
    """
    if value is None or isinstance(value, str | int | float | bytes):
        return value
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral() else float(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return orjson.dumps([plain(one) for one in value], default=str).decode()
    return str(value)


def _time(value: datetime) -> str:
    try:
        utc = value.astimezone(UTC) if value.tzinfo is not None else value
    except OverflowError:
        return value.isoformat()
    fine = "milliseconds" if utc.microsecond % _MS == 0 else "microseconds"
    return f"{utc.replace(tzinfo=None).isoformat(timespec=fine)}Z"
