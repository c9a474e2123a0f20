"""A file of JSON lines read stretch by stretch, each with what lies right before it once more.

Where a file is gone on with, its *window* is read again: the lines from a mark up to where it
was read to. They must be as they were, as must be the file's beginning.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from io import FileIO
from typing import Any, Protocol

from store.sources.base.collection import paused_collection
from store.sources.base.protocol import FileStamp, Place, Step

HEAD_BYTES = 4096
"""Bytes of the file's beginning that must be as they were."""
WINDOW_BYTES = 64 * 1024
"""Bytes that are read again at least."""
KEPT_BYTES = 192 * 1024
"""Where a window would be larger, the next reading begins at a later mark."""
MOST_WINDOW = 32 * 1024 * 1024
"""Bytes at the end of a file that was read whole, among which a mark is looked for."""
MOST_PROVED = 8
"""Places that are tried before it is given up."""


class CannotGoOn(Exception):
    """Only reading the whole file can tell what it holds now."""


class StepReader(Protocol):
    """Reads what follows a place."""

    def __call__(self, start: Place | None, *, grown: bool) -> Step:
        """Return the next step; ``grown`` says that an earlier sync stopped at the place.

        Raises:
            CannotGoOn: It changes what lies before.
        """
        ...


def in_steps(read: StepReader, start: Place | None) -> Iterator[Step]:
    """Yield a unit step by step, from a place or from its beginning, until nothing follows.

    Raises:
        CannotGoOn: A step changes what lies before it.
    """
    grown = start is not None
    while True:
        with paused_collection():
            step = read(start, grown=grown)
        yield step
        if not step.more:
            return
        start, grown = step.place, False


@dataclass(slots=True)
class Mark:
    """How far a file was read, and where the next reading begins.

    Attributes:
        offset: The byte where the window begins; ``line`` and ``record`` are its numbers.
        end: Bytes that were read.
        checksum: CRC-32 of the window, from ``offset`` to ``end``.
        head: CRC-32 of the file's beginning.
    """

    path: str
    inode: int
    offset: int
    line: int
    record: int
    end: int
    checksum: int
    head: int

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self)


@dataclass(slots=True)
class Stretch:
    """Bytes of a file.

    Attributes:
        data: From the byte ``start`` on.
        head: CRC-32 of the file's beginning.
        more: Whether the file holds more than was read.
    """

    path: str
    data: bytes
    start: int
    head: int
    status: os.stat_result
    more: bool

    @property
    def end(self) -> int:
        """The byte after the last one that was read."""
        return self.start + len(self.data)

    def stamp(self, offset: int) -> FileStamp:
        """Return the file's stamp; where there is more, it is as if the file had grown since.

        Args:
            offset: Bytes that were consumed.
        """
        status = self.status
        size = self.end if self.more else status.st_size
        return FileStamp(self.path, status.st_ino, size, status.st_mtime_ns, offset)

    def start_of(self, record: bytes) -> int | None:
        """Return the byte where a record that is a line of its own begins; None where none is."""
        found = self.data.find(b"\n" + record + b"\n")
        return None if found < 0 else self.start + found + 1

    def mark(self, offset: int, lines: int, record: int) -> Mark:
        """Return where a reading goes on that begins with a record of this stretch.

        Args:
            offset: The byte where the record begins.
            lines: Whole lines of the file that were read.
            record: The record's number.
        """
        place = offset - self.start
        line = lines - self.data.count(b"\n", place) + 1
        checksum = zlib.crc32(self.data[place:])
        return Mark(
            self.path, self.status.st_ino, offset, line, record, self.end, checksum, self.head
        )


Open = Callable[[str], FileIO]


def read_stretch(
    open_file: Open, path: str, mark: Mark | None, most: int, *, grown: bool
) -> Stretch:
    """Read a window and what follows it; without a mark, a file's beginning.

    Args:
        open_file: Opens regular files only.
        path: The file.
        mark: Where it was read to.
        most: Bytes beyond that.
        grown: Whether it must hold more than was read.

    Raises:
        CannotGoOn: It is not the file that was read, or has not grown.
    """
    try:
        with open_file(path) as file:
            status = os.fstat(file.fileno())
            head, start, read_to = file.read(HEAD_BYTES), 0, 0
            if mark is not None:
                seen = zlib.crc32(head[: mark.end])
                same = (mark.path, mark.inode, mark.head) == (path, status.st_ino, seen)
                if not same or status.st_size < mark.end + grown:
                    raise CannotGoOn
                start, read_to = mark.offset, mark.end
            file.seek(start)
            data = read_bytes(file, min(status.st_size, read_to + most) - start)
    except OSError as error:
        raise CannotGoOn from error
    if mark is not None and zlib.crc32(data[: mark.end - mark.offset]) != mark.checksum:
        raise CannotGoOn
    more = start + len(data) < status.st_size
    return Stretch(path, data, start, zlib.crc32(head[: start + len(data)]), status, more)


def read_end(open_file: Open, stamp: FileStamp) -> Stretch:
    """Return the end of a file that was read whole.

    Raises:
        CannotGoOn: It is another file now.
    """
    try:
        with open_file(stamp.path) as file:
            status = os.fstat(file.fileno())
            if status.st_ino != stamp.inode or status.st_size < stamp.size:
                raise CannotGoOn
            head = zlib.crc32(file.read(min(HEAD_BYTES, stamp.size)))
            start = max(0, stamp.size - MOST_WINDOW)
            file.seek(start)
            data = read_bytes(file, stamp.size - start)
    except OSError as error:
        raise CannotGoOn from error
    return Stretch(stamp.path, data, start, head, status, False)


def read_bytes(file: FileIO, size: int) -> bytes:
    """Return so many bytes, fewer where the file ends."""
    pieces = []
    while size > 0 and (piece := file.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
