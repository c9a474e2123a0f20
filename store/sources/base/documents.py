"""Reads a file that is one JSON document, and says once what it holds twice.

A sync tool or a crash may leave a document that follows another one, or the beginning of one.
Messages that are twice in a document's lists are left out by the rule for lines
(``store.sources.base.repeats``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson

from store.sources.base.json_values import LineError, parse_json
from store.sources.base.repeats import equal_earlier, places_without_repeats

SEVERAL = "several documents in one file; the longest whole one is read"
_OPENING = 24
"""Bytes with which each copy of a document begins."""
_MOST = 16
"""Places of a damaged file that are looked at for a whole document."""
_OF_MESSAGES = frozenset({"role", "type", "kind", "say", "ask", "message", "sender", "requestId"})
_SCANNED = json.JSONDecoder(strict=False)


def parse_document(raw: bytes) -> tuple[Any, str | None]:
    """Parse a file that is one JSON document, or several after another.

    Args:
        raw: Its bytes.

    Returns:
        The value, without messages that it holds twice, and what had to be repaired to read it.

    Raises:
        LineError: No whole document is in it.
    """
    try:
        value, repaired = parse_json(raw)
    except LineError:
        longest = max(_whole(raw), key=len, default=None)
        if longest is None:
            raise
        value, repaired = parse_json(longest)[0], SEVERAL
    return _said_once(value), repaired


def _whole(raw: bytes) -> Iterator[bytes]:
    """Yield the whole documents of a file that is none, each as it is."""
    text = raw.decode("utf-8", "surrogateescape").lstrip("\ufeff \t\r\n")
    opening = text[:_OPENING]
    at = 0
    for _ in range(_MOST if opening[:1] in ("{", "[") and len(opening) == _OPENING else 0):
        try:
            end = _SCANNED.raw_decode(text, at)[1]
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield text[at:end].encode("utf-8", "surrogateescape")
        at = text.find(opening, end)
        if at < 0:
            return


def _said_once(value: Any) -> Any:
    """Return a document without the messages that its outer lists hold twice."""
    if isinstance(value, list):
        return without_repeats(value)
    for within in (value, *value.values()) if isinstance(value, dict) else ():
        if not isinstance(within, dict):
            continue
        for key, each in within.items():
            if isinstance(each, list):
                within[key] = without_repeats(each)
    return value


def without_repeats(messages: list[Any]) -> list[Any]:
    """Return the messages of a list without those that were copied; other lists as they are."""
    if len(messages) < 2 or not all(isinstance(one, dict) for one in messages):
        return messages
    if _OF_MESSAGES.isdisjoint(messages[0]):
        return messages
    raw = [orjson.dumps(one, option=orjson.OPT_NON_STR_KEYS) for one in messages]
    alike = equal_earlier(raw)
    if not alike:
        return messages
    return [messages[place] for place in places_without_repeats(messages, raw, alike)]
