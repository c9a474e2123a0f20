"""Reads JSON that comes in pieces, so that no other thread waits long for the interpreter.

A call of a JSON library holds the interpreter's lock until it returns. So a large text is never
whole: its members are read one by one from a window of it, and long strings grow piece by piece.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any

from store.system.collection import paused_collection
from store.system.turns import Turns

WINDOW = 65_536
"""Characters that are looked at together, at least."""
_MARGIN = 8
"""Characters behind a value in which it may go on, as the number ``1`` in ``1.5e-9``."""
_ESCAPE = 6
"""Characters of the longest escape, ``\\uXXXX``."""
_SPACE = " \t\n\r"
_TURN = 64
"""Members after which other threads may have a turn."""


class NotInPieces(ValueError):
    """A text that cannot be read in pieces; it may be JSON, or not."""


def loads_pieces(pieces: Iterable[bytes], window: int = WINDOW) -> Any:
    """Return the value of a JSON text.

    Args:
        pieces: The text in UTF-8, cut anywhere.
        window: Characters that are looked at together, at least; numbers are shorter.

    Raises:
        NotInPieces: It could not be read in pieces.
    """
    with paused_collection(aging=True):
        try:
            return _Reader(_texts(pieces), window).whole()
        except (ValueError, RecursionError) as error:
            raise NotInPieces(str(error)) from None


def _texts(pieces: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODE = json.JSONDecoder(parse_constant=_refuse).raw_decode
_NOT_HERE = object()


class _Reader:
    """Reads values from a window that moves over a text.

    ``_at`` is the place in ``_window`` up to which it has read.
    """

    def __init__(self, texts: Iterator[str], size: int) -> None:
        self._texts, self._size = texts, size
        self._turns = Turns()
        self._window, self._at, self._ended = "", 0, False

    def whole(self) -> Any:
        """Return the value of the whole text."""
        value = self._value()
        if self._sign():
            raise ValueError("there is more than a value")
        return value

    def _refill(self) -> bool:
        """Take more of the text into the window; return whether there was more."""
        self._turns.give()
        texts, size = [self._window[self._at :]], 0
        while size < self._size and not self._ended:
            text = next(self._texts, None)
            if text is None:
                self._ended = True
            else:
                texts.append(text)
                size += len(text)
        self._window, self._at = "".join(texts), 0
        return size > 0

    def _sign(self) -> str:
        """Return the next character that is no space; nothing at the end of the text."""
        while True:
            window, at = self._window, self._at
            while at < len(window):
                if window[at] not in _SPACE:
                    self._at = at
                    return window[at]
                at += 1
            self._at = at
            if not self._refill():
                return ""

    def _value(self) -> Any:
        sign = self._sign()
        value = self._in_window()
        if value is _NOT_HERE and len(self._window) - self._at < self._size:
            self._refill()
            value = self._in_window()
        if value is not _NOT_HERE:
            return value
        if sign == "[":
            return self._array()
        if sign == "{":
            return self._object()
        if sign == '"':
            return self._string()
        raise ValueError("a value is missing")

    def _in_window(self) -> Any:
        """Return the value that begins here, if all of it is in the window."""
        try:
            value, end = _DECODE(self._window, self._at)
        except ValueError:
            return _NOT_HERE
        if end + _MARGIN > len(self._window) and not self._ended:
            return _NOT_HERE
        self._at = end
        return value

    def _array(self) -> list[Any]:
        found: list[Any] = []
        self._at += 1
        if self._sign() == "]":
            self._at += 1
            return found
        while True:
            self._small_members(found)
            found.append(self._value())
            if self._ends("]"):
                return found

    def _small_members(self, found: list[Any]) -> None:
        """Read the members of an array that the window has, each with a comma behind it.

        Args:
            found: Takes them.
        """
        window, at, give = self._window, self._at, self._turns.give
        most = len(window) - _MARGIN
        try:
            while at < most:
                value, end = _DECODE(window, at)
                if window[end] != "," or end > most:
                    break
                found.append(value)
                at = end + 1
                while window[at] in _SPACE:
                    at += 1
                if not len(found) % _TURN:
                    give()
        except (ValueError, IndexError):
            pass  # A member that goes on behind the window.
        self._at = min(at, len(window))

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._at += 1
        if self._sign() == "}":
            self._at += 1
            return found
        while True:
            if self._sign() != '"':
                raise ValueError("a key is missing")
            key = self._value()
            if self._sign() != ":":
                raise ValueError("a colon is missing")
            self._at += 1
            found[key] = self._value()
            if not len(found) % _TURN:
                self._turns.give()
            if self._ends("}"):
                return found

    def _ends(self, closing: str) -> bool:
        """Read what is behind a member: a comma, or the end of what has it."""
        sign = self._sign()
        if sign not in (",", closing):
            raise ValueError("a comma is missing")
        self._at += 1
        if sign == "," and self._sign() == closing:
            raise ValueError("a member is missing")
        return sign == closing

    def _string(self) -> str:
        """Return a string that is longer than the window."""
        found = ""
        for piece in self._string_pieces():
            # In place, as nothing else has the text: to join all pieces would be one long step.
            found += piece
        return found

    def _string_pieces(self) -> Iterator[str]:
        self._at += 1
        while not self._ended:
            cut = _between_escapes(self._window, self._at)
            text = f'"{self._window[self._at : cut]}"'
            piece, end = _DECODE(text)
            if end < len(text):
                self._at += end - 1
                yield piece
                return
            if "\ud800" <= piece[-1:] <= "\udbff":
                # The other half of the pair comes behind it.
                piece, cut = piece[:-1], cut - _ESCAPE
            yield piece
            self._at = cut
            self._refill()
        piece, end = _DECODE(f'"{self._window[self._at :]}')
        self._at += end - 1
        yield piece


def _between_escapes(window: str, start: int) -> int:
    """Return a place near the end of a part of a string at which no escape goes on.

    Args:
        window: Has the part.
        start: Where the part begins.
    """
    end = len(window) - _ESCAPE
    last = window.rfind("\\", start, end)
    if last < 0:
        return max(start, end)
    before = window[start : last + 1]
    escapes = (len(before) - len(before.rstrip("\\"))) % 2
    length = 1 if not escapes else _ESCAPE if window[last + 1] == "u" else 2
    return max(last + length, end)
