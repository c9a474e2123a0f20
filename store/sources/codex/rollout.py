"""One rollout file, line by line, compressed or not: its records, lines and problems."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from typing import Any

import orjson

from store.sources.base.documents import parse_document
from store.sources.base.growing import Changed, LinesFile
from store.sources.base.json_lines import LINE_LIMIT, LineError, Record
from store.sources.base.odd_times import OddTimes
from store.sources.base.protocol import FileStamp, Problem
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.codex.names import DOCUMENT, PACKED, rollout_name
from store.system.compression import unpacked_limit
from store.system.paths import open_regular

_ITEMS = frozenset(
    ["message", "reasoning", "function_call", "function_call_output", "local_shell_call",
     "local_shell_call_output", "web_search_call", "custom_tool_call", "custom_tool_call_output"]
)  # fmt: skip
"""What the first versions wrote bare, without an envelope."""
_FIRST = 8
"""Records at the beginning, one of which is a state where the version writes them."""


@dataclass(slots=True)
class Line:
    """One line.

    Attributes:
        number: Its place among the file's records, from 0.
        place: Physical key and number of the line that it is (a copy of); names it for good.
        ordinal: Its ordinal; None in legacy files.
        type: ``session_meta``, ``response_item``, ``event_msg`` and so on.
        kind: The payload's own ``type``; "" where it has none.
        at: Epoch ms; the previous line's where it has none.
        extra: The envelope's ``metadata``.
        timed: Whether it has a time of its own.
    """

    number: int
    place: tuple[str, int]
    ordinal: int | None
    type: str
    kind: str
    payload: dict[str, Any]
    at: int
    extra: dict[str, Any]
    timed: bool = True


class Rollout(LinesFile):
    """What one file holds so far; appended bytes are parsed once, as they come.

    Attributes:
        key: Its physical key, from its name, else its first line.
        lines: Its lines that could be read.
        meta: The first ``session_meta`` payload; empty before it came.
        gone: Whether its file is gone, and it was read from the library.
        context_lines: How many of ``lines`` are of the context.
    """

    def __init__(self, path: str, line_limit: int = LINE_LIMIT, **begin: int) -> None:
        """Start with nothing read.

        Args:
            path: The file.
            line_limit: Bytes of the longest line that is read.
            begin: Where it is read from, as in ``LinesFile``.
        """
        super().__init__(path, line_limit, **begin)
        self.context_lines = 0
        self.gone = False
        name = rollout_name(path)
        self.key = name.key if name else ""
        self.lines: list[Line] = []
        self.meta: dict[str, Any] = {}
        self._times = OddTimes[Line]()
        self._last_at = 0

    @staticmethod
    def after_equal(data: dict[str, Any], records: Sequence[bytes]) -> bool | None:
        """Return that old versions write their state after each item, so that none follows it."""
        first = records[:_FIRST] if _bare(data)[0] is not None else ()
        return True if any(b'"record_type"' in record for record in first) else None

    def take_context(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Take the earlier records, each with its number, that later ones are read with."""
        super().take_context(records)
        self.context_lines = len(self.lines)

    def take(self, records: Iterable[Record]) -> None:
        """Make lines of the next records."""
        for record in records:
            self._take(record.data, self.first + record.number)

    def metas(self) -> Iterator[dict[str, Any]]:
        """Yield the ``session_meta`` payloads at the beginning: its own, then copied ones."""
        for line in self.lines:
            if line.type != "session_meta":
                return
            yield line.payload

    def _take(self, data: dict[str, Any], number: int) -> None:
        kind, payload = data.get("type"), data.get("payload")
        if not isinstance(payload, dict):
            kind, payload = _bare(data)
        if not isinstance(kind, str):
            return
        stamp = epoch_ms(data.get("timestamp"))
        self._last_at = stamp if stamp is not None else self._last_at
        if kind == "session_meta" and not self.meta:
            self.meta = payload
            self.key = self.key or string(payload.get("id")) or ""
        ordinal = data.get("ordinal")
        line = Line(
            number,
            (self.key, number),
            ordinal if type(ordinal) is int else None,
            kind,
            string(payload.get("type")) or "",
            payload,
            self._last_at,
            mapping(data.get("metadata")),
            stamp is not None,
        )
        self._times.take(self.lines, line)
        self.lines.append(line)


def _bare(data: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return type and payload of a line of the first versions, which had no envelope."""
    if string(data.get("type")) in _ITEMS:
        return "response_item", data
    if string(data.get("id")) and "timestamp" in data and "type" not in data:
        return "session_meta", data
    return None, data


class _WholeRollout(Rollout):
    """A rollout that is no file of lines, and is read whole each time that it moved."""

    _stamp: FileStamp
    _noticed: list[Problem]

    def read(self, torn: list[Problem]) -> FileStamp:
        """Read the file, once.

        Args:
            torn: Takes a torn last line, or why not all of the file could be read.

        Raises:
            Changed: It is not as it was read.
            OSError: It cannot be opened or read.
        """
        if self.is_begun:
            status = os.stat(self.path)
            if status.st_mtime_ns != self._stamp.mtime_ns or status.st_size != self._stamp.size:
                raise Changed
        else:
            self._noticed = []
            with open_regular(self.path) as file:
                status = os.fstat(file.fileno())
                offset = self.take_whole(file, status.st_size, self._noticed)
            last = self.finish()
            self._noticed += [last] if last is not None else []
            self.is_begun, self._stamp = True, FileStamp(
                self.path, status.st_ino, status.st_size, status.st_mtime_ns, offset
            )
        torn += self._noticed
        return self._stamp

    @abstractmethod
    def take_whole(self, file: FileIO, size: int, problems: list[Problem]) -> int:
        """Push the lines that the file holds; return the bytes of it that were taken."""


class _Document(_WholeRollout):
    """A file of ``{session, items}``, taken as the lines that it would be."""

    def take_whole(self, file: FileIO, size: int, problems: list[Problem]) -> int:
        body = file.read(LINE_LIMIT + 1) or b""
        if len(body) > LINE_LIMIT:
            problems.append(Problem(self.path, 0, "file is larger than 64 MiB, skipped"))
            return size
        try:
            found, repaired = parse_document(body)
        except LineError as error:
            problems.append(Problem(self.path, 0, str(error)))
            return 0
        if repaired:
            problems.append(Problem(self.path, 1, repaired))
        data = mapping(found)
        items = data.get("items")
        rows = [mapping(data.get("session")), *(items if isinstance(items, list) else ())]
        self.push(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        return size


_PIECE = 1024
"""Bytes that are unpacked at once: a block of 3 bytes can stand for 128 KiB."""


class _Packed(_WholeRollout):
    """A compressed file, read as far as it can be decompressed."""

    def take_whole(self, file: FileIO, size: int, problems: list[Problem]) -> int:
        # Imported here: few stores have compressed rollouts.
        import zstandard

        unpacker = zstandard.ZstdDecompressor().decompressobj()
        left, begun, room = size, False, unpacked_limit(size)
        try:
            while left > 0 and (chunk := file.read(min(_PIECE, left))):
                left -= len(chunk)
                while chunk:
                    if unpacker.eof:
                        unpacker = zstandard.ZstdDecompressor().decompressobj()
                    begun = True
                    unpacked = unpacker.decompress(chunk)
                    room -= len(unpacked)
                    if room < 0:
                        most = unpacked_limit(size) >> 20
                        reason = f"compressed file unpacks to more than {most} MiB"
                        problems.append(Problem(self.path, 0, f"{reason}; the rest is not read"))
                        return size
                    self.push(unpacked)
                    chunk = unpacker.unused_data
            if begun and not unpacker.eof:
                problems.append(Problem(self.path, 0, "compressed file ends too early"))
        except zstandard.ZstdError as error:
            problems.append(Problem(self.path, 0, f"compressed file is damaged: {error}"))
        return size - left


def rollout_file(path: str, line_limit: int = LINE_LIMIT) -> Rollout:
    """Return a rollout with nothing read, by the form that its name ends with."""
    if path.endswith(PACKED):
        return _Packed(path, line_limit)
    return (_Document if path.endswith(DOCUMENT) else Rollout)(path, line_limit)
