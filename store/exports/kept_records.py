"""Finds the original records of a message, for exports to the agent that wrote it.

An agent gets its own records back unchanged. For copies in a fork they are the records of the
original message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from store.exports.reading import SessionReading
from store.queries.originals import numbered_records
from store.text.exact_json import NotJson, decode

_SESSIONS_HELD = 4
"""Number of sessions in the cache; a fork's messages refer to a few sessions."""


class Kept(NamedTuple):
    """The records of a message.

    Attributes:
        source_id: The message's source id; None if it has none, or no records are kept.
        rows: The records that are JSON objects, in order.
    """

    source_id: str | None
    rows: list[dict[str, Any]]


class KeptRecords:
    """Finds original records by message."""

    def __init__(self, reading: SessionReading, kind: str) -> None:
        """Start with an empty cache.

        Args:
            reading: The session; only a library has original records.
            kind: The source kind whose records are wanted.
        """
        self._db, self._kind = reading.db, kind
        self._released = reading.originals
        self._records: dict[str, dict[int, bytes]] = {}

    def of(self, message_id: str) -> Kept:
        """Return the records of a message, or of its nearest original that has any."""
        return next(self.each(message_id), Kept(None, []))

    def each(self, message_id: str) -> Iterator[Kept]:
        """Yield the kept records of a message, then of its original, and so on."""
        form = self._db.form
        seen: set[str] = set()
        current: str | None = message_id if form.name == "own" else None
        while current is not None and current not in seen:
            seen.add(current)
            row = self._db.connection.execute(
                "SELECT m.session_id, r.records_json,"
                f" {form.rare_fact('m', 'source.id')}, {form.source_kind('s')},"
                f" {form.rare_fact('m', 'inherited_from')}"
                " FROM chat_messages m JOIN chat_sessions s ON s.id = m.session_id"
                " LEFT JOIN record_refs r ON r.message_id = m.id WHERE m.id = $1",
                {"1": current},
            ).fetchone()
            if row is None:
                return
            if row[1] is not None and row[3] == self._kind:
                source_id = None if row[2] is None else str(row[2])
                yield Kept(source_id, self._rows(str(row[0]), json.loads(row[1])))
            current = row[4]

    def _rows(self, session_id: str, groups: list[list[int]]) -> list[dict[str, Any]]:
        records = self._records_of(session_id)
        numbers = sorted({number for group in groups for number in group})
        rows = (_decoded(records[number]) for number in numbers if number in records)
        return [kept for row in rows if row is not None
                if (kept := self._released(row)) is not None]

    def _records_of(self, session_id: str) -> dict[int, bytes]:
        if session_id not in self._records:
            if len(self._records) == _SESSIONS_HELD:
                del self._records[next(iter(self._records))]
            self._records[session_id] = dict(numbered_records(self._db, session_id))
        return self._records[session_id]


def _decoded(record: bytes) -> dict[str, Any] | None:
    try:
        row = decode(record)
    except NotJson:
        return None  # No part was made from a damaged record either.
    return row if isinstance(row, dict) else None
