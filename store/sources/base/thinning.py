"""JSON documents without most of their messages, for a first look at a session.

A document has its id, title and times before and behind its messages, and parsing it takes a
fraction of the time that mapping its messages takes.
"""

from __future__ import annotations

from typing import Any

import orjson

KEPT_FIRST, KEPT_LAST = 12, 3
"""Messages that are kept: titles come from the first prompt, times from the last message."""
_OF_A_MESSAGE = frozenset(("role", "ts", "type", "author", "speaker"))


def thinned(body: bytes) -> bytes:
    """Return a document with the first and the last of its messages; what is no JSON unchanged."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body
    if isinstance(value, list):
        # A list may also be one of sessions.
        return orjson.dumps(_thin(value)) if _are_messages(value) else body
    if not isinstance(value, dict):
        return body
    return orjson.dumps({key: _thin(one) for key, one in value.items()})


def _are_messages(values: list[Any]) -> bool:
    return bool(values) and isinstance(values[0], dict) and not _OF_A_MESSAGE.isdisjoint(values[0])


def _thin(value: Any) -> Any:
    if isinstance(value, list) and len(value) > KEPT_FIRST + KEPT_LAST:
        return [*value[:KEPT_FIRST], *value[-KEPT_LAST:]]
    return value
