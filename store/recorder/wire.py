"""Reads UI message chunks from bytes: JSON lines, or server-sent events, told apart by line.

A line that is no chunk is named with its number and passed over; one that is cut off by
the end of the stream too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from store.recorder.json_text import NotJson, parse

DONE = b"[DONE]"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NO_CHUNK: dict[str, Any] = {}
_OTHER_FIELDS = (b"event:", b"id:", b"retry:", b":")


Received = tuple[dict[str, Any], int, int]
"""One object of the stream, its bytes on the wire, and the number of its line, from 1.

The object is a chunk (``type``), a whole UIMessage (``role``), or one of ``ORDERS``.
"""
ORDERS = ("queue", "fire", "cancel")
"""Keys of lines about queued messages: ``{"queue": message}``, ``{"fire": id}``,
``{"cancel": id}``; the id null means the message that has waited longest."""


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
        self._after_return = False
        self._line = 0
        self._event: list[bytes] = []

    def feed(self, data: bytes) -> list[Item]:
        """Return what the bytes complete."""
        if b"\r" in data or self._after_return:
            data = self._with_newlines(data)
        if b"\n" not in data:
            self._torn.append(data)
            return []
        *lines, last = (b"".join((*self._torn, data)) if self._torn else data).split(b"\n")
        self._torn = [last] if last else []
        return self._items(lines)

    def _with_newlines(self, data: bytes) -> bytes:
        """Return the bytes with each CR LF and each CR alone, which end a line too, as LF."""
        if self._after_return:
            data = data.removeprefix(b"\n")
        self._after_return = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def end(self) -> list[Item]:
        """Return what the end of the stream completes."""
        lines = [b"".join(self._torn)] if self._torn else []
        self._torn = []
        return self._items(lines) + self._dispatch()

    def _items(self, lines: list[bytes]) -> list[Item]:
        items: list[Item] = []
        for line in lines:
            self._line += 1
            body = line.strip()
            if body[:1] == b"{":
                try:
                    value = orjson.loads(body)
                except orjson.JSONDecodeError:
                    value = _NO_CHUNK
                if type(value.get("type")) is str:
                    items.append((value, len(body), self._line))
                else:
                    items.append(self._object(body))
            elif body.startswith(b"data:"):
                self._event.append(body[len(b"data:") :].strip())
            elif not body:
                items += self._dispatch()
            elif self._line == 1 and body.startswith(_BYTE_ORDER_MARK):
                self._line = 0
                items += self._items([line.removeprefix(_BYTE_ORDER_MARK)])
            elif not body.startswith(_OTHER_FIELDS):
                items.append(self._object(body))
        return items

    def _dispatch(self) -> list[Item]:
        if not self._event:
            return []
        event, self._event = self._event, []
        whole = self._object(b"\n".join(event)) if event != [DONE] else EndOfTurn()
        if isinstance(whole, Malformed) and len(event) > 1:
            # Some servers leave out the empty line between two events.
            return [EndOfTurn() if body == DONE else self._object(body) for body in event]
        return [whole]

    def _object(self, body: bytes) -> Item:
        try:
            value = parse(body)
        except NotJson as error:
            return Malformed(self._line, str(error))
        if not isinstance(value, dict):
            return Malformed(self._line, "not a JSON object")
        if type(value.get("type")) is str:
            return value, len(body), self._line
        if isinstance(value.get("role"), str) and isinstance(value.get("parts"), list):
            return value, len(body), self._line
        if len(value) == 1 and next(iter(value)) in ORDERS:
            return value, len(body), self._line
        return Malformed(self._line, "neither a chunk (type) nor a message (role, parts)")
