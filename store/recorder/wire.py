"""Reads UI message chunks from bytes: JSON lines, or server-sent events, told apart by line.

A line that is no chunk is named with its number and passed over; one that is cut off by
the end of the stream too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from store.recorder.json_text import NotJson, parse

DONE = b"[DONE]"
_OTHER_FIELDS = (b"event:", b"id:", b"retry:", b":")


@dataclass(slots=True, eq=False)
class Received:
    """One object of the stream: a chunk (``type``), or a whole UIMessage (``role``).

    Attributes:
        size: Bytes on the wire.
        line: The number of its line, from 1.
    """

    value: dict[str, Any]
    size: int
    line: int


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that is passed over.

    Attributes:
        line: Its number, from 1.
        reason: What is wrong with it.
    """

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class EndOfTurn:
    """The ``[DONE]`` event: what comes next is another response."""


Item = Received | Malformed | EndOfTurn


class ChunkReader:
    """Splits bytes into lines and lines into chunks, as they arrive."""

    def __init__(self) -> None:
        """Start before the first byte."""
        self._torn: list[bytes] = []
        self._line = 0
        self._event: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[Item]:
        """Yield what the bytes complete."""
        if b"\n" not in data:
            self._torn.append(data)
            return
        first, *rest = data.split(b"\n")
        lines = [b"".join((*self._torn, first)), *rest[:-1]]
        self._torn = [rest[-1]] if rest[-1] else []
        for line in lines:
            yield from self._take(line)

    def end(self) -> Iterator[Item]:
        """Yield what the end of the stream completes."""
        if self._torn:
            last = b"".join(self._torn)
            self._torn = []
            yield from self._take(last)
        yield from self._dispatch()

    def _take(self, line: bytes) -> Iterator[Item]:
        self._line += 1
        if self._line == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        line = line.strip()
        if line.startswith(b"data:"):
            self._event.append(line[len(b"data:") :].strip())
        elif not line:
            yield from self._dispatch()
        elif not line.startswith(_OTHER_FIELDS):
            yield self._object(line)

    def _dispatch(self) -> Iterator[Item]:
        if not self._event:
            return
        event, self._event = self._event, []
        whole = self._object(b"\n".join(event)) if event != [DONE] else EndOfTurn()
        if isinstance(whole, Malformed) and len(event) > 1:
            # Some servers leave out the empty line between two events.
            for body in event:
                yield EndOfTurn() if body == DONE else self._object(body)
        else:
            yield whole

    def _object(self, body: bytes) -> Item:
        try:
            value = parse(body)
        except NotJson as error:
            return Malformed(self._line, str(error))
        if not isinstance(value, dict):
            return Malformed(self._line, "not a JSON object")
        if isinstance(value.get("type"), str):
            return Received(value, len(body), self._line)
        if isinstance(value.get("role"), str) and isinstance(value.get("parts"), list):
            return Received(value, len(body), self._line)
        return Malformed(self._line, "neither a chunk (type) nor a message (role, parts)")
