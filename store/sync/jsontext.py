"""JSON text for the store's columns, whatever a source brought."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

_SURROGATES = re.compile("[\ud800-\udfff]")

DEEPEST = 200
"""Levels that are kept of a value that orjson does not write; it writes 254."""
TOO_DEEP = "… nested too deep to show; the original record has it"


def json_text(value: Any) -> str:
    """Return compact JSON that SQLite, orjson and ``json`` all read back.

    Lone surrogates, which no UTF-8 text can hold, become U+FFFD, and what is nested past
    every reader's limit is cut; the original record keeps both. Integers past 64 bits
    are written whole.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(_mended(value, 0), ensure_ascii=False, separators=(",", ":"), default=str)


def clean(text: str) -> str:
    """Return the text with lone surrogates as U+FFFD, fit for a TEXT column."""
    if text.isascii():
        return text
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)


def _mended(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clean(value)
    if depth >= DEEPEST and isinstance(value, dict | list | tuple):
        return TOO_DEEP
    if isinstance(value, dict):
        return {clean(str(key)): _mended(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
