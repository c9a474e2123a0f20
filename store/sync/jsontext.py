"""JSON text for the store's columns, whatever a source brought."""

from __future__ import annotations

import json
from typing import Any

import orjson


def json_text(value: Any) -> str:
    """Return compact JSON that SQLite, orjson and ``json`` all read back.

    Lone surrogates, which no UTF-8 text can hold, become U+FFFD; the original record
    keeps them. Integers past 64 bits and deep nesting are written by the slow path.

    Raises:
        RecursionError: The value is nested deeper than Python can follow.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(
            _without_surrogates(value), ensure_ascii=False, separators=(",", ":"), default=str
        )


def clean(text: str) -> str:
    """Return the text with lone surrogates as U+FFFD, fit for a TEXT column."""
    if text.isascii():
        return text
    return (
        text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        if (any("\ud800" <= character <= "\udfff" for character in text))
        else text
    )


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return "".join(
            "\N{REPLACEMENT CHARACTER}" if "\ud800" <= character <= "\udfff" else character
            for character in value
        )
    if isinstance(value, dict):
        return {
            _without_surrogates(str(key)): _without_surrogates(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, float) and value != value or value in (float("inf"), float("-inf")):
        return None
    return value
