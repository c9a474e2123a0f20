"""One session or agent file, line by line: its records, rows, notes and problems."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from store.sources.base.growing import LinesFile
from store.sources.base.json_lines import LINE_LIMIT, Record
from store.sources.base.odd_times import OddTimes
from store.sources.base.protocol import Problem
from store.sources.claude_code.costs import CostNote, cost_note
from store.sources.claude_code.queue import PromptQueue
from store.sources.claude_code.rows import Row, make_row, string

UNREAD_NOTES = (b'{"type":"api-request', b'{"type":"file-history-snapshot"')
"""Beginnings of notes that nothing here needs; the first are the largest lines there are."""

SELDOM = ("attachment", "effort", "forkedFrom", "isCompactSummary", "requestSessionId")
"""Fields that few rows have, and that hold for more than their row."""
OF_PROMPTS = ("queue-operation", "attachment")
"""Notes that say what happens to prompts that were typed ahead."""
SAME_UUID = "other content under the uuid of an earlier line; both are kept"
SAME_WORDS = "other fields under the uuid of an earlier line, which is the one that counts"
NIL_UUID = "00000000-0000-0000-0000-000000000000"


class Transcript(LinesFile):
    """What one file holds so far; appended bytes are parsed once, as they come.

    Attributes:
        rows: The rows in file order, each uuid once; among them rows made of notes that
            hold a prompt's only words.
        seldom: Those of them that have one of the fields ``SELDOM``, are of a sidechain, or are
            the program's own.
        notes: The last note of each type.
        costs: What was noted of costs, in file order.
        summaries: ``(leafUuid, summary)`` of the old summary lines.
        queue: The prompts that wait.
        leaf: The row that a last-prompt note after the last row names, else None.
        note_records: The numbers of the records that ``notes`` come from, but for those that
            say what happens to prompts.
        summary_records: The numbers of those that ``summaries`` come from.
        context_rows: How many of ``rows`` are of the context.
    """

    unread = UNREAD_NOTES

    def __init__(self, path: str, line_limit: int = LINE_LIMIT, **begin: int) -> None:
        """Start with nothing read.

        Args:
            path: The file.
            line_limit: Bytes of the longest line that is read.
            begin: Where it is read from, as in ``LinesFile``.
        """
        super().__init__(path, line_limit, **begin)
        self.note_records: dict[str, int] = {}
        self.summary_records: list[int] = []
        self.context_rows = 0
        self._busy: list[tuple[int, bool]] = []
        self._is_busy = False
        self.rows: list[Row] = []
        self.seldom: list[Row] = []
        self.notes: dict[str, dict[str, Any]] = {}
        self.costs: list[CostNote] = []
        self.summaries: list[tuple[str, str]] = []
        self.queue = PromptQueue()
        self._times = OddTimes[Row]()
        self.leaf: str | None = None
        self._uuids: dict[str, int] = {}
        self._renamed: dict[str, str] = {}
        self._doubled: list[Problem] = []

    @property
    def has_sidechains(self) -> bool:
        """Whether rows of subagents are among the rows."""
        return any(row.data.get("isSidechain") for row in self.seldom)

    @property
    def times_changed(self) -> int:
        """How many times rows that were taken before got another time."""
        return self._times.changes

    @property
    def problems(self) -> list[Problem]:
        """What could not be read, or only by repairing it."""
        return super().problems + self._doubled

    def take_context(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Take the earlier records, each with its number, that later ones are read with."""
        super().take_context(records)
        self._doubled.clear()
        self.context_rows = len(self.rows)

    def take(self, records: Iterable[Record]) -> None:
        """Make rows and notes of the next records."""
        for number, line, data, _ in records:
            self._take(self.first + number, line, data)

    @staticmethod
    def after_equal(data: dict[str, Any], records: Sequence[bytes]) -> bool | None:
        """Return that two prompts may leave the queue at one time."""
        words = data.get("content") or data.get("attachment")
        return False if data.get("type") in OF_PROMPTS and not words else None

    def is_busy_at(self, number: int) -> bool:
        """Return whether the queue of prompts had anything under way before a record."""
        place = bisect_left(self._busy, (number, False))
        return self._busy[place - 1][1] if place else False

    def stands_for(self, name: str) -> bool:
        """Return whether a row is in the context for what later records may say of it."""
        return any(name == leaf for leaf, _ in self.summaries)

    def _take(self, number: int, line: int, data: dict[str, Any]) -> None:
        row = make_row(number, data, self.rows[-1] if self.rows else None)
        if row is None:
            self._note(data, number)
        else:
            self._take_row(row, line)
        # Rows only take prompts out of the queue.
        if (row is None or self._is_busy) and self.queue.is_busy != self._is_busy:
            self._is_busy = not self._is_busy
            self._busy.append((number, self._is_busy))

    def _take_row(self, row: Row, line: int) -> None:
        place = self._uuids.setdefault(row.uuid, len(self.rows))
        if place < len(self.rows):
            earlier = self.rows[place]
            if earlier.data == row.data:
                return
            says_more = bool(row.blocks) and earlier.blocks != row.blocks
            reason = SAME_UUID if says_more else SAME_WORDS
            self._doubled.append(Problem(self.path, line, reason))
            if not says_more:
                return
            said = repr(row.blocks).encode("utf-8", "surrogatepass")
            own = f"{row.uuid}#{hashlib.sha256(said).hexdigest()[:12]}"
            if own in self._uuids:
                return
            self._uuids[own] = len(self.rows)
            self._renamed[row.uuid] = own
            if row.message_id == row.uuid:
                row.message_id = own
            row.uuid, row.parent = own, self.rows[-1].uuid
        elif row.parent is not None:
            row.parent = self._renamed.get(row.parent, row.parent)
        self.leaf = None
        self.queue.row(row)
        self._times.take(self.rows, row)
        self.add(row)

    def add(self, row: Row) -> None:
        """Add a row after the others."""
        self.rows.append(row)
        data = row.data
        if (
            not data.keys().isdisjoint(SELDOM) or row.type == "system" or data.get("isSidechain")
        ):
            self.seldom.append(row)

    def _note(self, data: dict[str, Any], record: int) -> None:
        kind = data.get("type")
        if not isinstance(kind, str):
            return
        if kind == "summary":
            leaf, summary = string(data.get("leafUuid")), string(data.get("summary"))
            if leaf and summary:
                self.summaries.append((leaf, summary))
                self.summary_records.append(record)
        elif kind == "last-prompt":
            leaf = string(data.get("leafUuid"))
            self.leaf = leaf if leaf and leaf != NIL_UUID else self.leaf
        elif kind in OF_PROMPTS:
            follow = self.queue.note if kind == "queue-operation" else self.queue.attachment
            row = follow(data, record, self.rows[-1] if self.rows else None)
            if row is not None:
                self.add(row)
        elif kind == "cost-state":
            found = cost_note(record, data)
            self.costs += [found] if found is not None else []
        self.notes[kind] = data
        if kind not in OF_PROMPTS:
            self.note_records[kind] = record
