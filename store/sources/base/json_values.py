"""Decodes JSON texts to values within fixed limits, which are all defined here.

A value that a database, printer or reader could not handle is replaced: values nested too
deeply, numbers that JSON does not have, lone surrogates, bytes that are not UTF-8. The rest of
its record is unchanged.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

from store.sources.base.file_forms import form_of

DEEPEST = 100
"""Levels of objects and lists that are read; printing and drawing go no deeper than 250."""
TOO_DEEP = "(nested deeper than 100 levels, left out)"
"""Replaces values that are nested deeper."""
DEEP = f"values nested deeper than {DEEPEST} levels, left out"
NO_NUMBER = "numbers that JSON does not have, replaced by null"
CONTROLS = "control characters inside a string"
BAD_UTF8 = "invalid UTF-8, replaced by U+FFFD"

_PRINTED = 254
"""The deepest that orjson prints."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.S)


class LineError(Exception):
    """A text that is no JSON, or none of the kind that belongs there; the message says why."""


def parse_json(raw: bytes, *, may_be_wrapped: bool = True) -> tuple[Any, str | None]:
    """Parse a JSON text, as leniently as it can be told what it means.

    Args:
        raw: The text, in UTF-8.
        may_be_wrapped: Whether it may be in another encoding, or compressed.

    Returns:
        The value, and what had to be repaired to read it, if anything.

    Raises:
        LineError: When it is no JSON, however it is read.
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return _parse_leniently(raw, error, may_be_wrapped)
    if _may_be_deep(raw) and _is_deep(value):
        return orjson.loads(_shallow(raw)), DEEP
    return value, None


def _may_be_deep(raw: bytes) -> bool:
    """Return whether more objects and lists begin in a text than one may hold in another."""
    if len(raw) <= 2 * DEEPEST:
        return False
    left = DEEPEST
    find = raw.find
    for mark in (b"{", b"["):
        # Several times as quick as ``count``, where few are in much text.
        place = find(mark)
        while place >= 0:
            if not left:
                return True
            left -= 1
            place = find(mark, place + 1)
    return False


def _is_deep(value: Any) -> bool:
    for _ in range(_PRINTED - DEEPEST):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return True
    return False


def _shallow(raw: bytes) -> bytes:
    """Return a JSON text with a string in the place of each value that is nested too deeply."""
    kept, end, depth, begin = [], 0, 0, 0
    for token in _TOKEN.finditer(raw):
        mark = raw[token.start() : token.start() + 1]
        if mark in (b"[", b"{"):
            depth += 1
            if depth == DEEPEST + 1:
                begin = token.start()
        elif mark in (b"]", b"}"):
            if depth == DEEPEST + 1:
                kept += [raw[end:begin], b'"', TOO_DEEP.encode(), b'"']
                end = token.end()
            depth -= 1
    return b"".join([*kept, raw[end:]])


def _parse_leniently(
    raw: bytes, error: orjson.JSONDecodeError, may_be_wrapped: bool
) -> tuple[Any, str | None]:
    """Read what Python's parser allows beside what orjson does, and other encodings."""
    form = form_of(raw[:8]) if may_be_wrapped else None
    if form is not None:
        value, more = parse_json(form.decode(raw), may_be_wrapped=False)
        return value, "; ".join(filter(None, (form.reason, *form.problems, more)))
    repaired = []
    if _may_be_deep(raw) and (shallow := _shallow(raw)) != raw:
        raw = shallow
        repaired.append(DEEP)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        repaired.append(BAD_UTF8)
    for strict in (True, False):
        odd: list[str] = []
        decoder = _decoder(odd, strict=strict)
        try:
            value = _without_surrogates(decoder.decode(text))
        except (ValueError, RecursionError):
            continue
        repaired += [NO_NUMBER] if odd else []
        repaired += [] if strict else [CONTROLS]
        return value, "; ".join(repaired) or None
    if b"\0" in raw[:1024] or "\ufffd" in text[:1024]:
        raise LineError("binary data where a JSON object belongs") from error
    raise LineError(f"no JSON: {error.msg}") from error


def _decoder(odd: list[str], *, strict: bool) -> json.JSONDecoder:
    """Return a parser that puts numbers which JSON does not have into ``odd``."""

    def none(text: str) -> None:
        odd.append(text)

    def real(text: str) -> float | None:
        value = float(text)
        if math.isfinite(value):
            return value
        odd.append(text)
        return None

    def whole(text: str) -> int | float | None:
        return int(text) if len(text) < 19 else real(text)

    return json.JSONDecoder(parse_constant=none, parse_float=real, parse_int=whole, strict=strict)


def _without_surrogates(value: Any) -> Any:
    """Replace halves of surrogate pairs, which no database takes, by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value
