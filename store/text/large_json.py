"""Reads JSON that comes in pieces, so that no other thread waits long for the interpreter.

A call of a JSON library holds the interpreter's lock until it returns. So the long strings of a
text are decoded piece by piece, and large arrays and objects member by member.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from typing import Any

_FAR = 12
"""Bytes without a backslash behind which no escape goes on; a pair of ``\\uXXXX`` is 12 long."""
_LOOKED_AT = 4096
_SMALL = 65_536
"""Characters of a member up to which the next one is read in one call."""
_SPACE = " \t\n\r"


class NotInPieces(ValueError):
    """A text that cannot be read in pieces; it may be JSON, or not."""


def loads_pieces(pieces: Iterable[bytes]) -> Any:
    """Return the value of a JSON text.

    Args:
        pieces: The text in UTF-8, cut anywhere.

    Raises:
        NotInPieces: It could not be read in pieces.
    """
    token = secrets.token_hex(12)
    try:
        texts, longs = _without_long_strings(_cut_safely(pieces), token)
        text = "".join(texts)
        value, end = _member(text, 0)
        if text[end : end + 1] and text[end:].strip(_SPACE):
            raise ValueError(f"more than a value, from {end} on")
    except (ValueError, IndexError, StopIteration, RecursionError) as error:
        raise NotInPieces(str(error)) from None
    return _filled(value, token, longs) if longs else value


def _cut_safely(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces cut where neither an escape nor a character goes on."""
    held = b""
    for piece in pieces:
        held += piece
        cut = _safe_cut(held)
        if cut:
            yield held[:cut]
            held = held[cut:]
    if held:
        yield held


def _safe_cut(data: bytes) -> int:
    """Return where a text can be cut near its end; 0 for nowhere."""
    start = max(0, len(data) - _LOOKED_AT)
    end = len(data) - 1
    while end > start:
        last = data.rfind(b"\\", start, end)
        if last < 0 and start:
            last = start
        if end - last >= _FAR:
            # No backslash for long: the byte at the end begins a character or an escape.
            while end - last >= _FAR and data[end] >= 0x80:
                end -= 1
            if end - last >= _FAR:
                return end
        end = last
    return 0


def _without_long_strings(pieces: Iterable[bytes], token: str) -> tuple[list[str], list[str]]:
    """Return a text with marks for pieces that are inside of a string, and those pieces."""
    texts: list[str] = []
    longs: list[str] = []
    inside = False
    for piece in pieces:
        quotes = piece.replace(b"\\\\", b"").replace(b'\\"', b"").count(b'"')
        text = piece.decode("utf-8", "replace")
        if inside and not quotes:
            texts.append(f"{token}:{len(longs)};")
            longs.append(json.loads(f'"{text}"'))
        else:
            texts.append(text)
            inside ^= quotes % 2 == 1
    return texts, longs


def _filled(value: Any, token: str, longs: list[str]) -> Any:
    """Put the pieces of long strings where their marks are."""
    if isinstance(value, str):
        if token not in value:
            return value
        before, *rest = value.split(f"{token}:")
        found = [before]
        for each in rest:
            number, _, after = each.partition(";")
            found += (longs[int(number)], after)
        return "".join(found)
    if isinstance(value, list):
        return [_filled(each, token, longs) for each in value]
    if isinstance(value, dict):
        return {_filled(key, token, longs): _filled(each, token, longs)
                for key, each in value.items()}  # fmt: skip
    return value


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_WHOLE = json.JSONDecoder(parse_constant=_refuse).raw_decode


def _member(text: str, at: int) -> tuple[Any, int]:
    """Return a value and where it ends, its members read one by one."""
    at = _past_space(text, at)
    if text[at] == "[":
        return _array(text, at + 1)
    if text[at] == "{":
        return _object(text, at + 1)
    return _WHOLE(text, at)


def _array(text: str, at: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    at, size = _past_space(text, at), _SMALL + 1
    if text[at] == "]":
        return found, at + 1
    while True:
        began = at = _past_space(text, at)
        value, at = _WHOLE(text, at) if size <= _SMALL else _member(text, at)
        found.append(value)
        at, size = _past_space(text, at), at - began
        if text[at] == "]":
            return found, at + 1
        at = _past(text, at, ",")


def _object(text: str, at: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    at, size = _past_space(text, at), _SMALL + 1
    if text[at] == "}":
        return found, at + 1
    while True:
        at = _past_space(text, at)
        _past(text, at, '"')
        key, at = _WHOLE(text, at)
        began = at = _past_space(text, _past(text, _past_space(text, at), ":"))
        value, at = _WHOLE(text, at) if size <= _SMALL else _member(text, at)
        found[key] = value
        # A short text says nothing of the size of the object behind it.
        size = at - began if isinstance(value, dict | list) else size
        at = _past_space(text, at)
        if text[at] == "}":
            return found, at + 1
        at = _past(text, at, ",")


def _past(text: str, at: int, sign: str) -> int:
    if text[at] != sign:
        raise ValueError(f"{sign!r} is missing at {at}")
    return at + 1


def _past_space(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
