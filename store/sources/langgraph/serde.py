"""Reads what LangGraph's serializers wrote, as values of JSON.

Nothing is ever imported, called or unpickled: where the data names a Python class, what it
would be made of takes its place. Lengths are checked against the bytes that are there.
"""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime, timedelta
from typing import Any

from store.sources.base.json_values import DEEPEST, TOO_DEEP, LineError, parse_json
from store.sources.base.values import mapping, string

MESSAGE_TYPES = {
    "human": "human", "ai": "ai", "tool": "tool", "system": "system", "function": "function",
    "chat": "chat", "remove": "remove", "developer": "system", "HumanMessageChunk": "human",
    "AIMessageChunk": "ai", "ToolMessageChunk": "tool", "SystemMessageChunk": "system",
    "FunctionMessageChunk": "function", "ChatMessageChunk": "chat",
}  # fmt: skip
"""The types that messages have, and which of them each is."""
_CLASSES = {
    f"{name}Message{end}": kind for name, kind in (
        ("Human", "human"), ("AI", "ai"), ("Tool", "tool"), ("System", "system"),
        ("Function", "function"), ("Chat", "chat"), ("Remove", "remove"),
    ) for end in ("", "Chunk")
}  # fmt: skip
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b",
    0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_LENGTHS = {1: ">B", 2: ">H", 4: ">I"}
_FIELDS = (4, 5)
"""The extension types of pydantic's models."""
_SNAPSHOT, _UUID = 7, "UUID"


class Unreadable(Exception):
    """A value that cannot be shown; the message says why."""


class Serde:
    """Decodes the blobs of one thread; what many of them repeat is decoded once."""

    def __init__(self) -> None:
        """Start with nothing decoded."""
        self._known: dict[tuple[int, bytes], Any] = {}

    def value(self, kind: object, blob: object) -> Any:
        """Return the value of a blob.

        Args:
            kind: Its type as the row has it.
            blob: The bytes; text where the database's owner made it so.

        Raises:
            Unreadable: It is damaged, encrypted, or of a type that is never decoded.
        """
        raw = blob.encode("utf-8", "surrogatepass") if isinstance(blob, str) else blob
        if kind == "null":
            return None
        if not isinstance(raw, bytes):
            raise Unreadable("no bytes")
        if kind in ("bytes", "bytearray"):
            return _counted(raw)
        if kind == "msgpack":
            return self._decoded(raw, 0)
        if kind == "json" or kind is None:
            try:
                return _built(parse_json(raw)[0])
            except LineError as error:
                raise Unreadable(str(error)) from error
        what = "encrypted" if "+" in str(kind) else "never decoded"
        raise Unreadable(f"{str(kind)[:40]} is {what}")

    def _decoded(self, raw: bytes, depth: int) -> Any:
        reader = _Reader(raw, self)
        value = reader.next(depth)
        if reader.at != len(raw):
            raise Unreadable("bytes behind the value")
        return value

    def extension(self, code: int, raw: bytes, depth: int) -> Any:
        """Return what an extension type holds, as data.

        Args:
            code: Its number.
            raw: Its bytes.
            depth: How many values it is within.
        """
        if code == -1:
            return _moment(raw)
        if not 0 <= code <= _SNAPSHOT:
            return {"ext": code, "bytes": len(raw)}
        key = code, raw
        found = self._known.get(key)
        if found is None:
            try:
                found = _made(code, self._decoded(raw, depth))
            except Unreadable:
                found = {"ext": code, "bytes": len(raw)}
            if code in _FIELDS:
                # What is sent to a task holds a whole state, each time another one.
                self._known[key] = found
        return found


class _Reader:
    """Reads one MessagePack value after the other."""

    def __init__(self, raw: bytes, serde: Serde) -> None:
        self._raw, self.at, self._serde = raw, 0, serde

    def next(self, depth: int) -> Any:
        """Return the next value.

        Raises:
            Unreadable: The bytes are none.
        """
        mark = self._take(1)[0]
        if mark <= 0x7F:
            return mark
        if mark >= 0xE0:
            return mark - 0x100
        if mark <= 0x8F:
            return self._map(mark & 0x0F, depth)
        if mark <= 0x9F:
            return self._list(mark & 0x0F, depth)
        if mark <= 0xBF:
            return self._text(mark & 0x1F)
        if mark in _NUMBERS:
            return self._number(_NUMBERS[mark])
        if mark in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[mark]
        if 0xC4 <= mark <= 0xC6:
            return _counted(self._take(self._length(1 << (mark - 0xC4))))
        if 0xC7 <= mark <= 0xC9:
            return self._extension(self._length(1 << (mark - 0xC7)), depth)
        if 0xD4 <= mark <= 0xD8:
            return self._extension(1 << (mark - 0xD4), depth)
        if 0xD9 <= mark <= 0xDB:
            return self._text(self._length(1 << (mark - 0xD9)))
        if 0xDC <= mark <= 0xDD:
            return self._list(self._length(2 << (mark - 0xDC)), depth)
        if 0xDE <= mark <= 0xDF:
            return self._map(self._length(2 << (mark - 0xDE)), depth)
        raise Unreadable("no MessagePack")

    def _take(self, count: int) -> bytes:
        if count > len(self._raw) - self.at:
            raise Unreadable("ends in the middle")
        self.at += count
        return self._raw[self.at - count : self.at]

    def _length(self, size: int) -> int:
        return int(struct.unpack(_LENGTHS[size], self._take(size))[0])

    def _number(self, form: str) -> int | float | None:
        found: int | float = struct.unpack(form, self._take(struct.calcsize(form)))[0]
        return found if math.isfinite(found) else None

    def _text(self, count: int) -> str:
        return self._take(count).decode("utf-8", "replace")

    def _list(self, count: int, depth: int) -> Any:
        if count > len(self._raw) - self.at:
            raise Unreadable("ends in the middle")
        if depth >= DEEPEST:
            return self._skipped(count)
        return [self.next(depth + 1) for _ in range(count)]

    def _map(self, count: int, depth: int) -> Any:
        if 2 * count > len(self._raw) - self.at:
            raise Unreadable("ends in the middle")
        if depth >= DEEPEST:
            return self._skipped(2 * count)
        found: dict[str, Any] = {}
        for _ in range(count):
            key = self.next(depth + 1)
            found[key if isinstance(key, str) else str(key)] = self.next(depth + 1)
        return found

    def _skipped(self, count: int) -> str:
        """Pass over values that are nested too deeply, however deep, without recursion."""
        while count:
            count -= 1
            mark = self._take(1)[0]
            if 0x80 <= mark <= 0x8F:
                count += 2 * (mark & 0x0F)
            elif 0x90 <= mark <= 0x9F:
                count += mark & 0x0F
            elif 0xA0 <= mark <= 0xBF:
                self._take(mark & 0x1F)
            elif mark in _NUMBERS:
                self._take(struct.calcsize(_NUMBERS[mark]))
            elif 0xC4 <= mark <= 0xC6:
                self._take(self._length(1 << (mark - 0xC4)))
            elif 0xC7 <= mark <= 0xC9:
                self._take(self._length(1 << (mark - 0xC7)) + 1)
            elif 0xD4 <= mark <= 0xD8:
                self._take((1 << (mark - 0xD4)) + 1)
            elif 0xD9 <= mark <= 0xDB:
                self._take(self._length(1 << (mark - 0xD9)))
            elif 0xDC <= mark <= 0xDD:
                count += self._length(2 << (mark - 0xDC))
            elif 0xDE <= mark <= 0xDF:
                count += 2 * self._length(2 << (mark - 0xDE))
            elif mark == 0xC1:
                raise Unreadable("no MessagePack")
        return TOO_DEEP

    def _extension(self, count: int, depth: int) -> Any:
        (code,) = struct.unpack(">b", self._take(1))
        raw = self._take(count)
        return TOO_DEEP if depth >= DEEPEST else self._serde.extension(code, raw, depth + 1)


def _counted(raw: bytes) -> str:
    return f"({len(raw)} bytes)"


def _moment(raw: bytes) -> Any:
    """Return MessagePack's own type of a time as ISO text."""
    if len(raw) == 4:
        seconds, nanos = struct.unpack(">I", raw)[0], 0
    elif len(raw) == 8:
        (both,) = struct.unpack(">Q", raw)
        seconds, nanos = both & 0x3FFFFFFFF, both >> 34
    elif len(raw) == 12:
        nanos, seconds = struct.unpack(">Iq", raw)
    else:
        return {"ext": -1, "bytes": len(raw)}
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        return at.replace(microsecond=min(nanos // 1000, 999_999)).isoformat()
    except (OverflowError, ValueError):
        return seconds


def _made(code: int, value: Any) -> Any:
    """Return what an object would be made of.

    Args:
        code: How its class takes that.
        value: ``[module, class, what it takes, method]``, or a snapshot's value.
    """
    if code == _SNAPSHOT or not isinstance(value, list) or len(value) < 3:
        return value
    named, taken = value[1], value[2]
    if code == 0 and named == _UUID and isinstance(taken, str) and len(taken) == 32:
        ends = (0, 8, 12, 16, 20, 32)
        return "-".join(taken[a:b] for a, b in zip(ends, ends[1:], strict=False))
    if code == 6:
        return {"dtype": value[0], "shape": value[1]}
    if code == 1 and named == "Send" and isinstance(taken, list) and len(taken) == 2:
        return {"node": taken[0], "arg": taken[1]}
    if code in _FIELDS and isinstance(taken, dict):
        return _typed(named, taken)
    return taken


def _typed(named: object, fields: dict[str, Any]) -> dict[str, Any]:
    """Return a message's fields with its type where they lack it."""
    kind = _CLASSES.get(named) if isinstance(named, str) else None
    return fields if kind is None or "type" in fields else {**fields, "type": kind}


def _built(value: Any) -> Any:
    """Return JSON with what each ``{lc, type: constructor}`` would be made of in its place."""
    if isinstance(value, list):
        return [_built(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "lc" not in value or value.get("type") != "constructor":
        return {key: _built(each) for key, each in value.items()}
    path = value.get("id")
    named = path[-1] if isinstance(path, list) and path else None
    fields, taken = mapping(_built(value.get("kwargs") or {})), _built(value.get("args") or [])
    if not fields and isinstance(taken, list) and taken:
        return taken[0] if len(taken) == 1 else taken
    return _typed(named, fields)


_ROLES = {"user": "human", "assistant": "ai", "system": "system", "developer": "system",
          "tool": "tool", "function": "function"}  # fmt: skip


def as_message(value: Any) -> dict[str, Any] | None:
    """Return a message with the ``type`` that it is of; None where a value is none.

    A program may hold messages in OpenAI's form too, with a ``role``.
    """
    if not isinstance(value, dict):
        return None
    kind = MESSAGE_TYPES.get(string(value.get("type")) or "")
    if kind is None and "type" not in value:
        kind = _ROLES.get(string(value.get("role")) or "")
    if kind is None or ("content" not in value and "tool_calls" not in value):
        return None
    return value if value.get("type") == kind else {**value, "type": kind}
