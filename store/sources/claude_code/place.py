"""Finds where a session file can be gone on with: a row that later rows do not look behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from store.sources.base import stretches
from store.sources.base.drafts import MessageDraft
from store.sources.base.requests import words_of
from store.sources.claude_code.costs import CostNote
from store.sources.claude_code.references import defined_by, named_by
from store.sources.claude_code.rows import Row, mapping
from store.sources.claude_code.transcript import Transcript
from store.sources.claude_code.tree import abandoned
from store.sources.claude_code.usage import SYNTHETIC

MOST_TRIED = 200
"""Rows that are looked at before it is given up."""
_LATER = 1 << 60
_AT = attrgetter("at")
CONTEXT_BYTES = 8 * 1024 * 1024
"""Bytes of all earlier records that a place may need."""


@dataclass(slots=True)
class Found:
    """A place.

    Attributes:
        row: Among the transcript's rows.
        message: Among the messages, the one that begins with the row.
        numbers: The numbers of the records that are its context.
    """

    row: int
    message: int
    numbers: list[int]


def places(
    transcript: Transcript, messages: Sequence[MessageDraft]
) -> Iterator[Found]:
    """Yield the places with a window behind them that stands by itself, the last one first.

    Args:
        transcript: What was read; its context was before the place that was read from.
        messages: What was made of it.
    """
    rows = transcript.rows
    ends = _Ends(transcript)
    tried = 0
    for index in ends.candidates(_last_row(transcript)):
        row = rows[index]
        tried += 1
        if tried > MOST_TRIED:
            break
        message = _message_of(row, messages)
        if message is None or not ends.keeps_hidden(index):
            continue
        numbers = sorted(_context(transcript, index, messages[:message]))
        if sum(len(transcript.raw(number)) for number in numbers) > CONTEXT_BYTES:
            return
        yield Found(index, message, numbers)


def names_of(rows: Sequence[Row]) -> set[str]:
    """Return the ids that rows define."""
    return {name for row in rows for name in defined_by(row)}


def _last_row(transcript: Transcript) -> int:
    """Return the last row that has a window behind it; -1 where none has."""
    size, counted = 0, transcript.first + len(transcript.records)
    for index in range(len(transcript.rows) - 1, transcript.context_rows, -1):
        number = transcript.rows[index].number
        size += sum(len(transcript.raw(each)) + 1 for each in range(number, counted))
        counted = number
        if size >= stretches.WINDOW_BYTES:
            return index
    return -1


class _Ends:
    """Which rows nothing behind them looks past."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        rows, first = transcript.rows, transcript.context_rows
        self._rows, self._first = rows, first
        own = rows[first:]
        self._left = abandoned(own, transcript.leaf, goes_on=first > 0)
        defined: dict[str, int] = {}
        for index, row in enumerate(rows):
            for name in defined_by(row):
                defined.setdefault(name, index)
        self._defined = defined

    def candidates(self, last: int) -> Iterator[int]:
        """Yield rows, from one on backwards, that begin a message and close all before them."""
        rows, low = self._rows, len(self._rows)
        for index in range(len(rows) - 1, self._first, -1):
            row = rows[index]
            if index <= min(low, last) and self._begins(index) and not self._has_open_call(index):
                yield index
            low = min([low, *(self._defined.get(name, low) for name in named_by(row))])

    def _begins(self, index: int) -> bool:
        """Say whether a row of the current branch begins a message right after the row before."""
        row = self._rows[index]
        if row.parent != self._rows[index - 1].uuid or row.uuid in self._left:
            return False
        if self._transcript.is_busy_at(row.number):
            return False
        if row.type == "assistant":
            return self._defined[row.message_id] == index
        is_words = row.type == "user" and not row.data.get("isCompactSummary")
        return is_words and bool(row.blocks) and not row.has_result

    def _has_open_call(self, index: int) -> bool:
        """Say whether a call of a row's turn, before the row, waits for its result."""
        settled: set[object] = set()
        for row in reversed(self._rows[:index]):
            if row.type == "user":
                if not row.has_result and not row.data.get("isMeta"):
                    return False
                settled.update(block.get("tool_use_id") for block in row.blocks)
            elif row.type == "assistant":
                for block in row.blocks:
                    if block.get("type") == "tool_use" and block.get("id") not in settled:
                        return True
        return False

    def keeps_hidden(self, index: int) -> bool:
        """Say whether the rows before one are hidden as they are whatever follows it.

        A row that no prompt took the place of is hidden since the last row of the file,
        which will be another one.
        """
        if not self._left:
            return True
        before, row = self._rows[self._first : index], self._rows[index]
        names = {each.uuid for each in before}
        left = {uuid: at for uuid, at in self._left.items() if uuid in names}
        if self._hidden_until(before, row) != left:
            return False
        is_prompt = row.type == "user" and not row.data.get("isMeta")
        later = replace(row, at=_LATER)
        return is_prompt or max(self._hidden_until(before, later).values(), default=0) < _LATER

    def _hidden_until(self, before: list[Row], row: Row) -> dict[str, int]:
        return abandoned([*before, row], None, goes_on=self._first > 0)


def _message_of(row: Row, messages: Sequence[MessageDraft]) -> int | None:
    """Return the message that begins with a row, where no earlier one has a later record."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].source_id in (row.uuid, row.message_id):
            earlier = all(_last_record(one) < row.number for one in messages[:index])
            later = all(_first_record(one) >= row.number for one in messages[index:])
            return index if earlier and later else None
    return None


def _records(message: MessageDraft) -> list[int]:
    found = [*message.records]
    for part in message.parts:
        found += part.records
    return found


def _last_record(message: MessageDraft) -> int:
    return max(_records(message), default=-1)


def _first_record(message: MessageDraft) -> int:
    return min(_records(message), default=1 << 62)


def _context(
    transcript: Transcript, index: int, messages: Sequence[MessageDraft]
) -> set[int]:
    """Return the numbers of the records that stand for all before a row."""
    rows = transcript.rows[:index]
    found = {row.number for row in _rows_that_tell(rows)}
    found |= _rows_of_title(rows, messages)
    limit = transcript.rows[index].number
    found |= {number for number in transcript.note_records.values() if number < limit}
    found |= {number for number in transcript.summary_records if number < limit}
    found |= {number for number in _costs(transcript) if number < limit}
    leaves = {leaf for leaf, _ in transcript.summaries}
    found |= {row.number for row in rows if row.uuid in leaves} if leaves else set()
    return found | _with_calls(rows, found)


def _costs(transcript: Transcript) -> Iterator[int]:
    """Yield the notes of each counter that came first, and that says most."""
    first: dict[str, int] = {}
    most: dict[str, CostNote] = {}
    for note in transcript.costs:
        first.setdefault(note.counter, note.number)
        if note.counter not in most or note.usd > most[note.counter].usd:
            most[note.counter] = note
    yield from first.values()
    yield from (note.number for note in most.values())


def _rows_that_tell(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows that say what holds for later ones, or for the session."""
    yield rows[0]
    yield rows[-1]
    yield min(rows, key=_AT)
    yield max(rows, key=_AT)
    yield from _first(row for row in rows if isinstance(row.data.get("cwd"), str))
    for key in ("gitBranch", "version", "effort"):
        yield from _first(row for row in reversed(rows) if row.data.get(key))
    answers = [row for row in rows if row.type == "assistant"]
    yield from answers[-1:]
    yield from _first(row for row in reversed(rows) if row.type == "user" and not row.has_result)
    yield from _first(
        row for row in reversed(answers) if row.message.get("model") not in (None, SYNTHETIC)
    )
    attached = [row for row in rows if "attachment" in row.data]
    for key in ("systemPrompt", "tools"):
        yield from _first(row for row in reversed(attached) if _snapshot(row).get(key))
    boundary = next((n for n in range(len(rows) - 1, -1, -1) if _is_boundary(rows[n])), None)
    summary = next(
        (n for n in range(len(rows) - 1, -1, -1) if rows[n].data.get("isCompactSummary")), None
    )
    if boundary is not None:
        yield rows[boundary]
    if summary is not None:
        yield rows[summary]


def _first(rows: Iterator[Row]) -> Iterator[Row]:
    found = next(rows, None)
    if found is not None:
        yield found


def _snapshot(row: Row) -> dict[str, object]:
    attachment = mapping(row.data.get("attachment"))
    return attachment if attachment.get("type") == "prompt_snapshot" else {}


def _is_boundary(row: Row) -> bool:
    return row.type == "system" and row.data.get("subtype") == "compact_boundary"


def _rows_of_title(rows: Sequence[Row], messages: Sequence[MessageDraft]) -> set[int]:
    """Return the rows of the first messages that a title may be taken from."""
    wanted: dict[str, MessageDraft] = {}
    for message in messages:
        if message.role != "user" or "hidden_at" in message.metadata:
            continue
        origin = str(message.metadata.get("origin"))
        wanted.setdefault(origin, message)
        if origin == "human" and words_of(message).strip():
            wanted["words"] = message
            break
    names = {message.source_id for message in wanted.values()}
    return {row.number for row in rows if row.uuid in names}


def _with_calls(rows: Sequence[Row], numbers: set[int]) -> set[int]:
    """Return the rows with the calls whose results stand in some rows."""
    wanted = {
        block.get("tool_use_id") for row in rows if row.number in numbers for block in row.blocks
        if block.get("type") == "tool_result"
    }  # fmt: skip
    if not wanted:
        return set()
    return {
        row.number for row in rows if row.type == "assistant"
        for block in row.blocks if block.get("id") in wanted
    }  # fmt: skip
