r"""JSON of exports: exact, on one line, and harmless on a terminal.

A value goes out and comes in again unchanged: integers past 64 bits and lone surrogates
take a slower path than the rest. Characters that a terminal or an editor acts on are
written as ``\\uXXXX``, which only strings can hold, so nothing is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from store.text.neutral import escaped
from store.text.stored_json import DamagedJson, refuse_deep

LONGEST_LINE = 256 << 20
"""Bytes: what the sources read of one line (64 MiB) becomes no longer in an export."""
_LONG_NUMBER = re.compile(r"\d{16}")


class NotJson(ValueError):
    """Text that is no JSON."""


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def decode(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        NotJson: The text is no JSON, or is nested deeper than can be followed.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return _decode_slowly(text, error)
    _refuse_deep(text, value)
    if _LONG_NUMBER.search(text if isinstance(text, str) else text.decode()):
        # orjson turns integers past 64 bits into floats.
        return _decode_slowly(text, None)
    return value


def _decode_slowly(text: str | bytes, fault: ValueError | None) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(fault or error)) from None
    _refuse_deep(text, value)
    return value


def _refuse_deep(text: str | bytes, value: Any) -> None:
    try:
        refuse_deep(text, value)
    except DamagedJson as error:
        raise NotJson(str(error)) from None


def bounded_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file; of one that is too long only so much that this can be told."""
    while line := file.readline(LONGEST_LINE + 1):
        yield line
        while len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE + 1)


def encode(value: Any) -> str:
    """Return a value as JSON for a column: compact, text outside ASCII as it is."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        try:
            text.encode()
        except UnicodeEncodeError:
            return json.dumps(value, separators=(",", ":"))
        return text


def encode_for_output(value: Any) -> str:
    """Return a value as one line of JSON that is safe to print."""
    return escaped(encode(value))


def column_value(text: str | None) -> Any:
    """Return the value of a JSON column; text that is no JSON is given as a string."""
    if text is None:
        return None
    try:
        return decode(text)
    except NotJson:
        return text
