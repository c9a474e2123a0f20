"""The original records of a message, for exports to the agent that wrote it.

What an agent wrote itself goes back to it exactly; for copies in a fork the records are
those of the message they were copied from.
"""

from __future__ import annotations

import json
from typing import Any

from store.database import Database
from store.exports.encoding import NotJson, decode
from store.queries.originals import records_of_session


class KeptRecords:
    """Finds original records by message; reads each session's records once."""

    def __init__(self, db: Database, kind: str) -> None:
        """Start without anything read.

        Args:
            db: A store; only one of our own form keeps original records.
            kind: Of the source whose records are wanted.
        """
        self._db, self._kind = db, kind
        self._session = ""
        self._records: list[bytes] = []

    def rows(self, message_id: str) -> tuple[str | None, list[dict[str, Any]]]:
        """Return a message's id at the source and its records in their order.

        The id is None, and there are no records, where none of this kind are kept.
        """
        found = self._owner(message_id)
        if found is None:
            return None, []
        session_id, source_id, groups = found
        if session_id != self._session:
            self._session = session_id
            self._records = list(records_of_session(self._db, session_id))
        numbers = sorted({number for group in groups for number in group})
        rows = [row for number in numbers if (row := self._decoded(number)) is not None]
        return source_id, rows

    def _decoded(self, number: int) -> dict[str, Any] | None:
        if number >= len(self._records):
            return None
        try:
            row = decode(self._records[number])
        except NotJson:
            return None  # A torn record made no part either.
        return row if isinstance(row, dict) else None

    def _owner(self, message_id: str) -> tuple[str, str, list[list[int]]] | None:
        """Return session, source id and record numbers of a message or of its original."""
        form = self._db.form
        if form.name != "own":
            return None
        seen: set[str] = set()
        current: str | None = message_id
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
                return None
            if row[1] is not None and row[3] == self._kind:
                return str(row[0]), str(row[2]), json.loads(row[1])
            current = row[4]
        return None
