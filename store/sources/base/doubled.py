"""Tells a copy of a file that was appended to itself, as a bad merge or a sync tool leaves it.

A copy repeats all that is before it, record for record from the first one on. Single equal
lines are no copy: people say the same twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from store.sources.base.json_lines import Record

_NAMING = frozenset({
    "id", "uuid", "timestamp", "time", "ts", "created_at", "createdAt", "sessionId", "session_id",
    "startTime", "message_id", "created",
})  # fmt: skip
"""A record with one of these keys is written once; one of a file's first two must have it."""
_FEWEST = 2
"""Records that a file has at least before a copy of it can begin."""


class CopyGiven(Exception):
    """A record that was given is of a copy: the file must be read from the beginning."""


class Copies:
    """Leaves out the records of a file that are a copy of its beginning."""

    def __init__(self, raw: Sequence[bytes]) -> None:
        """Start before the first record.

        Args:
            raw: All records of the file as they are; it grows with the file.
        """
        self._raw = raw
        self._held: list[Record] = []
        self._begin = 0
        self._is_named = False
        self._given: Record | None = None

    def without(self, records: list[Record]) -> list[Record]:
        """Return those of the next records that are in no copy.

        What may be a copy is held back: when it is none, it comes with the record that tells so.

        Raises:
            CopyGiven: ``rest`` gave the beginning of a copy.
        """
        if not records:
            return records
        if records[0].number < _FEWEST and not self._is_named:
            self._is_named = any(_is_named(one.data) for one in records if one.number < _FEWEST)
        first = self._raw[0]
        if not self._is_named or not (
            self._held or any(self._raw[record.number] == first for record in records)
        ):
            return records
        found: list[Record] = []
        for record in records:
            goes_on = self._held and self._goes_on(record)
            if goes_on and self._held[0] is self._given:
                raise CopyGiven
            if self._held and not goes_on:
                found += [held for held in self._held if held is not self._given]
                self._held = []
            if self._held or self._begins(record):
                self._held.append(record)
                if record.number + 1 == 2 * self._begin:
                    self._held = []
            else:
                found.append(record)
        return found

    def rest(self) -> list[Record]:
        """Return at the end of the file what is no copy yet: one record may be said twice."""
        if len(self._held) != 1 or self._held[0] is self._given:
            return []
        self._given = self._held[0]
        return [self._given]

    def _begins(self, record: Record) -> bool:
        if record.number < _FEWEST or self._raw[record.number] != self._raw[0]:
            return False
        self._begin = record.number
        return True

    def _goes_on(self, record: Record) -> bool:
        """Return whether all since the last record that is held is as at the beginning."""
        since = self._held[-1].number + 1
        return all(
            self._raw[number] == self._raw[number - self._begin]
            for number in range(since, record.number + 1)
        )


def _is_named(data: dict[str, Any]) -> bool:
    """Return whether a record has an id or a time, itself or in what it holds."""
    return any(
        not _NAMING.isdisjoint(each) for each in (data, *data.values()) if isinstance(each, dict)
    )
