"""Reads values of JSON that may be of any type, so that odd ones cost only themselves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

_FIRST_MS = 1e11
"""Smaller numbers are seconds: as ms they would lie before 1973."""
NO_OBJECT: dict[str, Any] = {}
"""Stands for an object that is missing; never written to."""


def epoch_ms(stamp: object) -> int | None:
    """Return an ISO time, or a number of milliseconds, as epoch ms; None when it is neither."""
    if isinstance(stamp, str):
        try:
            parsed = datetime.fromisoformat(stamp)
            return round(parsed.timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            return None
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool) and 0 < stamp < 1e14:
        return int(stamp)
    return None


def utc_ms(stamp: object) -> int | None:
    """Return a time as epoch ms: ISO text (UTC where it names no zone), seconds or ms."""
    if isinstance(stamp, str) and stamp.isdecimal() and 10 <= len(stamp) <= 13:
        # A column of type TEXT makes a text of every number.
        stamp = int(stamp)
    if isinstance(stamp, str):
        try:
            parsed = datetime.fromisoformat(stamp)
            parsed = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
            return round(parsed.timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            return None
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool) and 0 < stamp < 1e14:
        return round(stamp * 1000) if stamp < _FIRST_MS else int(stamp)
    return None


def string(value: object) -> str | None:
    """Return a non-empty string, or None for anything else."""
    return value if isinstance(value, str) and value else None


def mapping(value: object) -> dict[str, Any]:
    """Return an object, or an empty one for anything else."""
    return value if isinstance(value, dict) else NO_OBJECT


def number(value: object) -> int:
    """Return a number as int, 0 for anything else."""
    if type(value) is int:
        return value if abs(value) < 1e15 else 0
    if not isinstance(value, float):
        return 0
    return int(value) if abs(value) < 1e15 else 0
