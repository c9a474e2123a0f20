"""Where in a history file each session is; what was looked through is not read again.

Source: the aider section of the format page: one file per repository, in which a line
``# aider chat started at ...`` begins a session.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime

from store.sources.base.json_lines import CHUNK
from store.sources.base.values import plausible_ms
from store.system.paths import open_regular

HEADER = re.compile(rb"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \t\r]*$", re.M)
_LONGEST_HEADER = 256


@dataclass(frozen=True, slots=True)
class Region:
    """One session's part of a file.

    Attributes:
        name: When it started, as ``20261127T222908``, with ``-2`` for a second of that time.
        started: Epoch ms; the file gives local time.
        start: Byte of its first line.
        end: Byte after its last; the file's end for the last session.
    """

    name: str
    started: int
    start: int
    end: int


@dataclass(slots=True)
class _Seen:
    inode: int
    size: int
    headers: list[tuple[int, bytes]]


class Regions:
    """Finds the sessions of files."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._seen: dict[str, _Seen] = {}

    def of(self, path: str) -> tuple[os.stat_result, list[Region]]:
        """Return a file's state and its sessions, in the order of the file.

        Raises:
            OSError: It cannot be read.
        """
        with open_regular(path) as file:
            status = os.fstat(file.fileno())
            seen = self._seen.get(path)
            if seen is None or seen.inode != status.st_ino or seen.size > status.st_size:
                seen = _Seen(status.st_ino, 0, [])
            # The last session is looked through again, should it have been written anew.
            start = seen.headers[-1][0] if seen.headers else 0
            headers = seen.headers[:-1]
            file.seek(start)
            kept, at, left = b"", start, status.st_size - start
            while left > 0 and (chunk := file.read(min(CHUNK, left))):
                left -= len(chunk)
                data = kept + chunk
                usable = len(data) if left <= 0 else max(data.rfind(b"\n") + 1, 0)
                headers += [(at + m.start(), m[1]) for m in HEADER.finditer(data[:usable])]
                kept = data[usable:]
                if len(kept) > _LONGEST_HEADER:
                    # The middle of a long line, which no header begins.
                    kept = b"\0" + kept[1 - _LONGEST_HEADER :]
                at += len(data) - len(kept)
        if seen.headers and (not headers or headers[: len(seen.headers)] != seen.headers):
            # It was edited in place.
            del self._seen[path]
            return self.of(path)
        self._seen[path] = _Seen(status.st_ino, status.st_size, headers)
        return status, _regions(headers, status.st_size)


def _regions(headers: list[tuple[int, bytes]], size: int) -> list[Region]:
    """Return the sessions; a line that names no possible time begins none."""
    moments = [(start, moment) for start, stamp in headers if (moment := _moment(stamp))]
    found: list[Region] = []
    counts: dict[str, int] = {}
    ends = [start for start, _ in moments[1:]] + [size] if moments else []
    for (start, moment), end in zip(moments, ends, strict=True):
        name = moment.strftime("%Y%m%dT%H%M%S")
        counts[name] = counts.get(name, 0) + 1
        name = name if counts[name] == 1 else f"{name}-{counts[name]}"
        found.append(Region(name, round(moment.timestamp() * 1000), start, end))
    return found


def _moment(stamp: bytes) -> datetime | None:
    try:
        moment = datetime.strptime(stamp.decode(), "%Y-%m-%d %H:%M:%S")
        plausible = plausible_ms(moment.timestamp() * 1000) is not None
    except (ValueError, OverflowError, OSError):
        return None
    return moment if plausible else None
