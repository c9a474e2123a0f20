"""Finds whole records on a line that is damaged.

Two records may share a line (one writer did not end its line), a record may follow zeros
that a crash left, or the beginning of another one that was never finished. What tells a
whole record from an object inside a torn one: nothing of JSON continues after it, and where
it is in the place of a value it has the keys that the torn record begins with.
"""

from __future__ import annotations

import json
import re
from typing import Any

from store.sources.base.json_values import LineError, parse_json

_OPENING = re.compile(r'\{[ \t\r\n]*"')
_GOING_ON = re.compile(r"[ \t\r\n]*[,\]}:]")
_INSIDE = re.compile(r"""[ \t\r\n]*(?:,[ \t\r\n]*"|[}:]|\][ \t\r\n]*[^ \t\r\n\0])""")
"""What continues behind a value of a record whose beginning is lost."""
_BETWEEN = " \t\r\n\0,[]\ufeff"
"""What may be between records without being part of one."""
_KEYS = 3
"""How many first keys tell that an object is a record of the same kind."""
_COST = 32
"""How many times the length of a line may be gone through to find what is whole in it."""
_SCANNED = json.JSONDecoder(strict=False)

Pieces = list[tuple[bytes, dict[str, Any] | None]]


def whole_records(line: bytes) -> Pieces:
    """Return what a line that is no JSON object is made of.

    Returns:
        Each record with its bytes; damage, which is all that is left, has bytes alone.
    """
    text = line.decode("utf-8", "surrogateescape")
    pieces: Pieces = []
    end = at = 0
    left = _COST * len(text) + 65536
    while left > 0 and (opening := _OPENING.search(text, at)):
        begin = opening.start()
        stop, cost = _end_of_object(text, begin)
        left -= cost + begin - end
        if stop is None:
            at = begin + 1
            continue
        at = stop
        if not _is_record(text, end, begin, stop):
            continue
        raw = _bytes(text[begin:stop])
        try:
            data = parse_json(raw)[0]
        except LineError:
            continue
        pieces += _damage(text[end:begin])
        pieces.append((raw, data))
        end = stop
    return pieces + _damage(text[end:])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _damage(text: str) -> Pieces:
    return [(_bytes(text), None)] if text.strip(_BETWEEN) or "\0" in text else []


def _end_of_object(text: str, begin: int) -> tuple[int | None, int]:
    """Return where an object ends, and how many characters were gone through to find out.

    An error goes through all that is before it, to tell its line.
    """
    try:
        end = _SCANNED.raw_decode(text, begin)[1]
    except json.JSONDecodeError as error:
        return None, len(text) if error.msg.startswith("Unterminated") else error.pos + 1
    except (ValueError, RecursionError):
        return None, len(text)
    return end, end - begin


def _is_record(text: str, end: int, begin: int, stop: int) -> bool:
    """Return whether a whole object is a record rather than a value inside a torn one.

    Args:
        text: The line.
        end: Where the last record ended.
        begin: Where the object begins.
        stop: Where it ends.
    """
    gap = text[end:begin]
    if not gap.strip(_BETWEEN):
        return not _INSIDE.match(text, stop)
    if _GOING_ON.match(text, stop):
        return False
    if gap.rstrip(" \t\r\n")[-1:] not in (":", ",", "["):
        return True
    torn = _OPENING.search(gap)
    if torn is None:
        return False
    keys = _first_keys(gap[torn.start() :])
    return bool(keys) and _first_keys(text[begin:stop])[: len(keys)] == keys


def _first_keys(text: str) -> list[str]:
    """Return the first keys of an object that may be torn."""
    keys: list[str] = []
    at = 1
    while len(keys) < _KEYS:
        at = _skipped(text, at, " \t\r\n,")
        if text[at : at + 1] != '"':
            break
        try:
            key, at = _SCANNED.raw_decode(text, at)
            keys.append(str(key))
            at = _SCANNED.raw_decode(text, _skipped(text, at, " \t\r\n:"))[1]
        except (ValueError, RecursionError):
            break
    return keys


def _skipped(text: str, at: int, what: str) -> int:
    while at < len(text) and text[at] in what:
        at += 1
    return at
