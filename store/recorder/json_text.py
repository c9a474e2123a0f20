"""JSON in and out for streams made by JavaScript: split surrogate pairs, odd numbers, depth.

A JavaScript string may be cut inside a surrogate pair; fast JSON libraries refuse such
halves, and SQLite takes no text that holds one. So: parse fast, fall back where it is
refused, join halves that meet, and write a half that stays alone as an ASCII escape.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

import orjson

_SURROGATE = re.compile("[\ud800-\udfff]")
_DEEP = 20_000
_DEEPENING = threading.RLock()
"""Held while the recursion limit, which all threads share, is another."""


class NotJson(ValueError):
    """Text that ``JSON.parse`` would refuse; the message says where."""


def has_surrogate(text: str) -> bool:
    """Tell whether the text holds a half of a surrogate pair."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def join_halves(text: str) -> str:
    """Return the text with halves of surrogate pairs that now meet joined."""
    if not has_surrogate(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def storable(text: str) -> str:
    """Return a text for a column of its own: lone halves, which SQLite refuses, replaced."""
    return _SURROGATE.sub("\ufffd", text) if has_surrogate(text) else text


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_STRICT = json.JSONDecoder(parse_constant=_refuse_constant)


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text as ``JSON.parse`` reads it.

    Raises:
        NotJson: The text is no JSON (or is nested deeper than Python can follow).
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        fault = error
    try:
        plain = text.decode("utf-8") if isinstance(text, bytes) else text
        return _STRICT.decode(plain)
    except (ValueError, RecursionError):
        raise NotJson(str(fault)) from None


def _slow_dump(value: object, default: Callable[[Any], Any] | None) -> str:
    with _DEEPENING:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _DEEP))
        try:
            text = json.dumps(
                value, ensure_ascii=False, separators=(",", ":"), default=default)
            if has_surrogate(text):
                text = json.dumps(value, separators=(",", ":"), default=default)
        finally:
            sys.setrecursionlimit(limit)
    return text


def given_dump(value: object) -> str:
    """Return JSON of what a host gave; what is no JSON, such as a ``Path``, as its text."""
    try:
        return dump(value, str)
    except TypeError:
        return dump(_with_text_keys(value), str)


def _with_text_keys(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _with_text_keys(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_with_text_keys(each) for each in value]
    return value


def dump(value: object, default: Callable[[Any], Any] | None = None) -> str:
    """Return compact JSON with text outside ASCII kept as it is, lone halves escaped.

    Args:
        value: The value.
        default: Turns what is no JSON into JSON; None refuses it.

    Raises:
        TypeError: The value is no JSON.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return _slow_dump(value, default)


def _own_entries(value: object) -> dict[str, Any]:
    """Return what ``{...value}`` holds in JavaScript."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list | str):
        return {str(position): item for position, item in enumerate(value)}
    return {}


def can_merge(base: object, overrides: object) -> bool:
    """Tell whether the SDK can merge the two: into a text or number it cannot (it throws)."""
    keys = _own_entries(overrides).keys() - _PROTOTYPE_KEYS
    return isinstance(base, dict | list) or not keys


_PROTOTYPE_KEYS = frozenset(("__proto__", "constructor", "prototype"))


def merge(base: object, overrides: object) -> dict[str, Any]:
    """Return the two values merged as the AI SDK merges message metadata.

    Objects are merged key by key at every depth; arrays and scalars are replaced.
    """
    result = dict(_own_entries(base))
    for key, value in _own_entries(overrides).items():
        if key in _PROTOTYPE_KEYS:
            continue
        held = result.get(key)
        result[key] = (
            merge(held, value) if isinstance(held, dict) and isinstance(value, dict) else value
        )
    return result
