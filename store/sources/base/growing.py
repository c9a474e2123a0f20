"""Reads the files of a unit as they grow: each appended byte is read and parsed once.

For every source whose sessions are files of JSON lines, with small side files that are read
whole. An agent's own classes say how a record is mapped (``LinesFile``) and how sessions are
made of a unit's files (``UnitReader``). Where a file was cut, replaced or taken away, or the
last bytes that were read are others now, the unit is read from the beginning.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from io import FileIO
from typing import Any, ClassVar

from store.sources.base.drafts import SessionDraft
from store.sources.base.json_lines import CHUNK, LINE_LIMIT, JsonLines, Record, parse_line
from store.sources.base.protocol import Fact, FileStamp, Problem, Reading, Unit
from store.sources.base.repeats import RepeatGiven, Repeats
from store.sources.base.thinning import thinned
from store.system.collection import paused_collection
from store.system.paths import open_regular, resolved

CHECKED = 4096
"""Bytes before the place that was read to, which must be unchanged."""
SIDE_FILE_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest side file that is read."""
HEAD_BYTES, HEAD_LINES = 32 * 1024, 10
TAIL_BYTES, TAIL_LINES = 16 * 1024, 6
"""Of a file of which only the ends are read: at most so many bytes, and so many lines."""
LINES, DOCUMENT = ".jsonl", ".json"
FACT = "#"
"""Begins the name of a stamp that is no file's, but of a fact that its unit depends on."""


class Changed(Exception):
    """What was read of a unit is no longer the beginning of what its files hold."""


def stamp_of(path: str, status: os.stat_result) -> FileStamp:
    """Return the stamp of a file, taken as read to its end."""
    return FileStamp(path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_size)


def stamped(entry: os.DirEntry[str], problems: list[Problem]) -> list[FileStamp]:
    """Return the stamp of a regular file; for anything else nothing, and a problem."""
    try:
        if entry.is_file():
            return [stamp_of(entry.path, entry.stat())]
        problems.append(Problem(entry.path, 0, "not a regular file"))
    except OSError as error:
        problems.append(Problem(entry.path, 0, error.strerror or str(error)))
    return []


def denial(path: str, error: OSError) -> list[Problem]:
    """Return the problem of a file beside sessions that is there and cannot be read.

    One that is not there is none: such files are often left out.
    """
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return []
    return [Problem(path, 0, error.strerror or str(error))]


def entries_of(folder: str, problems: list[Problem] | None = None) -> list[os.DirEntry[str]]:
    """List a folder by name; why it cannot be listed goes to ``problems``."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        if problems is not None:
            problems.append(Problem(folder, 0, error.strerror or str(error)))
        return []


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder, or a link to one."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def is_second_name(entry: os.DirEntry[str]) -> bool:
    """Return whether a folder is a link to another one beside it, which is listed too."""
    return entry.is_symlink() and (
        os.path.dirname(resolved(entry.path)) == resolved(os.path.dirname(entry.path))
    )


class LinesFile(ABC):
    """What a file of JSON lines holds so far.

    A long file can also be read from a later line on, with a few earlier records as context.

    Attributes:
        path: The file, for problems.
        first: The number of the first of ``records``; earlier ones were read before.
        context: Earlier records, by number, that later ones are read with.
        is_begun: Whether ``read`` has read the file.
    """

    unread: ClassVar[tuple[bytes, ...]] = ()
    """Beginnings of lines that are kept as records without being parsed."""

    def __init__(
        self,
        path: str,
        line_limit: int = LINE_LIMIT,
        *,
        first: int = 0,
        line: int = 1,
        offset: int = 0,
    ) -> None:
        """Start with nothing read.

        Args:
            path: The file.
            line_limit: Bytes of the longest line that is read.
            first: The number of the record that is read first.
            line: The number of its line, from 1.
            offset: The byte where that line begins.
        """
        self.path = path
        self.first = first
        self.context: dict[int, bytes] = {}
        self.is_begun = False
        self._content = content = JsonLines(path, line_limit, self.unread)
        self._repeats: Repeats | None = None
        if offset:
            content.begin_at(line, offset)
        else:
            self._repeats = Repeats(content.records, content.find_alike(), self.after_equal)
        self._inode = self._size = self._mtime_ns = 0
        self._end = b""
        self._took_tail = False
        self._torn: Problem | None = None

    @abstractmethod
    def take(self, records: Iterable[Record]) -> None:
        """Map the next records; ``self.first`` is to be added to their numbers."""

    @property
    def records(self) -> list[bytes]:
        """Every record as it was, and every line that holds none."""
        return self._content.records

    @property
    def problems(self) -> list[Problem]:
        """What could not be read, or only by repairing it."""
        return self._content.problems

    @property
    def offset(self) -> int:
        """Bytes that were consumed."""
        return self._content.consumed

    @property
    def is_partial(self) -> bool:
        """Whether the first reading of the file failed halfway."""
        return not self.is_begun and self._size > 0

    @property
    def whole_lines(self) -> int:
        """Whole lines of the file so far."""
        return self._content.lines

    @staticmethod
    def after_equal(data: dict[str, Any], records: Sequence[bytes]) -> bool | None:
        """Return whether a record is a repeat right after an equal one; None: its time tells.

        It knows no file: one that held itself would be freed by the garbage collector alone.

        Args:
            data: The record.
            records: All records of its file as they are.
        """
        return None

    def raw(self, number: int) -> bytes:
        """Return a record by its number.

        Raises:
            KeyError: It is neither of the context nor read.
        """
        return self.records[number - self.first] if number >= self.first else self.context[number]

    def take_context(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Take the earlier records, each with its number, that later ones are read with."""
        for number, record in records:
            self.context[number] = record
            self.take([Record(number - self.first, 0, parse_line(record)[0])])

    def push(self, chunk: bytes) -> None:
        """Take appended bytes; an unfinished last line waits for its rest."""
        self._take_new(self._content.push(chunk))

    def _take_new(self, records: list[Record]) -> None:
        if self._repeats is not None:
            try:
                records = self._repeats.without(records)
            except RepeatGiven as error:
                raise Changed from error
        self.take(records)

    def finish(self) -> Problem | None:
        """Take the last line though no newline ends it, when it is whole.

        Returns:
            What is wrong with a last line that is torn; it stays unread.
        """
        found, torn = self._content.finish()
        self._take_new(found)
        if self._repeats is not None:
            try:
                self.take(self._repeats.rest())
            except RepeatGiven as error:
                raise Changed from error
        return torn

    def read(self, torn: list[Problem]) -> FileStamp:
        """Read what the file holds more than the last time.

        Args:
            torn: Takes a last line that is not finished.

        Raises:
            Changed: It does not begin with what was read of it.
            OSError: It cannot be opened or read.
        """
        with open_regular(self.path) as file:
            status = os.fstat(file.fileno())
            if self.is_begun:
                self._check(file, status)
            self._take_rest(file, status.st_size - self._size)
        self.is_begun, self._inode, self._mtime_ns = True, status.st_ino, status.st_mtime_ns
        if self._torn is not None:
            torn.append(self._torn)
        return FileStamp(self.path, status.st_ino, status.st_size, status.st_mtime_ns, self.offset)

    def read_ends(self) -> None:
        """Read the whole lines at the beginning and at the end of the file, nothing between.

        For a first look: the file cannot be read further after it.

        Raises:
            OSError: It cannot be opened or read.
        """
        with open_regular(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= HEAD_BYTES + TAIL_BYTES:
                self._take_rest(file, size)
            else:
                head = (file.read(HEAD_BYTES) or b"").splitlines(keepends=True)[:-1]
                file.seek(size - TAIL_BYTES)
                tail = (file.read(TAIL_BYTES) or b"").splitlines(keepends=True)[1:]
                self.push(b"".join([*head[:HEAD_LINES], *tail[-TAIL_LINES:]]))
        self.is_begun = True

    def _check(self, file: FileIO, status: os.stat_result) -> None:
        """Leave the file at the place that it was read to.

        Raises:
            Changed: It does not begin with what was read of it.
        """
        grown = status.st_size - self._size
        if status.st_ino != self._inode or grown < 0:
            raise Changed
        if grown == 0 != self._size and status.st_mtime_ns != self._mtime_ns:
            raise Changed
        file.seek(self._size - len(self._end))
        if file.read(len(self._end)) != self._end:
            raise Changed
        if self._took_tail and grown:
            # The line that was taken without its newline must end here.
            if file.read(1) != b"\n":
                raise Changed
            file.seek(self._size)

    def _take_rest(self, file: FileIO, left: int) -> None:
        while left > 0 and (chunk := file.read(min(CHUNK, left))):
            left -= len(chunk)
            self._size += len(chunk)
            self._end = (self._end + chunk[-CHECKED:])[-CHECKED:]
            self._took_tail = False
            self.push(chunk)
        had_tail = self._content.has_tail
        self._torn = self.finish()
        self._took_tail = self._took_tail or (had_tail and not self._content.has_tail)


class GrowingFile(LinesFile):
    """A file of JSON lines whose records are taken as they are.

    Attributes:
        lines: Its records that are JSON objects.
    """

    def __init__(self, path: str, line_limit: int = LINE_LIMIT) -> None:
        """Start with nothing read."""
        super().__init__(path, line_limit)
        self.lines: list[Record] = []

    def take(self, records: Iterable[Record]) -> None:
        """Keep the records."""
        self.lines += records


class UnitReader(ABC):
    """Reads the files of one unit, each time what they hold more than the last time.

    Attributes:
        stamps: Of the unit's files, as of the last reading.
        torn: Last lines that are not finished, and files that could not be read.
        looked: Other files that the sessions were made with, as in ``Reading``.
        shared_facts: The facts of the last sessions that were made.
        wants: The names of facts that would change them.
    """

    def __init__(self) -> None:
        """Start with nothing read."""
        self.stamps: tuple[FileStamp, ...] = ()
        self.torn: list[Problem] = []
        self.looked: list[FileStamp] = []
        self.shared_facts: list[Fact] = []
        self.wants: set[str] = set()

    @abstractmethod
    def files(self) -> Collection[LinesFile]:
        """Return the files of lines that were asked for so far."""

    @abstractmethod
    def file(self, path: str) -> LinesFile | None:
        """Return the file of lines at a path, a new one the first time; None for a side file."""

    @abstractmethod
    def side(self, stamp: FileStamp) -> FileStamp | None:
        """Read a side file where it moved; return its stamp, None where it was not read.

        Raises:
            Changed: The unit must be read from the beginning.
            OSError: It cannot be read.
        """

    @property
    def problems(self) -> list[Problem]:
        """What could not be read so far, or only by repairing it."""
        return [problem for file in self.files() for problem in file.problems]

    def take(self, unit: Unit) -> None:
        """Read what the unit's files hold more than the last time.

        Raises:
            Changed: The unit must be read from the beginning.
        """
        paths = {stamp.path for stamp in unit.stamps}
        for file in self.files():
            if file.is_partial or (file.is_begun and file.path not in paths):
                raise Changed
        self.torn, stamps = [], list[FileStamp]()
        for stamp in unit.stamps:
            lines = self.file(stamp.path)
            try:
                read = self.side(stamp) if lines is None else lines.read(self.torn)
            except OSError as error:
                if lines is not None and lines.is_begun:
                    raise Changed from error
                self.torn.append(Problem(stamp.path, 0, error.strerror or str(error)))
                continue
            stamps += [] if read is None else [read]
        self.stamps = tuple(stamps)

    def outline(self, unit: Unit) -> list[SessionDraft]:
        """Return the sessions without most of their messages, quicker than they are read.

        Of files of lines the ends are read; of documents, where there are no such files, few
        messages are kept. Large side files are left out. The reader cannot be used again.

        Raises:
            OSError: A file cannot be read.
        """
        documents = True
        for stamp in unit.stamps:
            lines = self.file(stamp.path)
            if lines is not None:
                lines.read_ends()
                documents = False
        for stamp in unit.stamps:
            if self.file(stamp.path) is not None:
                continue
            if stamp.size <= HEAD_BYTES:
                self.side(stamp)
            elif documents and stamp.path.endswith(DOCUMENT):
                self.document(stamp)
        return self.sessions(unit)

    def document(self, stamp: FileStamp) -> None:
        """Read a large JSON document, without most of its messages where that is quicker.

        Raises:
            OSError: It cannot be read.
        """
        self.side(stamp)

    @abstractmethod
    def sessions(self, unit: Unit) -> list[SessionDraft]:
        """Make the sessions of what was read so far."""

    def reading(self, sessions: list[SessionDraft]) -> Reading:
        """Return what was read, with the sessions made of it."""
        return Reading(
            sessions, self.torn + self.problems, self.stamps,
            looked=self.looked, facts=self.shared_facts, wants=self.wants,
        )  # fmt: skip

    def read(self, unit: Unit) -> Reading:
        """Read what was added, and return what reading the unit whole would.

        Raises:
            Changed: The unit must be read from the beginning.
        """
        self.take(unit)
        return self.reading(self.sessions(unit))


class UnitFollower:
    """Fulfils ``store.sources.base.protocol.Follower``: reads what is new, maps everything."""

    def __init__(self, make_reader: Callable[[Unit], UnitReader]) -> None:
        """Start with nothing read.

        Args:
            make_reader: Returns a reader of the unit that has read nothing.
        """
        self._make_reader = make_reader
        self._reader: UnitReader | None = None

    def read(self, unit: Unit) -> Reading:
        """Return what reading the unit whole would."""
        with paused_collection():
            # A reader that fails may have taken half of what was added: it is not used again.
            reader, self._reader = self._reader, None
            try:
                reading = reader.read(unit) if reader is not None else None
            except Changed:
                reading = None
            if reader is None or reading is None:
                reader = self._make_reader(unit)
                reading = reader.read(unit)
            self._reader = reader
            return reading


class UnitFiles(UnitReader):
    """The files of one unit: ``.jsonl`` files as they grow, the others whole.

    Attributes:
        lines: By path.
        bodies: The other files' bytes by path.
    """

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        """Start with nothing read."""
        super().__init__()
        self.lines: dict[str, GrowingFile] = {}
        self.bodies: dict[str, bytes] = {}
        self._line_limit = line_limit
        self._taken: dict[str, FileStamp] = {}

    def files(self) -> Collection[LinesFile]:
        """Return the files of lines."""
        return self.lines.values()

    def file(self, path: str) -> LinesFile | None:
        """Return a ``.jsonl`` file."""
        if not path.endswith(LINES) or os.path.basename(path).startswith(FACT):
            return None
        if path not in self.lines:
            self.lines[path] = GrowingFile(path, self._line_limit)
        return self.lines[path]

    def side(self, stamp: FileStamp) -> FileStamp | None:
        """Read any other file whole where it moved."""
        path = stamp.path
        if os.path.basename(path).startswith(FACT) or self._taken.get(path) == stamp:
            return stamp
        if stamp.size > SIDE_FILE_LIMIT:
            reason = "side file is larger than 64 MiB, skipped"
            self.torn.append(Problem(path, 0, reason))
            return stamp
        try:
            with open_regular(path) as file:
                status = os.fstat(file.fileno())
                self.bodies[path] = file.readall()
        except OSError:
            self._drop(path)
            raise
        self._taken[path] = stamp_of(path, status)
        return self._taken[path]

    def document(self, stamp: FileStamp) -> None:
        """Read a large JSON document without most of its messages.

        Raises:
            OSError: It cannot be read.
        """
        self.side(stamp)
        if stamp.path in self.bodies:
            self.bodies[stamp.path] = thinned(self.bodies[stamp.path])

    def _drop(self, path: str) -> None:
        self.bodies.pop(path, None)
        self._taken.pop(path, None)

    def take(self, unit: Unit) -> None:
        """Read what the unit's files hold more than the last time.

        Raises:
            Changed: The unit must be read from the beginning.
        """
        for path in self.bodies.keys() - {stamp.path for stamp in unit.stamps}:
            self._drop(path)
        super().take(unit)
        for path in [path for path, file in self.lines.items() if not file.is_begun]:
            del self.lines[path]


    def sessions(self, unit: Unit) -> list[SessionDraft]:
        """Return none: what they are made of is the source's part."""
        return []


@dataclass(slots=True)
class Depends:
    """What a build depends on beside the unit's files, and its facts; as in ``Reading``."""

    looked: list[FileStamp] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    wants: set[str] = field(default_factory=set)


Build = Callable[[Unit, UnitFiles, list[Problem]], list[SessionDraft]]
"""Makes the drafts of a unit from its files; what it cannot read goes to the problems."""


class BuiltUnit(UnitFiles):
    """The files of one unit, and the sessions that a function makes of them."""

    def __init__(
        self, build: Build, line_limit: int = LINE_LIMIT, depends: Depends | None = None
    ) -> None:
        """Start with nothing read.

        Args:
            build: Makes the drafts.
            line_limit: Bytes of the longest line that is read.
            depends: Where the build notes what it depends on.
        """
        super().__init__(line_limit)
        self._build = build
        self._depends = depends or Depends()
        self._built: list[Problem] = []

    @property
    def problems(self) -> list[Problem]:
        """What could not be read, or not be made a session."""
        return super().problems + self._built

    def sessions(self, unit: Unit) -> list[SessionDraft]:
        """Return the drafts that the function makes."""
        depends, self._built = self._depends, []
        depends.looked, depends.facts, depends.wants = [], [], set()
        drafts = self._build(unit, self, self._built)
        self.looked, self.shared_facts, self.wants = depends.looked, depends.facts, depends.wants
        return drafts
