"""Reads the files of a unit as they grow: each appended byte is read and parsed once.

For sources whose sessions are files of JSON lines, with small side files that are read
whole. A file that was cut, replaced, or whose last bytes are other ones than those that
were read, is read from its beginning.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from io import FileIO

from store.sources.base.collection import paused_collection
from store.sources.base.drafts import SessionDraft
from store.sources.base.json_lines import CHUNK, LINE_LIMIT, JsonLines, Record
from store.sources.base.protocol import Fact, FileStamp, Problem, Reading, Unit

CHECKED = 4096
"""Bytes before the place that was read to, which must be as they were."""
SIDE_FILE_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest side file that is read."""
LINES = ".jsonl"
FACT = "#"
"""Begins the name of a stamp that is no file's, but of a fact that its unit depends on."""


def open_regular(path: str) -> FileIO:
    """Open a regular file for reading, without ever waiting for a pipe's writer.

    Raises:
        OSError: When it cannot be opened, or is a pipe, a device, a socket or a folder.
    """
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return FileIO(number, "rb")


def stamp_of(path: str, status: os.stat_result) -> FileStamp:
    """Return the stamp of a file, taken as read to its end."""
    return FileStamp(path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_size)


def stamped(entry: os.DirEntry[str], problems: list[Problem]) -> list[FileStamp]:
    """Return the stamp of a regular file; nothing for anything else, told where it is odd."""
    try:
        if entry.is_file():
            return [stamp_of(entry.path, entry.stat())]
        problems.append(Problem(entry.path, 0, "not a regular file"))
    except OSError as error:
        problems.append(Problem(entry.path, 0, error.strerror or str(error)))
    return []


def entries_of(folder: str, problems: list[Problem] | None = None) -> list[os.DirEntry[str]]:
    """List a folder by name; why it cannot be listed goes to ``problems``."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if problems is not None:
            problems.append(Problem(folder, 0, error.strerror or str(error)))
        return []


class GrowingFile:
    """A file of JSON lines, as far as it was read.

    Attributes:
        lines: Its records that are JSON objects.
    """

    def __init__(self, path: str, line_limit: int = LINE_LIMIT) -> None:
        """Start with nothing read."""
        self.path = path
        self._line_limit = line_limit
        self._restart()

    def _restart(self) -> None:
        self.lines: list[Record] = []
        self._content = JsonLines(self.path, self._line_limit)
        self._inode = self._size = self._mtime_ns = 0
        self._end = b""
        self._took_tail = False

    @property
    def records(self) -> list[bytes]:
        """Every record as it was, and every line that holds none."""
        return self._content.records

    @property
    def problems(self) -> list[Problem]:
        """What could not be read, or only by repairing it."""
        return self._content.problems

    def read(self, torn: list[Problem]) -> FileStamp:
        """Read what is there and was not read yet.

        Args:
            torn: Takes a last line that is not finished.

        Raises:
            OSError: When the file cannot be opened or read.
        """
        with open_regular(self.path) as file:
            status = os.fstat(file.fileno())
            if not self._goes_on(file, status):
                self._restart()
                file.seek(0)
            self._push(file, status.st_size - self._size)
        self._inode, self._mtime_ns = status.st_ino, status.st_mtime_ns
        self._finish(torn)
        return FileStamp(
            self.path, status.st_ino, status.st_size, status.st_mtime_ns, self._content.consumed
        )

    def _goes_on(self, file: FileIO, status: os.stat_result) -> bool:
        """Say whether the file begins with what was read of it; leave it at that place."""
        if status.st_ino != self._inode or status.st_size < self._size:
            return False
        if status.st_size == self._size and status.st_mtime_ns != self._mtime_ns:
            return False
        file.seek(self._size - len(self._end))
        if file.read(len(self._end)) != self._end:
            return False
        if self._took_tail and status.st_size > self._size:
            # The line that was taken without its newline must end here.
            if file.read(1) != b"\n":
                return False
            file.seek(self._size)
        return True

    def _push(self, file: FileIO, left: int) -> None:
        while left > 0 and (chunk := file.read(min(CHUNK, left))):
            left -= len(chunk)
            self._size += len(chunk)
            self._end = (self._end + chunk)[-CHECKED:]
            self._took_tail = False
            self.lines += self._content.push(chunk)

    def _finish(self, torn: list[Problem]) -> None:
        """Take the last line though no newline ends it, when it is whole."""
        had_tail = self._content.has_tail
        found, problem = self._content.finish()
        self.lines += found
        if problem is not None:
            torn.append(problem)
        self._took_tail = self._took_tail or (had_tail and not self._content.has_tail)


class UnitFiles:
    """The files of one unit: those of lines as they grow, the others whole.

    Attributes:
        lines: By path.
        bodies: The other files' bytes by path.
        stamps: As of the last reading.
        problems: What could not be read the last time.
    """

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Start with nothing read."""
        self.lines: dict[str, GrowingFile] = {}
        self.bodies: dict[str, bytes] = {}
        self.stamps: tuple[FileStamp, ...] = ()
        self.problems: list[Problem] = []
        self._line_limit = line_limit
        self._taken: dict[str, FileStamp] = {}

    def take(self, unit: Unit) -> None:
        """Read what the unit's files have more than the last time."""
        self.problems = []
        stamps: list[FileStamp] = []
        facts = [stamp for stamp in unit.stamps if os.path.basename(stamp.path)[:1] == FACT]
        paths = {stamp.path for stamp in unit.stamps}
        for path in (self.lines.keys() | self.bodies.keys()) - paths:
            self._drop(path)
        for stamp in unit.stamps:
            if stamp in facts:
                stamps.append(stamp)
                continue
            try:
                stamps += self._lines(stamp.path) if _is_lines(stamp) else self._body(stamp)
            except OSError as error:
                self._drop(stamp.path)
                self.problems.append(Problem(stamp.path, 0, error.strerror or str(error)))
        for file in self.lines.values():
            self.problems += file.problems
        self.stamps = tuple(stamps)

    def _drop(self, path: str) -> None:
        self.lines.pop(path, None)
        self.bodies.pop(path, None)
        self._taken.pop(path, None)

    def _lines(self, path: str) -> list[FileStamp]:
        file = self.lines.get(path)
        if file is None:
            file = self.lines[path] = GrowingFile(path, self._line_limit)
        return [file.read(self.problems)]

    def _body(self, stamp: FileStamp) -> list[FileStamp]:
        if self._taken.get(stamp.path) == stamp:
            return [stamp]
        if stamp.size > SIDE_FILE_LIMIT:
            reason = "side file is larger than 64 MiB, skipped"
            self.problems.append(Problem(stamp.path, 0, reason))
            return [stamp]
        with open_regular(stamp.path) as file:
            status = os.fstat(file.fileno())
            self.bodies[stamp.path] = file.readall()
        self._taken[stamp.path] = stamp_of(stamp.path, status)
        return [self._taken[stamp.path]]


def _is_lines(stamp: FileStamp) -> bool:
    return stamp.path.endswith(LINES)


Build = Callable[[Unit, UnitFiles, list[Problem]], list[SessionDraft]]
"""Makes the drafts of a unit from its files; what it cannot read goes to the problems."""


@dataclass(slots=True)
class Depends:
    """What a build hung on beside the unit's files, and what it tells; as in ``Reading``."""

    looked: list[FileStamp] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    wants: set[str] = field(default_factory=set)

    def clear(self) -> None:
        """Begin another build."""
        self.looked, self.facts, self.wants = [], [], set()


class UnitFollower:
    """Fulfils ``store.sources.base.protocol.Follower``: reads what is new, maps everything."""

    def __init__(
        self, build: Build, line_limit: int = LINE_LIMIT, depends: Depends | None = None
    ) -> None:
        """Start with nothing read.

        Args:
            build: Makes the drafts.
            line_limit: Bytes of the longest line that is read.
            depends: Where the build notes what it hangs on.
        """
        self._build = build
        self._depends = depends or Depends()
        self._files = UnitFiles(line_limit)

    def read(self, unit: Unit) -> Reading:
        """Return what reading the unit whole would."""
        with paused_collection():
            self._files.take(unit)
            self._depends.clear()
            problems: list[Problem] = []
            sessions = self._build(unit, self._files, problems)
        depends = self._depends
        return Reading(
            sessions, self._files.problems + problems, self._files.stamps,
            looked=depends.looked, facts=depends.facts, wants=depends.wants,
        )  # fmt: skip
