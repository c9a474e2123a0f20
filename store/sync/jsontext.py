"""JSON text for the store's columns, from any value of a source."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

_SURROGATES = re.compile("[\ud800-\udfff]")

DEEPEST = 200
"""Levels kept of a value that orjson refuses to write; orjson's own limit is 254."""
TOO_DEEP = "… nested too deep to show; the original record has it"


def json_text(value: Any) -> str:
    """Return compact JSON that SQLite, orjson and ``json`` all read back.

    Lone surrogates, which UTF-8 cannot encode, become U+FFFD, and too deeply nested values
    are cut; the original record keeps both. Integers over 64 bits are written in full.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(_mended(value, 0), ensure_ascii=False, separators=(",", ":"), default=str)


def clean(text: str) -> str:
    """Return the text with lone surrogates replaced by U+FFFD, for a TEXT column."""
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
