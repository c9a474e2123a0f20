"""Reads values of JSON that may be of any type, so that odd ones cost only themselves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

EARLIEST_MS = 946_684_800_000
"""The year 2000, epoch ms: a time before it is of a clock that was never set."""
LATEST_MS = 4_102_444_800_000
"""The year 2100, epoch ms: a time from then on is no time of a session either."""
_FIRST_MS = 1e11
"""Smaller numbers are seconds: as ms they would be before 1973."""
NO_OBJECT: dict[str, Any] = {}
"""Stands for an object that is missing; never written to."""


def plausible_ms(ms: float) -> int | None:
    """Return a time as whole epoch ms; None for one that no session can be of."""
    return int(ms) if EARLIEST_MS <= ms < LATEST_MS else None


def epoch_ms(stamp: object) -> int | None:
    """Return an ISO time, or a number of milliseconds, as epoch ms.

    None for what is neither, and for times that no session can be of.
    """
    if isinstance(stamp, str):
        return iso_ms(stamp)
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
        return plausible_ms(stamp)
    return None


def ms_or_0(stamp: object) -> int:
    """Return a column of epoch ms; 0 where it is no number, or past every session."""
    ms = number(stamp)
    return ms if 0 < ms < LATEST_MS else 0


def utc_ms(stamp: object) -> int | None:
    """Return a time as epoch ms: ISO text (UTC where it names no zone), seconds or ms.

    None for what is neither, and for times that no session can be of.
    """
    if isinstance(stamp, str) and stamp.isdecimal() and 10 <= len(stamp) <= 13:
        # A column of type TEXT makes a text of every number.
        stamp = int(stamp)
    if isinstance(stamp, str):
        return iso_ms(stamp, utc=True)
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool):
        return plausible_ms(round(stamp * 1000) if 0 < stamp < _FIRST_MS else stamp)
    return None


def iso_ms(stamp: str, *, utc: bool = False) -> int | None:
    """Return an ISO time as epoch ms, None where it is none, or none of a session.

    Args:
        stamp: The text.
        utc: Whether a time without a zone is UTC rather than of this machine.
    """
    try:
        parsed = datetime.fromisoformat(stamp)
        if utc and parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=UTC)
        return plausible_ms(round(parsed.timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
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


def named_model(name: object) -> dict[str, Any] | None:
    """Return a model by its name, before whose first slash its provider is; None for no name."""
    text = string(name)
    if text is None:
        return None
    provider, slash, model = text.partition("/")
    if not (slash and provider and model):
        return {"provider_id": "unknown", "model_id": text}
    return {"provider_id": provider, "model_id": model}
