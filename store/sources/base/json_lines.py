"""Bytes of a file to its records, one JSON object a line; damage costs itself and is reported.

Several agents write their sessions as one JSON object a line. Lines are cut without ever
holding more of one than ``LINE_LIMIT``, so that a file that is one endless line costs
nothing but itself. Whole records that share a line with damage are kept. A file in another
encoding or form is read where that is simple, and is one problem either way.
"""

from __future__ import annotations

from dataclasses import replace
from io import RawIOBase
from typing import Any, NamedTuple

import orjson

from store.sources.base.file_forms import Form, form_of
from store.sources.base.json_values import LineError as LineError
from store.sources.base.json_values import parse_json
from store.sources.base.protocol import Problem
from store.sources.base.salvage import whole_records

LINE_LIMIT = 64 * 1024 * 1024
"""Bytes of the longest line that is read; real ones (images, PDFs) stay far below."""

CHUNK = 8 * 1024 * 1024
"""Bytes read at once."""

TOO_LONG = "line is longer than 64 MiB, skipped"
COMPARED = 128
"""Of a line, the first bytes that tell most from all others; more costs more."""
OTHER_FORM = "JSON in another form than one record a line; read all the same"
MOST_TOLD = 4
"""Of the lines in a row that hold no record, how many are problems of their own."""
SEVERAL = "several records on one line, all of them kept"


class LineSplitter:
    """Cuts appended bytes into whole lines and holds back the unfinished last one.

    Attributes:
        tail: The unfinished last line; empty while a line that is too long is skipped.
        consumed: Bytes of whole lines (with their newline) so far.
        lines: Whole lines so far, skipped ones too.
        skipped: Numbers (from 1) of lines that were longer than ``limit``.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        """Start at the beginning of a file."""
        self.tail = b""
        self.consumed = 0
        self.lines = 0
        self.skipped: list[int] = []
        self._limit = limit
        self._skipping = 0

    def push(self, chunk: bytes) -> list[bytes]:
        """Take what was appended; return the lines it completes, without newlines.

        A skipped line is returned as an empty one, so that lines keep their numbers.
        """
        if self._skipping:
            end = chunk.find(b"\n")
            if end < 0:
                self._skipping += len(chunk)
                return []
            self.consumed += self._skipping + end + 1
            self._skipping = 0
            lines = [b"", *self._cut(chunk[end + 1 :])]
        else:
            lines = self._cut(self.tail + chunk if self.tail else chunk)
        self.lines += len(lines)
        return lines

    def _cut(self, data: bytes) -> list[bytes]:
        lines, start, find = list[bytes](), 0, data.find
        # Several times as quick as ``split``, where lines are long.
        while (end := find(b"\n", start)) >= 0:
            lines.append(data[start:end])
            start = end + 1
        self.tail = data[start:] if start else data
        self.consumed += len(data) - len(self.tail)
        if len(data) > self._limit:
            for index, line in enumerate(lines):
                if len(line) > self._limit:
                    self.skipped.append(self.lines + index + 1)
                    lines[index] = b""
        if len(self.tail) > self._limit:
            self.skipped.append(self.lines + len(lines) + 1)
            self._skipping = len(self.tail)
            self.tail = b""
        return lines

    def take_tail(self) -> bytes:
        """Return the last line as if its newline were there, and count it as read.

        The newline that is written before the next line then ends an empty line.
        """
        tail, self.tail = self.tail, b""
        self.consumed += len(tail)
        return tail


class Record(NamedTuple):
    """One JSON object of a file.

    Attributes:
        number: Into the file's records.
        line: From 1, for problems.
        nth: Among the records of its line; 0 for all but those that share one.
    """

    number: int
    line: int
    data: dict[str, Any]
    nth: int = 0

    @property
    def name(self) -> str:
        """A name that follows from its place, for a record without an id of its own."""
        return f"line-{self.line}.{self.nth}" if self.nth else f"line-{self.line}"


class JsonLines:
    """The records of one file, as far as its bytes were pushed.

    Attributes:
        records: Every record as it was, and every line that holds none.
    """

    def __init__(self, path: str, limit: int = LINE_LIMIT, unread: tuple[bytes, ...] = ()) -> None:
        """Start with nothing read.

        Args:
            path: The file, for problems.
            limit: Bytes of the longest line that is read.
            unread: Beginnings of lines that are kept as records without being parsed.
        """
        self.records: list[bytes] = []
        self._noted: list[Problem] = []
        self._path, self._limit, self._unread = path, limit, unread
        self._splitter = LineSplitter(limit)
        self._head: bytes | None = b""
        self._form: Form | None = None
        self._pushed = 0
        self._spread = _Spread()
        self._in_list = False
        self._beginnings: dict[int, int] | None = None
        self._alike: dict[int, int] = {}
        self._run = 0
        self._places: list[int] = []
        self._found = False

    @property
    def problems(self) -> list[Problem]:
        """What could not be read, or only by repairing it.

        Lines in a row that hold no record are one problem each up to ``MOST_TOLD``, and one
        for the rest; those of a file that holds none at all are one problem.
        """
        if self._form is not None and self._form.is_cut:
            # That it is cut is told, with its form, as a torn end is.
            return [one for one in self._noted if one.reason != self._form.reason]
        if self._found or self._run < 2:
            return self._noted
        first, *others = self._places
        kept = [problem for place, problem in enumerate(self._noted) if place not in others]
        kept[first] = _and_more(self._noted[first], self._run - 1)
        return kept

    @property
    def consumed(self) -> int:
        """Bytes of the file that were read; less than all where its end is torn."""
        if self._form is not None:
            return self._pushed - (1 if self._splitter.tail else 0)
        return self._splitter.consumed - self._spread.size

    @property
    def lines(self) -> int:
        """Whole lines so far."""
        return self._splitter.lines

    def begin_at(self, line: int, offset: int) -> None:
        """Go on with a file of one record a line whose beginning was read before.

        Args:
            line: The number of the line that is pushed first, from 1.
            offset: The byte where it begins.
        """
        self._head, self._found, self._pushed = None, True, offset
        self._splitter.lines, self._splitter.consumed = line - 1, offset

    def find_alike(self) -> dict[int, int]:
        """Return what is to hold each record that begins as an earlier one, with that one."""
        self._beginnings = {}
        return self._alike

    @property
    def has_tail(self) -> bool:
        """Whether the last line is unfinished, and held back."""
        return bool(self._head or self._splitter.tail)

    def push(self, chunk: bytes) -> list[Record]:
        """Take appended bytes; return the records that they complete."""
        self._pushed += len(chunk)
        if self._head is not None:
            # Four bytes tell an encoding.
            chunk = self._head + chunk
            if len(chunk) < 4:
                self._head = chunk
                return []
            self._begin(chunk)
        return self._split(chunk)

    def _begin(self, head: bytes) -> None:
        self._head = None
        self._form = form_of(head)
        if self._form is not None:
            self._noted.append(Problem(self._path, 1, self._form.reason))

    def _split(self, chunk: bytes) -> list[Record]:
        if self._form is not None:
            chunk = self._form.decode(chunk)
            while self._form.problems:
                self._noted.append(Problem(self._path, 0, self._form.problems.pop()))
        first = self._splitter.lines + 1
        found = self._read(self._splitter.push(chunk), first)
        while self._splitter.skipped:
            self._noted.append(Problem(self._path, self._splitter.skipped.pop(0), TOO_LONG))
        return found

    def finish(self) -> tuple[list[Record], Problem | None]:
        """Take the last line though no newline ends it, when it holds whole records.

        Returns:
            Its records, and what is wrong with an end that is torn; that stays unread.
        """
        if self._form is not None and self._form.is_cut:
            cut = f"{self._form.name}, where plain text belongs, and cut off; read as far as it is"
            return self._finish()[0], Problem(self._path, 1, cut)
        return self._finish()

    def _finish(self) -> tuple[list[Record], Problem | None]:
        found: list[Record] = []
        if self._head:
            blank = not self._head.strip()
            reason = "unfinished last line: no JSON"
            return found, None if blank else Problem(self._path, 1, reason)
        tail, number = self._splitter.tail, self._splitter.lines + 1
        if tail.strip():
            torn = self._torn(tail)
            if torn is not None and self._run and not self._found:
                return found, None  # A file without any record is one problem.
            if torn is not None:
                return found, Problem(self._path, number, f"unfinished last line: {torn}")
            found += self._read([self._splitter.take_tail()], number)
        if self._spread.held:
            reason = "unfinished last record"
            return found, Problem(self._path, self._spread.first, reason)
        return found, None

    def _torn(self, tail: bytes) -> str | None:
        """Return why a last line without a newline must wait for its rest."""
        if self._spread.takes(tail):
            return None if self._spread.ends(tail) else "a record that takes several lines"
        try:
            parse_line(tail)
        except LineError as error:
            whole = self._is_frame(tail) or any(data for _, data in whole_records(tail))
            return None if whole else str(error)
        return None

    def _read(self, lines: list[bytes], first: int) -> list[Record]:
        found: list[Record] = []
        for number, line in enumerate(lines, first):
            if not line or line.isspace():
                if self._spread.held:
                    self._spread.size += len(line) + 1
                continue
            if self._unread and line.startswith(self._unread) and line.endswith(b"}"):
                self._found, self._run, self._places = True, 0, []
                self.records.append(line)
                continue
            if self._spread.held or not line.startswith(b'{"'):
                self._read_odd(line, number, found)
            else:
                self._take(line, number, found)
        return found

    def _take(self, line: bytes, number: int, found: list[Record]) -> None:
        if self._in_list:
            line = line.strip().removesuffix(b",")
        try:
            data, repaired = parse_line(line)
        except LineError as error:
            self._take_damaged(line, number, error, found)
            return
        if self._run:
            self._run, self._places = 0, []
        self._found = True
        place = len(self.records)
        found.append(Record(place, number, data))
        self.records.append(line)
        self._note_beginning(line, place)
        if repaired:
            self._noted.append(Problem(self._path, number, repaired))

    def _note_beginning(self, record: bytes, place: int) -> None:
        """Note a record that begins as an earlier one; it is in the processor's cache now."""
        if self._beginnings is not None:
            earlier = self._beginnings.setdefault(hash(record[:COMPARED]), place)
            if earlier != place:
                self._alike[place] = earlier

    def _take_damaged(
        self, line: bytes, number: int, error: LineError, found: list[Record]
    ) -> None:
        pieces = whole_records(line)
        whole = sum(data is not None for _, data in pieces)
        if not whole:
            self.records.append(line)
            self._unreadable(number, str(error))
            return
        self._found, self._run, self._places = True, 0, []
        nth = 0
        for raw, data in pieces:
            if data is not None:
                place = len(self.records)
                found.append(Record(place, number, data, nth))
                self._note_beginning(raw, place)
                nth += 1
            self.records.append(raw)
        if whole == len(pieces) and _is_of_list(line):
            self._other_form(number)
        else:
            several = 1 < whole == len(pieces)
            reason = SEVERAL if several else f"{error}; whole records on its line are kept"
            self._noted.append(Problem(self._path, number, reason))

    def _read_odd(self, line: bytes, number: int, found: list[Record]) -> None:
        """Read a line that does not begin as a record does: it may be one line of one."""
        spread = self._spread
        if spread.held and not spread.takes(line):
            self.records += spread.held
            self._unreadable(spread.first, "no JSON: unexpected end of data")
            spread.drop()
        if not spread.held and (self._is_in_lines or not spread.begins(line)):
            if self._is_frame(line):
                self._other_form(number)
            else:
                self._take(line, number, found)
            return
        if not spread.held:
            spread.first = number
        done = spread.ends(line)
        spread.hold(line)
        if spread.size > self._limit:
            self._noted.append(Problem(self._path, spread.first, TOO_LONG))
            spread.drop()
        elif done:
            self._take_spread(found)

    def _take_spread(self, found: list[Record]) -> None:
        text = b"\n".join(self._spread.held).rstrip().removesuffix(b",")
        first, lines = self._spread.first, self._spread.held
        self._spread.drop()
        try:
            value, repaired = parse_json(text)
        except LineError as error:
            self.records += lines
            self._unreadable(first, str(error))
            return
        self._other_form(first)
        self._take(orjson.dumps(value), first, found)
        if repaired:
            self._noted.append(Problem(self._path, first, repaired))

    def _is_frame(self, line: bytes) -> bool:
        """Return whether a line only opens or ends the list that the records are in."""
        text = line.strip()
        return (text == b"[" and not self._is_in_lines) or (text == b"]" and self._in_list)

    @property
    def _is_in_lines(self) -> bool:
        """Whether the file has been of one record a line so far."""
        return self._found and not self._in_list

    def _other_form(self, number: int) -> None:
        if not self._in_list:
            self._in_list = True
            self._noted.append(Problem(self._path, number, OTHER_FORM))

    def _unreadable(self, line: int, reason: str) -> None:
        """Report a line that holds no record."""
        self._run += 1
        if self._run <= MOST_TOLD:
            self._places.append(len(self._noted))
            self._noted.append(Problem(self._path, line, reason))
            self._last = self._noted[-1]
        else:
            self._noted[self._places[-1]] = _and_more(self._last, self._run - MOST_TOLD)


def _and_more(problem: Problem, more: int) -> Problem:
    lines = "line" if more == 1 else f"{more} lines"
    return replace(problem, reason=f"{problem.reason} (and the {lines} after it)")


class _Spread:
    """A record that is printed over several lines, while its lines come.

    Printers put the closing brace where the line of the opening one begins.

    Attributes:
        held: Its lines so far.
        first: The number of the first.
        size: Bytes of them, with their newlines.
    """

    def __init__(self) -> None:
        self.held: list[bytes] = []
        self.first = self.size = 0
        self._indent = 0

    def begins(self, line: bytes) -> bool:
        """Return whether a line opens a record and holds nothing else."""
        return line.strip() == b"{"

    def takes(self, line: bytes) -> bool:
        """Return whether a line may be the next one of the record that is held."""
        text = line.strip()
        if len(self.held) == 1:
            return text.startswith(b'"')
        return bool(self.held) and (_indent(line) > self._indent or text in (b"}", b"},"))

    def ends(self, line: bytes) -> bool:
        """Return whether a line closes the record that is held."""
        return bool(self.held) and line.strip() in (b"}", b"},") and _indent(line) == self._indent

    def hold(self, line: bytes) -> None:
        """Add a line."""
        if not self.held:
            self._indent = _indent(line)
        self.held.append(line)
        self.size += len(line) + 1

    def drop(self) -> None:
        """Leave the record."""
        self.held, self.size = [], 0


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())


def parse_line(line: bytes) -> tuple[dict[str, Any], str | None]:
    """Parse a line that is one JSON object.

    Returns:
        The object, and what had to be repaired in the line to read it, if anything.

    Raises:
        LineError: When the line is no JSON object, however it is read.
    """
    value, repaired = parse_json(line)
    if not isinstance(value, dict):
        raise LineError(f"JSON {type(value).__name__} where an object belongs")
    return value, repaired


def _is_of_list(line: bytes) -> bool:
    """Return whether a line with whole records alone is one of a JSON list of them."""
    text = line.strip()
    return text.startswith(b"[") or text.endswith((b"]", b","))


def read_head(file: RawIOBase, size: int, lines: int = 1) -> bytes:
    """Return a file's beginning, up to the end of its first lines where these are longer.

    Args:
        file: The file, read from its beginning.
        size: How many bytes are wanted; fewer where the file is shorter.
        lines: How many whole lines are wanted, within ``LINE_LIMIT`` bytes.
    """
    head = file.read(size) or b""
    while head.count(b"\n") < lines and len(head) < LINE_LIMIT:
        more = file.read(max(size, len(head))) or b""
        if not more:
            break
        head += more
    return head


def records_of(body: bytes, most: int | None = None) -> list[dict[str, Any]]:
    """Return the records that a file, or its beginning, holds, whatever its form.

    Args:
        body: The file's first bytes; a line that they cut is left out.
        most: How many records are wanted at most.
    """
    content = JsonLines("")
    found = content.push(body)
    found += content.finish()[0]
    return [record.data for record in found[:most]]


def parse_value(text: str | bytes) -> Any:
    """Return the value of a JSON text, read as leniently as a line is.

    Raises:
        LineError: When it is no JSON, however it is read.
    """
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return parse_json(raw)[0]
