"""Where in a history file each session is; what was looked through is not read again.

Source: the aider section of the format page: one file per repository, in which a line
``# aider chat started at ...`` begins a session. A history that was appended to itself has each
session twice: of two that began in the same second, one that says no more than the beginning of
the other is a copy.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

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
    compared: dict[tuple[Region, Region], bool] = field(default_factory=dict)


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
            compared = seen.compared
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
        self._seen[path] = _Seen(status.st_ino, status.st_size, headers, compared)
        regions = _regions(headers, status.st_size)
        if len({region.started for region in regions}) < len(regions):
            regions = _without_copies(path, regions, compared)
        return status, regions


def _without_copies(
    path: str, regions: list[Region], compared: dict[tuple[Region, Region], bool]
) -> list[Region]:
    """Return the sessions of a file without copies of them in the same file.

    Args:
        path: The file.
        regions: Its sessions, of which some began in the same second.
        compared: Whether the first says no more than the beginning of the second; filled.
    """
    kept: list[Region] = []
    with open_regular(path) as file:
        def is_within(one: Region, other: Region) -> bool:
            if (one, other) not in compared:
                compared[one, other] = _is_within(file, one, other)
            return compared[one, other]

        for region in regions:
            same = [one for one in kept if one.started == region.started]
            if any(is_within(region, one) for one in same):
                continue
            shorter = next((one for one in same if is_within(one, region)), None)
            if shorter is not None:
                kept.remove(shorter)
                region = replace(region, name=shorter.name)
            kept.append(region)
    return _named(kept)


def _is_within(file: Any, one: Region, other: Region) -> bool:
    """Return whether a session's text is the beginning of another's, but for blanks at its end.

    Args:
        file: The history.
        one: The session.
        other: The other one.
    """
    at = 0
    while at < one.end - one.start:
        size = min(CHUNK, one.end - one.start - at)
        file.seek(one.start + at)
        own = file.read(size)
        is_last = at + size >= one.end - one.start
        if is_last:
            own = own.rstrip()
        file.seek(other.start + at)
        if other.start + at + len(own) > other.end or file.read(len(own)) != own:
            return False
        at += size
    return True


def _named(regions: list[Region]) -> list[Region]:
    """Return sessions with names that count those of one second."""
    found: list[Region] = []
    counts: dict[str, int] = {}
    for region in regions:
        name = region.name.partition("-")[0]
        counts[name] = counts.get(name, 0) + 1
        name = name if counts[name] == 1 else f"{name}-{counts[name]}"
        found.append(region if name == region.name else replace(region, name=name))
    return found


def _regions(headers: list[tuple[int, bytes]], size: int) -> list[Region]:
    """Return the sessions; a line that names no possible time begins none."""
    moments = [(start, moment) for start, stamp in headers if (moment := _moment(stamp))]
    ends = [start for start, _ in moments[1:]] + [size] if moments else []
    return _named([
        Region(moment.strftime("%Y%m%dT%H%M%S"), round(moment.timestamp() * 1000), start, end)
        for (start, moment), end in zip(moments, ends, strict=True)
    ])  # fmt: skip


def _moment(stamp: bytes) -> datetime | None:
    try:
        moment = datetime.strptime(stamp.decode(), "%Y-%m-%d %H:%M:%S")
        plausible = plausible_ms(moment.timestamp() * 1000) is not None
    except (ValueError, OverflowError, OSError):
        return None
    return moment if plausible else None
