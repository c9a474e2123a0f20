"""Follows one thread while it grows: each appended byte is read and parsed once.

A file that was cut, replaced, moved or taken away, or whose last bytes are other ones than
those that were read, starts the thread over.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from store.sources.base.collection import paused_collection
from store.sources.base.json_lines import CHUNK
from store.sources.base.protocol import FileStamp, Problem, Reading, Unit
from store.sources.codex.facts import STAMP, Facts
from store.sources.codex.names import DOCUMENT, PACKED
from store.sources.codex.reader import ThreadReader
from store.sources.codex.reading import read_rollout
from store.system.paths import open_regular

CHECKED = 4096
"""Bytes before the place that was read to, which must be as they were."""


class _Changed(Exception):
    """What was read is no longer the beginning of what is there."""


@dataclass(slots=True)
class _Grown:
    """A file as far as it was read; ``end`` are the last bytes of that."""

    inode: int
    size: int
    end: bytes
    stamp: FileStamp
    torn: Problem | None = None
    took_tail: bool = False


class ThreadFollower:
    """Fulfils ``store.sources.base.protocol.Follower``."""

    def __init__(
        self, make_reader: Callable[[], ThreadReader], facts: Callable[[Unit], Facts | None]
    ) -> None:
        """Start with nothing read.

        Args:
            make_reader: Returns an empty reader.
            facts: Returns what side files tell of a unit now.
        """
        self._make_reader, self._facts = make_reader, facts
        self._reader = make_reader()
        self._files: dict[str, _Grown] = {}

    def read(self, unit: Unit) -> Reading:
        """Return what reading the unit whole would."""
        with paused_collection():
            try:
                return self._go_on(unit)
            except _Changed:
                self._reader, self._files = self._make_reader(), {}
                return self._go_on(unit)

    def _go_on(self, unit: Unit) -> Reading:
        paths = [stamp.path for stamp in unit.stamps if not stamp.path.endswith(STAMP)]
        if not self._files.keys() <= set(paths):
            raise _Changed
        stamps: list[FileStamp] = []
        problems: list[Problem] = []
        for path in paths:
            stamp = self._read_on(path, problems)
            if stamp is not None:
                stamps.append(stamp)
        self._reader.facts = self._facts(unit)
        stamps += [stamp for stamp in unit.stamps if stamp.path.endswith(STAMP)]
        sessions = self._reader.build()
        return Reading(
            sessions, self._reader.problems + problems, tuple(stamps),
            facts=self._reader.told, wants=self._reader.wants,
        )  # fmt: skip

    def _read_on(self, path: str, problems: list[Problem]) -> FileStamp | None:
        grown = self._files.get(path)
        if grown is None or path.endswith((PACKED, DOCUMENT)):
            return self._read_whole(path, problems, grown)
        try:
            with open_regular(path) as file:
                stat = os.fstat(file.fileno())
                if stat.st_ino != grown.inode or stat.st_size < grown.size:
                    raise _Changed
                same = (stat.st_size, stat.st_mtime_ns) == (grown.size, grown.stamp.mtime_ns)
                if not same:
                    file.seek(grown.size - len(grown.end))
                    if file.read(len(grown.end)) != grown.end or stat.st_size == grown.size:
                        raise _Changed
                    self._push(path, grown, file.read, stat.st_size)
        except OSError as error:
            raise _Changed from error
        if grown.torn is not None:
            problems.append(grown.torn)
        offset = self._reader.rollout(path).offset
        grown.stamp = FileStamp(path, stat.st_ino, stat.st_size, stat.st_mtime_ns, offset)
        return grown.stamp

    def _read_whole(
        self, path: str, problems: list[Problem], grown: _Grown | None
    ) -> FileStamp | None:
        if grown is not None:
            found = os.stat(path) if os.path.exists(path) else None
            if found is None or found.st_mtime_ns != grown.stamp.mtime_ns:
                raise _Changed
            return grown.stamp
        rollout, noticed = self._reader.restart(path), list[Problem]()
        stamp = read_rollout(rollout, noticed)
        problems += noticed
        if stamp is None:
            return None
        end = b""
        if not path.endswith((PACKED, DOCUMENT)):
            with open_regular(path) as file:
                file.seek(max(0, stamp.size - CHECKED))
                end = file.read(min(CHECKED, stamp.size))
        torn = noticed[-1] if noticed else None
        took = bool(end) and not end.endswith(b"\n") and torn is None
        self._files[path] = _Grown(stamp.inode, stamp.size, end, stamp, torn, took)
        return stamp

    def _push(self, path: str, grown: _Grown, read: Callable[[int], bytes], size: int) -> None:
        rollout, left = self._reader.rollout(path), size - grown.size
        while left > 0 and (chunk := read(min(CHUNK, left))):
            if grown.took_tail and not chunk.startswith(b"\n"):
                # The line was not at its end after all.
                raise _Changed
            grown.took_tail = False
            rollout.push(chunk)
            left -= len(chunk)
            grown.size += len(chunk)
            grown.end = (grown.end + chunk)[-CHECKED:]
        had_tail = rollout.has_tail
        grown.torn = rollout.finish()
        grown.took_tail = had_tail and not rollout.has_tail
