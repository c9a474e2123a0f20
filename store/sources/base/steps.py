"""Reads a long file of JSON lines in steps, and continues where an earlier reading stopped.

Later records depend on earlier ones in few ways: they name them by id, and the mapping knows
what came before. So reading continues with the lines right before the end, the *window*, which
are read and mapped again, and a few earlier records in place of all others, the *context*.
The window must be unchanged, as must be the file's beginning. Each place to continue from is
proved: reading from it must give what is there. Where that fails, the file is read whole.
"""

from __future__ import annotations

import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from io import FileIO
from itertools import islice
from typing import Any, Generic, TypeVar

from store.sources.base.drafts import LineageDraft, MessageDraft, SessionDraft
from store.sources.base.growing import LinesFile, UnitReader
from store.sources.base.protocol import FileStamp, Known, Place, Problem, Step, Unit
from store.system.collection import paused_collection
from store.system.paths import open_regular

STEP_BYTES = (4 << 20, 8 << 20, 32 << 20)
"""Bytes of a step; the next size where no place to continue from is in as many."""
HEAD_BYTES = 4096
"""Bytes of the file's beginning that must be as they were."""
WINDOW_BYTES = 64 * 1024
"""Bytes that are read again at least."""
KEPT_BYTES = 192 * 1024
"""Where a window would be larger, the next reading begins at a later mark."""
MOST_WINDOW = 32 * 1024 * 1024
"""Bytes at the end of a file that was read whole, among which a mark is looked for."""
MOST_PROVED = 8
"""Places that are tried before giving up."""
MOST_PROBLEMS = 500
"""Where a file has more of them, it is read whole."""
COMPARED = (
    "title", "title_from", "agent", "workspace_root", "model", "metadata", "created_at",
    "updated_at", "archived_at", "lineage", "tells_title",
)  # fmt: skip
"""What a session says that must be the same however it was read."""


class CannotGoOn(Exception):
    """Only reading the whole file can tell what it holds now."""


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
        line = b"\n" + record + b"\n"
        # As a rule it is near the end.
        found = self.data.find(line, max(0, len(self.data) - KEPT_BYTES))
        if found < 0:
            found = self.data.find(line)
        return None if found < 0 else self.start + found + 1

    def mark(self, offset: int, lines: int, record: int) -> Mark:
        """Return where a reading continues that begins with a record of this stretch.

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


def read_stretch(path: str, mark: Mark | None, most: int, *, grown: bool) -> Stretch:
    """Read a window and what follows it; without a mark, a file's beginning.

    Args:
        path: The file.
        mark: Where it was read to.
        most: Bytes to read beyond that.
        grown: Whether it must hold more than was read.

    Raises:
        CannotGoOn: It is not the file that was read, or has not grown.
    """
    try:
        with open_regular(path) as file:
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


def read_end(stamp: FileStamp) -> Stretch:
    """Return the end of a file that was read whole.

    Raises:
        CannotGoOn: It is another file now.
    """
    try:
        with open_regular(stamp.path) as file:
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


@dataclass(slots=True)
class Stop(Mark):
    """Where a session's file is continued, and what later records are read with.

    An agent adds what it needs.

    Attributes:
        numbers: The numbers of the context's records.
        lineage: Kind, parent, parent's message and call, of a session with a parent.
        problems: Line and reason, of what is before the window.
    """

    numbers: list[int] = field(default_factory=list)
    lineage: list[Any] | None = None
    problems: list[list[Any]] = field(default_factory=list)

    @property
    def lineage_draft(self) -> LineageDraft | None:
        """The lineage as a draft."""
        return None if self.lineage is None else LineageDraft(*self.lineage)

    def keep(self, stop: Any) -> None:
        """Take from an earlier stop at the same window what is before it."""
        self.numbers, self.problems = stop.numbers, stop.problems


@dataclass(slots=True)
class Found:
    """A place in what was read that nothing after it looks behind.

    Attributes:
        index: Among the items that the file's records were mapped to.
        record: The number of the record that it begins with.
        message: Among the messages, the one that begins with the record.
        numbers: The numbers of the records that are its context.
    """

    index: int
    record: int
    message: int
    numbers: list[int]


File = TypeVar("File", bound=LinesFile)
Reader = TypeVar("Reader", bound=UnitReader)
State = TypeVar("State", bound=Stop)


@dataclass(slots=True)
class Piece(Generic[File]):
    """A stretch of the file and what it holds; ``torn`` is wrong with its last line."""

    file: File
    stretch: Stretch
    torn: Problem | None = None


class LongReader(ABC, Generic[File, Reader, State]):
    """Reads one unit in steps. An agent's class says what a place depends on.

    Attributes:
        path: The long file; None where the unit has none.
        others: Stamps of the unit's other files.
        elsewhere: Problems of those files.
    """

    def __init__(self, unit: Unit, main: FileStamp | None, known: Known) -> None:
        """Start with nothing read.

        Args:
            unit: The unit as it is now.
            main: The stamp of its long file; None where the unit is always read whole.
            known: Tells whether names were passed before the place where reading continues.
        """
        self.unit, self.known = unit, known
        self.path = main.path if main is not None else None
        self.others = [stamp for stamp in unit.stamps if stamp is not main]
        self.elsewhere: list[Problem] = []

    @abstractmethod
    def stop(self, state: dict[str, Any]) -> State:
        """Return a stop from its state."""

    @abstractmethod
    def reader(self) -> Reader:
        """Return a reader of the unit that has read nothing."""

    @abstractmethod
    def open(self, path: str, **begin: int) -> File:
        """Return the long file with nothing read; ``begin`` as in ``LinesFile``."""

    @abstractmethod
    def file_of(self, reader: Reader) -> File | None:
        """Return the long file that a reader has read."""

    @abstractmethod
    def put(self, reader: Reader, file: File, stop: State | None) -> None:
        """Give a reader the long file, and what is known of what is before it.

        Args:
            reader: A reader that has read nothing.
            file: What was read of the long file.
            stop: Where that went on; None for the beginning.
        """

    def begin(self, stop: State | None) -> None:
        """Look at the unit's other files.

        Raises:
            CannotGoOn: They changed what is before.
        """
        return None

    def take_others(self, reader: Reader) -> None:
        """Read the unit's other files that moved, where that does not change what is before."""
        return None

    @abstractmethod
    def check(self, file: File, stop: State | None) -> None:
        """Refuse records that change what is before the window.

        Raises:
            CannotGoOn: There are such records, or no new ones.
        """

    def holds(self, file: File) -> bool:
        """Return whether the records after a place name nothing before it."""
        return True

    @abstractmethod
    def build(self, reader: Reader, stop: State | None) -> SessionDraft | None:
        """Return the session as far as it was read; None where it holds no message."""

    def check_draft(self, reader: Reader, draft: SessionDraft, stop: State | None) -> None:
        """Refuse a session that is more than what its long file holds.

        Args:
            reader: What was read.
            draft: The session made of it.
            stop: Where the reading went on; None for the beginning.

        Raises:
            CannotGoOn: It is such a session.
        """
        return None

    @abstractmethod
    def can_grow(self, reader: Reader, draft: SessionDraft) -> bool:
        """Return whether a session that was read whole can be continued."""

    @abstractmethod
    def places(self, file: File, messages: Sequence[MessageDraft]) -> Iterator[Found]:
        """Yield places with a window behind them, the last one first."""

    @abstractmethod
    def names(self, file: File, until: int) -> set[str]:
        """Return the ids that the items after the context define, up to one."""

    @abstractmethod
    def details(self, reader: Reader, draft: SessionDraft) -> dict[str, Any]:
        """Return what a stop holds beside the base's fields."""

    def note(
        self, state: State, place: Place, stop: State | None, reader: Reader, draft: SessionDraft
    ) -> None:
        """Add to a new stop, and to its place's names, what is before it.

        Args:
            state: The new stop.
            place: Its place.
            stop: Where this reading went on; None for the beginning.
            reader: What was read.
            draft: The session made of it.
        """
        return None

    def attach(self, reader: Reader, draft: SessionDraft) -> None:
        """Leave out of a draft the attachments that did not change."""
        return None

    def steps(
        self, start: Place | None, *, fresh: bool, whole: bool = True
    ) -> Iterator[Step]:
        """Read the unit, as ``LongSource.steps`` does.

        Args:
            start: Where the last reading can be continued; None for the beginning.
            fresh: Whether nothing of the unit is in the library yet.
            whole: Whether to read it whole where steps cannot go on.
        """
        if self.path is not None and (start is not None or fresh):
            grown = start is not None
            try:
                while True:
                    with paused_collection():
                        step = self._next(start, grown=grown)
                    yield step
                    if not step.more:
                        return
                    start, grown = step.place, False
            except CannotGoOn:
                pass
        if whole:
            with paused_collection():
                step = self._whole()
            yield step

    def _next(self, start: Place | None, *, grown: bool) -> Step:
        """Read what follows a place, as many of ``STEP_BYTES`` as are needed.

        Args:
            start: The place; None for the beginning.
            grown: Whether an earlier sync stopped there.

        Raises:
            CannotGoOn: It changes what is before, or no place follows.
        """
        for most in STEP_BYTES:
            step = self._step(start, most, grown=grown)
            if step.place is not None or not step.more:
                return step
        raise CannotGoOn

    def _step(self, start: Place | None, most: int, *, grown: bool) -> Step:
        """Read what follows a place.

        Args:
            start: The place; None for the beginning.
            most: Bytes to read at most.
            grown: Whether an earlier sync stopped there.

        Raises:
            CannotGoOn: It changes what is before.
        """
        try:
            stop = self.stop(start.state) if start is not None else None
        except TypeError as error:
            raise CannotGoOn from error  # the library was written by another version
        context = start.context if start is not None else b""
        self.begin(stop)
        piece = self._read(stop, context, most, grown=grown)
        self.check(piece.file, stop)
        reader = self.reader()
        self.put(reader, piece.file, stop)
        self.take_others(reader)
        draft = self._draft(reader, stop)
        first = self._first_of(stop, context, draft)
        place = self._place(piece, reader, draft, stop, first)
        if place is not None:
            place.message -= first
        draft.messages, draft.first_record = draft.messages[first:], piece.file.first
        self.attach(reader, draft)
        problems = [] if stop is None else [Problem(stop.path, *one) for one in stop.problems]
        problems += piece.file.problems + self.elsewhere
        problems += [] if piece.torn is None else [piece.torn]
        made = reader.reading([draft])
        made.problems = problems
        made.stamps = (piece.stretch.stamp(piece.file.offset), *self.others)
        return Step(made, stop is not None, place, piece.stretch.more, (piece, reader))

    def _read(
        self, stop: State | None, context: bytes, most: int, *, grown: bool
    ) -> Piece[File]:
        """Read the window and what follows it.

        Raises:
            CannotGoOn: The file is not the one that was read, or has nothing more.
        """
        assert self.path is not None
        stretch = read_stretch(self.path, stop, most, grown=grown)
        piece = Piece(self._file(stop, context), stretch)
        piece.file.push(stretch.data)
        piece.torn = None if stretch.more else piece.file.finish()
        return piece

    def _file(self, stop: State | None, context: bytes) -> File:
        """Return the file with the context, to be continued at the window."""
        if stop is None:
            assert self.path is not None
            return self.open(self.path)
        file = self.open(stop.path, first=stop.record, line=stop.line, offset=stop.offset)
        file.take_context(zip(stop.numbers, context.split(b"\n"), strict=True))
        return file

    def _draft(self, reader: Reader, stop: State | None) -> SessionDraft:
        """Return the session as far as it was read.

        Raises:
            CannotGoOn: It holds more than its file does, or no message.
        """
        draft = self.build(reader, stop)
        if draft is None:
            raise CannotGoOn
        self.check_draft(reader, draft, stop)
        return draft

    def context_messages(self, stop: State, context: bytes) -> list[MessageDraft]:
        """Return the messages that are made of a context alone."""
        reader = self.reader()
        self.put(reader, self._file(stop, context), stop)
        draft = self.build(reader, stop)
        return draft.messages if draft is not None else []

    def _first_of(self, stop: State | None, context: bytes, draft: SessionDraft) -> int:
        """Return which of a draft's messages is the first that does not come from the context.

        Args:
            stop: Where the reading went on; None for the beginning.
            context: Its context.
            draft: The session.

        Raises:
            CannotGoOn: Later records change what is before.
        """
        if stop is None:
            return 0
        messages = self.context_messages(stop, context)
        if draft.messages[: len(messages)] != messages:
            raise CannotGoOn
        return len(messages)

    def _place(
        self,
        piece: Piece[File],
        reader: Reader,
        draft: SessionDraft,
        stop: State | None,
        first: int,
    ) -> Place | None:
        """Return where the next reading continues; None where no place was proved.

        Args:
            piece: What was read.
            reader: What was made of it.
            draft: The session.
            stop: Where it was continued; None for the beginning.
            first: The first message that does not come from the context.
        """
        file, stretch = piece.file, piece.stretch
        small = stop is not None and stretch.end - stop.offset < KEPT_BYTES
        if stop is not None and small and not stretch.more:
            state = self._stop(piece, reader, draft, stop.offset, stop.record)
            state.keep(stop)
            context = b"\n".join(file.context[number] for number in stop.numbers)
            return Place(first, stop.record, state.as_json(), context, ())
        for found in islice(self.places(file, draft.messages), MOST_PROVED):
            place = self._place_at(found, piece, reader, draft, stop)
            if place is not None and self._proved(place, draft, piece):
                return place
        return None

    def _place_at(
        self,
        found: Found,
        piece: Piece[File],
        reader: Reader,
        draft: SessionDraft,
        stop: State | None,
    ) -> Place | None:
        """Return the place at a record, not proved yet; the arguments as in ``_place``."""
        file = piece.file
        offset = piece.stretch.start_of(file.raw(found.record))
        if offset is None:
            return None
        state = self._stop(piece, reader, draft, offset, found.record)
        state.numbers = found.numbers
        state.problems = [
            *(stop.problems if stop is not None else []),
            *([one.line, one.reason] for one in file.problems if one.line < state.line),
        ]
        if len(state.problems) + len(self.elsewhere) > MOST_PROBLEMS:
            return None
        context = b"\n".join(file.raw(number) for number in found.numbers)
        names = self.names(file, found.index)
        place = Place(found.message, found.record, {}, context, names)
        self.note(state, place, stop, reader, draft)
        place.state = state.as_json()
        return place

    def _proved(self, place: Place, draft: SessionDraft, piece: Piece[File]) -> bool:
        """Return whether continuing from a place now gives what is there, from its message on.

        Args:
            place: The place.
            draft: The session as it was read.
            piece: What was read.
        """
        stop = self.stop(place.state)
        try:
            most = piece.stretch.end - stop.end
            again = self._read(stop, place.context, most, grown=False)
            reader = self.reader()
            self.put(reader, again.file, stop)
            found = self._draft(reader, stop)
            first = self._first_of(stop, place.context, found)
        except CannotGoOn:
            return False
        return (
            self.holds(again.file)
            and found.messages[first:] == draft.messages[place.message :]
            and all(getattr(found, name) == getattr(draft, name) for name in COMPARED)
        )

    def _stop(
        self, piece: Piece[File], reader: Reader, draft: SessionDraft, offset: int, record: int
    ) -> State:
        """Return a stop that begins with a record.

        Args:
            piece: What was read.
            reader: What was made of it.
            draft: The session.
            offset: The byte where the record begins.
            record: Its number.
        """
        lineage = draft.lineage
        mark = piece.stretch.mark(offset, piece.file.whole_lines, record)
        return self.stop({
            **mark.as_json(),
            "lineage": None if lineage is None else [
                lineage.kind, lineage.parent_source_id, lineage.parent_message_source_id,
                lineage.tool_call_id,
            ],
            **self.details(reader, draft),
        })  # fmt: skip

    def _whole(self) -> Step:
        """Read the unit whole, and find where it can be continued."""
        reader = self.reader()
        reading = reader.read(self.unit)
        self.elsewhere = [one for one in reading.problems if one.path != self.path]
        file = self.file_of(reader) if self.path is not None else None
        stamp = next((one for one in reading.stamps if one.path == self.path), None)
        if file is None or stamp is None or not reading.sessions:
            return Step(reading, False, None)
        place, draft = None, reading.sessions[0]
        if self.can_grow(reader, draft):
            try:
                piece = Piece(file, read_end(stamp))
                place = self._place(piece, reader, draft, None, 0)
            except CannotGoOn:
                pass
        return Step(reading, False, place)
