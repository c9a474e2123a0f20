"""The original records of a message, for exports to the agent that wrote it.

What an agent wrote itself goes back to it exactly; for copies in a fork the records are
those of the message they were copied from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from store.engine.database import Database
from store.queries.originals import numbered_records
from store.text.exact_json import NotJson, decode

_SESSIONS_HELD = 4
"""A fork's messages lead to a few sessions in turn; each is read once."""


class Kept(NamedTuple):
    """The records of a message.

    Attributes:
        source_id: The message's id at the source; None where it has none, or nothing is kept.
        rows: The records that are objects, in their order.
    """

    source_id: str | None
    rows: list[dict[str, Any]]


class KeptRecords:
    """Finds original records by message."""

    def __init__(self, db: Database, kind: str) -> None:
        """Start without anything read.

        Args:
            db: A store; only one of our own form keeps original records.
            kind: Of the source whose records are wanted.
        """
        self._db, self._kind = db, kind
        self._records: dict[str, dict[int, bytes]] = {}

    def of(self, message_id: str) -> Kept:
        """Return the records of a message, or of the nearest one that it is a copy of."""
        return next(self.each(message_id), Kept(None, []))

    def each(self, message_id: str) -> Iterator[Kept]:
        """Yield what is kept of a message, then of what it is a copy of, and so on."""
        form = self._db.form
        seen: set[str] = set()
        current: str | None = message_id if form.name == "own" else None
        while current is not None and current not in seen:
            seen.add(current)
            row = self._db.connection.execute(
                "SELECT m.session_id, r.records_json, json_extract(m.metadata_json, '$.source.id'),"
                f" {form.source_kind('s')}, {form.rare_fact('m', 'inherited_from')}"
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
        return [row for row in rows if row is not None]

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
        return None  # A torn record made no part either.
    return row if isinstance(row, dict) else None
