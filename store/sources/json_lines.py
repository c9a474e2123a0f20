"""Bytes to lines, lines to JSON objects; damage costs the line and is told.

Several agents write their sessions as one JSON object a line. Lines are cut without ever
holding more of one than ``LINE_LIMIT``, so that a file that is one endless line costs
nothing but itself.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

LINE_LIMIT = 64 * 1024 * 1024
"""Bytes of the longest line that is read; real ones (images, PDFs) stay far below."""

CHUNK = 8 * 1024 * 1024
"""Bytes read at once."""

TOO_LONG = "line is longer than 64 MiB, skipped"


class LineError(Exception):
    """A line that is no JSON object; the message is the reason."""


class LineSplitter:
    """Cuts appended bytes into whole lines and holds back the unfinished last one.

    Attributes:
        tail: The unfinished last line; empty while a line that is too long is skipped.
        consumed: Bytes of whole lines (with their newline) so far.
        lines: Whole lines so far, skipped ones too.
        skipped: Numbers (from 1) of lines that were longer than ``limit``.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        """Start at the beginning of a file."""
        self.tail = b""
        self.consumed = 0
        self.lines = 0
        self.skipped: list[int] = []
        self._limit = limit
        self._skipping = 0

    def push(self, chunk: bytes) -> list[bytes]:
        """Take what was appended; return the lines it completes, without newlines.

        A skipped line is returned as an empty one, so that lines keep their numbers.
        """
        if self._skipping:
            end = chunk.find(b"\n")
            if end < 0:
                self._skipping += len(chunk)
                return []
            self.consumed += self._skipping + end + 1
            self._skipping = 0
            lines = [b"", *self._cut(chunk[end + 1 :])]
        else:
            lines = self._cut(self.tail + chunk if self.tail else chunk)
        self.lines += len(lines)
        return lines

    def _cut(self, data: bytes) -> list[bytes]:
        lines = data.split(b"\n")
        self.tail = lines.pop()
        self.consumed += len(data) - len(self.tail)
        if len(data) > self._limit:
            for index, line in enumerate(lines):
                if len(line) > self._limit:
                    self.skipped.append(self.lines + index + 1)
                    lines[index] = b""
        if len(self.tail) > self._limit:
            self.skipped.append(self.lines + len(lines) + 1)
            self._skipping = len(self.tail)
            self.tail = b""
        return lines

    def take_tail(self) -> bytes:
        """Return the last line as if its newline were there, and count it as read.

        The newline that is written before the next line then ends an empty line.
        """
        tail, self.tail = self.tail, b""
        self.consumed += len(tail)
        return tail


def parse_line(line: bytes) -> tuple[dict[str, Any], str | None]:
    """Parse one line.

    Returns:
        The object, and what had to be repaired in the line to read it, if anything.

    Raises:
        LineError: When the line is no JSON object, however it is read.
    """
    repaired = None
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        value, repaired = _parse_leniently(line, error)
    if not isinstance(value, dict):
        raise LineError(f"JSON {type(value).__name__} where an object belongs")
    return value, repaired


def parse_value(text: str | bytes) -> Any:
    """Return the value of a JSON text, read as leniently as a line is.

    Raises:
        LineError: When it is no JSON, however it is read.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return _parse_leniently(raw, error)[0]


def _parse_leniently(line: bytes, error: orjson.JSONDecodeError) -> tuple[Any, str | None]:
    """Read lone surrogates, bytes that are no UTF-8, and what else Python's parser allows."""
    try:
        text, repaired = line.decode("utf-8-sig"), None
    except UnicodeDecodeError:
        text, repaired = line.decode("utf-8", "replace"), "invalid UTF-8, replaced by U+FFFD"
    try:
        return _without_surrogates(json.loads(text)), repaired
    except (ValueError, RecursionError):
        pass
    if b"\0" in line[:1024] or "\ufffd" in text[:1024]:
        raise LineError("binary data where a JSON object belongs") from error
    raise LineError(f"no JSON: {error.msg}") from error


def _without_surrogates(value: Any) -> Any:
    """Replace halves of surrogate pairs, which no database takes, by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value
