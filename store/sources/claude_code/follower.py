"""Follows one unit while it grows: each appended byte is read and parsed once.

What was built is kept as long as files only grow. A file that was cut, replaced or taken
away, or whose last bytes are other ones than those that were read, starts the unit over.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from store.sources.base.collection import paused_collection
from store.sources.base.json_lines import CHUNK
from store.sources.base.protocol import FileStamp, Problem, Reading, Unit
from store.sources.claude_code.agents import ROWS
from store.sources.claude_code.reader import SessionReader
from store.sources.claude_code.sidefiles import RESULTS
from store.system.paths import open_regular

CHECKED = 4096
"""Bytes before the place that was read to, which must be as they were."""


class _Changed(Exception):
    """What was read is no longer the beginning of what is there."""


@dataclass(slots=True)
class _Grown:
    """A row file as far as it was read.

    Attributes:
        size: Bytes that were read.
        end: The last of them, at most ``CHECKED``.
        took_tail: Whether the last line was taken though no newline ended it.
        torn: What is wrong with a last line that was not.
    """

    inode: int = 0
    size: int = 0
    mtime_ns: int = 0
    end: bytes = b""
    took_tail: bool = False
    torn: Problem | None = None
    offset: int = 0


@dataclass(slots=True)
class _State:
    reader: SessionReader
    rows: dict[str, _Grown] = field(default_factory=dict)
    side: dict[str, FileStamp] = field(default_factory=dict)


class SessionFollower:
    """Fulfils ``store.sources.base.protocol.Follower``."""

    def __init__(self, make_reader: Callable[[Unit], SessionReader]) -> None:
        """Start with nothing read.

        Args:
            make_reader: Returns an empty reader for the unit.
        """
        self._make_reader = make_reader
        self._state: _State | None = None

    def read(self, unit: Unit) -> Reading:
        """Return what reading the unit whole would."""
        with paused_collection():
            if self._state is not None:
                try:
                    return self._go_on(self._state, unit)
                except _Changed:
                    pass
            self._state = _State(self._make_reader(unit))
            return self._go_on(self._state, unit)

    def _go_on(self, state: _State, unit: Unit) -> Reading:
        paths = {stamp.path for stamp in unit.stamps}
        if not (state.rows.keys() | state.side.keys()) <= paths or _other_main(state, unit):
            raise _Changed
        stamps: list[FileStamp] = []
        problems: list[Problem] = []
        for stamp in unit.stamps:
            if is_rows(stamp.path):
                read = _read_on(state, stamp.path, problems)
                if read is not None:
                    stamps.append(read)
            elif _take_side_file(state, stamp):
                stamps.append(stamp)
        sessions = state.reader.build()
        return Reading(
            sessions, state.reader.problems + problems, tuple(stamps),
            facts=state.reader.told, wants=state.reader.wants,
        )  # fmt: skip


def is_rows(path: str) -> bool:
    """Tell a file of rows from a side file."""
    return path.endswith(ROWS) and os.path.basename(os.path.dirname(path)) != RESULTS


def _other_main(state: _State, unit: Unit) -> bool:
    """Say whether the session's own file came after its agents' files."""
    name = unit.key.rpartition("/")[2] + ROWS
    has_main = any(os.path.basename(stamp.path) == name for stamp in unit.stamps)
    return has_main != (state.reader.main is not None)


def _take_side_file(state: _State, stamp: FileStamp) -> bool:
    """Read a side file where it is new or moved; say whether its stamp holds."""
    known = state.side.get(stamp.path)
    if known == stamp:
        return True
    if not state.reader.side.take(stamp.path):
        if known is not None:
            raise _Changed
        return False
    damaged = any(problem.path == stamp.path for problem in state.reader.side.problems)
    if known is not None and damaged:
        # What it held before would stay.
        raise _Changed
    state.side[stamp.path] = stamp
    return True


def _read_on(state: _State, path: str, problems: list[Problem]) -> FileStamp | None:
    """Read what a row file has more than before; return its stamp as of this reading."""
    grown = state.rows.get(path)
    try:
        with open_regular(path) as file:
            stat = os.fstat(file.fileno())
            if grown is None:
                grown = state.rows[path] = _Grown(inode=stat.st_ino)
            _refuse_if_changed(grown, stat)
            if stat.st_size > grown.size:
                file.seek(grown.size - len(grown.end))
                if file.read(len(grown.end)) != grown.end:
                    raise _Changed
                _push(state, path, grown, file.read, stat.st_size)
    except OSError as error:
        if grown is not None:
            raise _Changed from error
        problems.append(Problem(path, 0, error.strerror or str(error)))
        return None
    grown.mtime_ns = stat.st_mtime_ns
    if grown.torn is not None:
        problems.append(grown.torn)
    return FileStamp(path, stat.st_ino, stat.st_size, stat.st_mtime_ns, grown.offset)


def _refuse_if_changed(grown: _Grown, stat: os.stat_result) -> None:
    same = stat.st_ino == grown.inode and stat.st_size >= grown.size
    if not same or (stat.st_size == grown.size != 0 and stat.st_mtime_ns != grown.mtime_ns):
        raise _Changed


def _push(
    state: _State, path: str, grown: _Grown, read: Callable[[int], bytes], size: int
) -> None:
    transcript = state.reader.transcript(path)
    left = size - grown.size
    while left > 0 and (chunk := read(min(CHUNK, left))):
        if grown.took_tail and not chunk.startswith(b"\n"):
            # The line was not at its end after all.
            raise _Changed
        grown.took_tail = False
        transcript.push(chunk)
        left -= len(chunk)
        grown.size += len(chunk)
        grown.end = (grown.end + chunk)[-CHECKED:] if len(chunk) < CHECKED else chunk[-CHECKED:]
    had_tail = transcript.has_tail
    grown.torn = transcript.finish()
    grown.took_tail = had_tail and not transcript.has_tail
    grown.offset = transcript.offset
