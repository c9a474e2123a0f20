"""Tells the lines of a file that were written or copied twice.

A program that was stopped writes its last lines again; a merge, a sync tool or a person appends a
file, or an older copy of it, to itself. People also say the same twice, so equal lines alone tell
nothing. A line that equals an earlier one is a repeat where

- it has an id of its own, and nothing else was said under that id in between; or
- nobody says anything in it, and it comes right after the other; or
- it has a time of its own, and comes right after the other, or the clock had gone on in between.
  Where few lines have its time, it is also enough that it is finer than a second, or that a run
  comes right after the other: what a program copies at once, such as the beginning of a fork, has
  one time. In a file that has repeats, a time that is finer than a second is always enough.

Of a run of lines that equals an earlier run, all are repeats where one of them is, so that lines
without id and time go with their neighbours. Where none of them has an id or time that tells, the
run is a repeat where it is the file from its first line on, or where a person asks in it and a
model answers with more than is said twice by chance. Less may be said again: a model that waits
makes the same call again and again, and a person tries again what failed.

A copy may go on between other lines, as where two are mixed: a line that equals the one after the
copy's last is a repeat where it has an id or time. Where the copy begins with the file's header,
or enough of its lines have an id or time, it need not have one.

Where each of a file's first two lines, or one with an id or time, comes twice, so does each equal
line after it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Any

from store.sources.base.json_lines import Record, parse_line
from store.sources.base.json_values import LineError
from store.sources.base.values import utc_ms

_number = attrgetter("number")
_NAMES = ("id", "uuid", "message_id", "messageId", "requestId")
_TIMES = (
    "timestamp", "time", "ts", "created_at", "createdAt", "created", "created_timestamp",
    "startTime",
)  # fmt: skip
_WITHIN = ("data", "message", "payload")
"""Where a record may have its id and time, beside its top."""
_NAMED_FILE = frozenset({*_NAMES, *_TIMES, "sessionId", "session_id"})
"""One of a file's first two records has one of these: a file without any may say all twice."""
_FEWEST = 2
"""Lines that a file has at least before a copy of it can begin."""
_NEIGHBOURS = 8
"""Lines after each of two equal ones that are looked at for a later time."""
_FEW = 2
"""Lines of one time, among which a program writes no two equal ones."""
_FACTS = 2
"""What a header without a type says at least."""
_COPIES = 4
"""Copies in one file, each of which may go on between lines of the others."""
_SURE = 8
"""Records with an id or time in the order of earlier ones, after which it is sure that they are of
a copy."""
_PASSED = 64
"""Lines that a copy may go past where one that has an id or time is of it."""
_FARTHEST = 512
"""Lines in between that are looked at for another record with the same id."""
_EARLIEST_MS = 946_684_800_000
"""What is before the year 2000 is no time."""
_NO_CHANCE = 20
"""Characters of answers that are not the same twice by chance, in a run that tells more."""
_LONG = 200
"""Characters of an answer that is not the same twice by chance."""
_SPEAKERS = frozenset({"assistant", "model", "ai", "assistantmessage"})
_PERSONS = frozenset({"user", "human", "usermessage", "prompt"})
_NO_WORDS = frozenset({"role", "type", "kind", "id", "name", "input", "arguments", "tool_calls"})
"""Keys of what a model does not say in words: it makes the same call again."""

_CALL = re.compile(rb'"(?:tool_?calls?|tool[_-]use|tool_?requests?|function_?call)"', re.I)
"""Is in a line with a call."""
_RESULT = re.compile(
    rb'"(?:tool_?(?:result|response|use_?id|call_?id)s?|function_?response)"', re.I
)  # fmt: skip
"""Is in a line with a call's result, which some programs write as a person's."""
_SAID = frozenset({"text", "content", "message", "parts", "input", "output", "k"})
_OF_TALK = re.compile(
    "user|human|prompt|assistant|model|agent|tool|message|text|input|output|response|queue", re.I
)
"""Keys and types of records that say something, or add to what is said, as ``k`` does."""


class RepeatGiven(Exception):
    """A line that was given is of a repeat: the file must be read from the beginning."""


def _by_time(data: dict[str, Any], records: Sequence[bytes]) -> None:
    """Say of no record that it is a repeat right after an equal one, nor that it is none."""


class Repeats:
    """Leaves out the records of a file that are repeats."""

    def __init__(
        self,
        raw: Sequence[bytes],
        alike: dict[int, int],
        after_equal: Callable[[dict[str, Any], Sequence[bytes]], bool | None] = _by_time,
    ) -> None:
        """Start before the first record.

        Args:
            raw: All records of the file as they are; it grows with the file.
            alike: Those of the next ones that begin as an earlier one does, with that one's
                number; each call of ``without`` empties it.
            after_equal: Says whether a record is a repeat right after an equal one; None where
                its time tells.
        """
        self._raw, self._alike, self._after_equal = raw, alike, after_equal
        # The first of the lines that equal another one, but begin as an earlier one does; the
        # last of those that equal a first one.
        self._others: dict[bytes, int] = {}
        self._last: dict[int, int] = {}
        self._is_named = self._has_repeats = False
        self._copies = {0}
        # The run that goes on: how far behind it its original may be, its first and last line.
        self._shifts: list[int] = []
        self._begin = self._end = 0
        self._is_repeat = False
        # Those of its lines that may be none, how many of them were given, what a model says.
        self._held: list[Record] = []
        self._given = self._words = 0
        self._beside_call: bytes | None = None
        # Whether a person asks in it, and the first and another answer.
        self._asks = False
        self._answers: list[bytes] = []
        # The second and third line of a file that may hold each line twice.
        self._opening: list[Record] = []
        self._left_out = _LeftOut()

    def without(self, records: list[Record]) -> list[Record]:
        """Return those of the next records that are no repeats.

        What may be one is held back: when it is none, it comes with the record that tells so.

        Raises:
            RepeatGiven: ``rest`` gave what is one.
        """
        if not records:
            return records
        begin, alike = records[0].number, self._alike
        if begin < _FEWEST and not self._is_named:
            self._is_named = any(_names_file(record.data) for record in records[: _FEWEST - begin])
        if not alike and not self._shifts and not self._opening:
            return records
        found: list[Record] = []
        waiting, place, count = deque(alike), 0, len(records)
        while place < count:
            record = records[place]
            if not self._shifts and not self._opening:
                # None before the next one that may be a repeat is looked at.
                end = bisect_left(records, waiting[0], place, key=_number) if waiting else count
                found += records[place:end]
                if end == count:
                    break
                place, record = end, records[end]
            if waiting and waiting[0] == record.number:
                waiting.popleft()
            self._take_next(record, alike.get(record.number, record.number), found)
            place += 1
        alike.clear()
        return found

    def _take_next(self, record: Record, earlier: int, found: list[Record]) -> None:
        """Take the next record.

        Args:
            record: The record.
            earlier: The first one that begins as it does; itself where none does.
            found: Takes what is no repeat.
        """
        number, raw = record.number, self._raw
        if raw[earlier] != raw[number]:
            earlier = self._others.setdefault(raw[number], number)
        if self._opening and self._ends_opening(number, found):
            return
        if earlier == number and not self._shifts:
            found.append(record)
            return
        self._take(record, (earlier, self._last.get(earlier, earlier)), found)
        if earlier != number:
            self._last[earlier] = number

    def rest(self) -> list[Record]:
        """Return at the end of the file what is no repeat yet.

        Raises:
            RepeatGiven: An earlier call gave what is one.
        """
        if len(self._held) >= _FEWEST and self._is_of_beginning():
            if self._given:
                raise RepeatGiven
            return []
        held = self._held or self._opening
        found = held[self._given :]
        self._given = len(held)
        return found

    def _ends_opening(self, number: int, found: list[Record]) -> bool:
        """Take the fourth line; return whether it is the third one again."""
        opening, given = self._opening, self._given
        self._opening, self._given = [], 0
        self._has_repeats = self._raw[number] == self._raw[number - 1]
        if not self._has_repeats:
            found += opening[given:]
        elif given:
            raise RepeatGiven
        else:
            found.append(opening[-1])
        return self._has_repeats

    def _take(self, record: Record, places: tuple[int, int], found: list[Record]) -> None:
        """Take a record that may be of a run.

        Args:
            record: The record.
            places: The first and the last one that equal it; itself where none does.
            found: Takes what is no repeat.
        """
        number = record.number
        if self._shifts:
            self._shifts = [shift for shift in self._shifts if self._goes_on(number, shift)]
        if not self._shifts:
            if self._begin == self._end == 1 and number == places[0] == 2 and self._held:
                self._opening = [*self._held, record]
                self._held = []
                return
            self._end_run(found)
            if (original := self._next_of_copy(record)) is not None:
                self._leave_out(record, number - original)
                return
            shifts = dict.fromkeys(number - place for place in places if place < number)
            raw = self._raw
            self._shifts = [one for one in shifts if raw[number - one] == raw[number]]
            if not self._shifts:
                found.append(record)
                return
            self._begin = number
        self._end = number
        if self._is_repeat:
            self._leave_out(record, self._shifts[0])
            return
        self._held.append(record)
        self._words += self._new_words(record)
        whole = self._is_whole_copy()
        self._is_repeat = self._tells(record)
        if self._is_repeat or whole:
            if self._given:
                raise RepeatGiven
            for one in self._held:
                self._leave_out(one, self._shifts[0])
            self._held = []
            # A program may write its state again and again.
            self._has_repeats = self._has_repeats or whole or not _is_beside(record.data)
        if whole:
            self._copies.add(self._begin)
            self._end_run(found)

    def _next_of_copy(self, record: Record) -> int | None:
        """Return which earlier record a record equals that a copy goes on with, after others."""
        place, is_sure = self._left_out.next_like(record.number, self._raw)
        return place if is_sure or (place and _tells_itself(record.data)) else None

    def _leave_out(self, record: Record, shift: int) -> None:
        """Note a repeat."""
        number, weight = record.number, int(_tells_itself(record.data))
        if number == shift and self._begins_again(record):
            weight = _SURE
        original = self._next_of_copy(record)
        self._left_out.add(number, number - shift if original is None else original, weight)

    def _new_words(self, record: Record) -> int:
        """Return how many characters a model says that count, beside those of the run so far."""
        raw = self._raw[record.number]
        self._asks = self._asks or _asks(record.data, raw)
        words = _answer_words(record.data)
        if words and len(self._answers) < _FEWEST and raw not in self._answers:
            self._answers.append(raw)
        if not words or not _CALL.search(raw):
            return words
        if self._beside_call is None:
            self._beside_call = raw
        return 0 if raw == self._beside_call else words

    def _goes_on(self, number: int, shift: int) -> bool:
        """Return whether all since the last line of the run is as in its original."""
        raw = self._raw
        return all(raw[one] == raw[one - shift] for one in range(self._end + 1, number + 1))

    def _end_run(self, found: list[Record]) -> None:
        found += self._held[self._given :]
        self._held, self._shifts, self._is_repeat = [], [], False
        self._given = self._words = 0
        self._beside_call, self._asks, self._answers = None, False, []

    def _is_of_beginning(self) -> bool:
        """Return whether the run is a copy of the file's beginning, as far as it goes."""
        starts = (self._begin - shift for shift in self._shifts)
        return self._is_named and self._begin >= _FEWEST and not self._copies.isdisjoint(starts)

    def _is_whole_copy(self) -> bool:
        """Return whether the run is all that is between it and its original."""
        return self._is_of_beginning() and self._is_all_before()

    def _is_all_before(self) -> bool:
        length = self._end + 1 - self._begin
        return length in self._shifts and self._begin - length in self._copies

    def _is_said_once(self) -> bool:
        """Return whether what is said in the run so far is not said twice by chance."""
        if self._words < _NO_CHANCE or len(self._held) < _FEWEST:
            return False
        if _tells_itself(self._held[-1].data):
            return True
        if not self._asks:
            return False
        return len(self._answers) >= _FEWEST or self._words >= _LONG or self._is_all_before()

    def _tells(self, record: Record) -> bool:
        """Return whether the last record of the run tells that it is a repeat."""
        is_next = any(self._is_right_after(record.number, shift) for shift in self._shifts)
        if record.number in self._shifts and self._begins_again(record):
            return True
        if self._next_of_copy(record) is not None:
            return True
        after_equal = self._after_equal(record.data, self._raw)
        if is_next and after_equal is None:
            after_equal = self._has_repeats or _is_beside(record.data) or None
        if is_next and after_equal:
            return True
        if self._is_said_once():
            return True
        name, at, number = _name_of(record.data), _time_of(record.data), record.number
        places = [number - shift for shift in self._shifts]
        if name is not None and any(self._is_last(name, place, number) for place in places):
            return True
        if at is None:
            return False
        if after_equal is None:
            length = number + 1 - self._begin
            is_fine = at % 1000 > 0
            if (
                is_next
                or (is_fine and self._has_repeats)
                or any(
                    (is_fine or number - place <= length) and self._is_of_few(at, place)
                    for place in places
                )
            ):
                return True
        return any(self._went_on(at, place, number) for place in places)

    def _is_right_after(self, number: int, shift: int) -> bool:
        """Return whether there is nothing but damage between two equal records."""
        between = self._raw[number + 1 - shift : number] if shift <= _NEIGHBOURS else (b"{}",)
        return not any(one.startswith(b"{") and one.endswith(b"}") for one in between)

    def _begins_again(self, record: Record) -> bool:
        """Return whether a record that equals the first one begins another copy of the file."""
        is_torn = not _parsed(self._raw[record.number - 1])
        is_known = _tells_itself(record.data) or _is_beside(record.data)
        return _begins_file(record.data) or (is_torn and is_known)

    def _is_last(self, name: str | int, place: int, number: int) -> bool:
        """Return whether nothing else was said under an id between two equal records."""
        said, raw = str(name).encode("utf-8", "surrogatepass"), self._raw
        return not any(
            said in raw[one] and raw[one] != raw[number] and _name_of(_parsed(raw[one])) == name
            for one in range(place + 1, min(number, place + 1 + _FARTHEST))
        )

    def _is_of_few(self, at: int, place: int) -> bool:
        """Return whether one of the lines before a line has another time than it has."""
        near = self._raw[max(0, place - _FEW) : place]
        return any(time not in (None, at) for time in map(_time_of, map(_parsed, near)))

    def _went_on(self, at: int, place: int, number: int) -> bool:
        """Return whether a line between two equal ones is later than they are."""
        nearest = chain(
            range(number - 1, max(place, number - 1 - _NEIGHBOURS), -1),
            range(place + 1, min(number, place + 1 + _NEIGHBOURS)),
        )
        times = (_time_of(_parsed(self._raw[one])) for one in nearest)
        return any(time is not None and time > at for time in times)


def equal_earlier(items: Iterable[Hashable]) -> dict[int, int]:
    """Return the places of items that equal an earlier one, each with the first one's place."""
    first: dict[Hashable, int] = {}
    return {
        place: earlier
        for place, one in enumerate(items)
        if (earlier := first.setdefault(one, place)) != place
    }


def places_without_repeats(
    records: Sequence[dict[str, Any]], raw: Sequence[bytes], alike: dict[int, int]
) -> list[int]:
    """Return the places of the records of a whole list that are no repeats, in their order.

    Args:
        records: All of them.
        raw: Each as bytes; equal where the records are.
        alike: Those that equal an earlier one, as ``equal_earlier`` gives them; emptied.
    """
    repeats = Repeats(raw, alike)
    found = repeats.without([Record(place, 0, one) for place, one in enumerate(records)])
    return [record.number for record in (*found, *repeats.rest())]


class _LeftOut:
    """The repeats of a file, such that a copy is known that goes on between other lines."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}
        self._begin = -1
        # Of each copy: which record it goes on with, and how sure it is.
        self._copies: list[tuple[int, int]] = []

    def add(self, number: int, original: int, weight: int) -> None:
        """Note a repeat.

        Args:
            number: Its number.
            original: That of the record that it equals.
            weight: How much it tells of a copy; a copy may go on with what tells nothing.
        """
        if self._ends.get(self._begin) != number:
            self._begin = number
        self._ends[self._begin] = number + 1
        farthest = original - (_PASSED if weight else 0)
        going_on = [one for one in self._copies if farthest <= one[0] <= original]
        if going_on or weight:
            others = [one for one in self._copies if one not in going_on]
            weight += max((weight for _, weight in going_on), default=0)
            self._copies = [(original + 1, weight), *others[: _COPIES - 1]]

    def next_like(self, number: int, raw: Sequence[bytes]) -> tuple[int | None, bool]:
        """Return which record a copy goes on with, of those that equal another record.

        Args:
            number: The other one's number; the one right before it is left out.
            raw: All records.

        Returns:
            Its number, None where there is none, and whether it is sure that it is a copy.
        """
        for nth, (place, weight) in enumerate(self._copies):
            while (end := self._ends.get(place)) is not None:
                place = end
            self._copies[nth] = place, weight
            if place < number - 1 and raw[place] == raw[number]:
                return place, weight >= _SURE
        return None, False


def _begins_file(data: dict[str, Any]) -> bool:
    """Return whether a file's first record is written when the session begins, and only then."""
    is_once = len(data) >= _FACTS if "type" not in data else _time_of(data) is not None
    return is_once and _is_beside(data)


def _tells_itself(data: dict[str, Any]) -> bool:
    """Return whether a record has an id or time of its own."""
    return _name_of(data) is not None or _time_of(data) is not None


def _names_file(data: dict[str, Any]) -> bool:
    """Return whether a record has an id or a time, itself or in what it holds."""
    return any(
        not _NAMED_FILE.isdisjoint(each)
        for each in (data, *data.values()) if isinstance(each, dict)
    )  # fmt: skip


def _parsed(raw: bytes) -> dict[str, Any]:
    """Return the record of a line; empty where it holds none."""
    try:
        return parse_line(raw)[0]
    except LineError:
        return {}


def _levels(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a record, and what in it may have its id and time."""
    yield data
    for key in _WITHIN:
        if isinstance(inner := data.get(key), dict):
            yield inner


def _name_of(data: dict[str, Any]) -> str | int | None:
    """Return a record's own id."""
    found = (level.get(key) for level in _levels(data) for key in _NAMES)
    return next((one for one in found if one and isinstance(one, str | int)), None)


def _time_of(data: dict[str, Any]) -> int | None:
    """Return a record's own time, epoch ms."""
    found = (utc_ms(level.get(key)) for level in _levels(data) for key in _TIMES)
    return next((one for one in found if one is not None and one >= _EARLIEST_MS), None)


def _is_beside(data: dict[str, Any]) -> bool:
    """Return whether a record is a header, a state or a command: nobody says anything in it."""
    kinds = (level.get(key) for level in _levels(data) for key in ("type", "kind"))
    return (
        _SAID.isdisjoint(data)
        and not any("role" in level for level in _levels(data))
        and not any(isinstance(kind, str) and _OF_TALK.search(kind) for kind in kinds)
    )


def _answer_words(data: dict[str, Any]) -> int:
    """Return how many characters a model says in a record, as far as it matters."""
    speakers = (level.get(key) for level in _levels(data) for key in ("role", "type", "kind"))
    is_answer = any(isinstance(one, str) and one.lower() in _SPEAKERS for one in speakers)
    # A change of a log that adds to an answer names no speaker.
    if not is_answer and not (isinstance(path := data.get("k"), list) and "response" in path):
        return 0
    return sum(islice(map(len, _texts(data)), _NO_CHANCE))


def _asks(data: dict[str, Any], raw: bytes) -> bool:
    """Return whether a person says something in a record."""
    speakers = (level.get(key) for level in _levels(data) for key in ("role", "type"))
    is_asked = any(isinstance(one, str) and one.lower() in _PERSONS for one in speakers)
    return (is_asked and not _RESULT.search(raw)) or isinstance(data.get("k"), list)


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a record, without those of ``_NO_WORDS``."""
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str) and one:
            yield one
        elif isinstance(one, dict):
            waiting += [each for key, each in one.items() if key not in _NO_WORDS]
        elif isinstance(one, list):
            waiting += one
