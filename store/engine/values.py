"""Converts SQLite values to the types of rows, whatever types a host has written."""

from __future__ import annotations

from store.text.stored_json import DamagedJson, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Column = str | int | float | bytes | None


def text(value: Column) -> str | None:
    """Return a value as text; invalid UTF-8 in bytes becomes U+FFFD."""
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def number(value: Column) -> int:
    """Return a value as an integer; 0 if it is not a number."""
    if type(value) is int:
        return value
    return int(value) if isinstance(value, float) and abs(value) < 2**63 else 0


def number_or_none(value: Column) -> int | None:
    """Return a value as an integer, and NULL as None."""
    return None if value is None else number(value)


def amount(value: Column) -> float:
    """Return a value as an int or float; 0 if it is not a number."""
    return value if isinstance(value, (int, float)) else 0.0


def decoded(text: str | None) -> dict[str, Any]:
    """Return a JSON column as a dict; empty if it is not a valid JSON object."""
    try:
        value = loads(text or "{}")
    except DamagedJson:
        return {}
    return value if isinstance(value, dict) else {}


def tag_names(marks: Any) -> tuple[str, ...]:
    """Return the tags among a user's marks of a session; empty if they are not a list."""
    tags = marks.get("tags") if isinstance(marks, dict) else None
    return tuple(str(tag) for tag in tags) if isinstance(tags, list) else ()
