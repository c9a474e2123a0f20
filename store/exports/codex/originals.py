"""The lines that Codex itself wrote for a message; they go back to it as they were."""

from __future__ import annotations

import json
from typing import Any

from store.database import Database
from store.exports.encoding import NotJson, decode
from store.queries.originals import records_of_session

KEPT = ("response_item", "compacted")


class Originals:
    """Finds original lines by message; reads each session's records once."""

    def __init__(self, db: Database) -> None:
        """Start without anything read.

        Args:
            db: A store; only one of our own form keeps original records.
        """
        self._db = db
        self._records: dict[str, list[bytes]] = {}

    def lines(self, message_id: str) -> list[dict[str, Any]]:
        """Return the response items and compactions of a message; none where none are kept."""
        form, seen = self._db.form, set[str]()
        current: str | None = message_id if form.name == "own" else None
        while current is not None and current not in seen:
            seen.add(current)
            row = self._db.connection.execute(
                "SELECT m.session_id, r.records_json,"
                f" {form.source_kind('s')}, {form.rare_fact('m', 'inherited_from')}"
                " FROM chat_messages m JOIN chat_sessions s ON s.id = m.session_id"
                " LEFT JOIN record_refs r ON r.message_id = m.id WHERE m.id = $1",
                {"1": current},
            ).fetchone()
            if row is None:
                break
            if row[1] is not None and row[2] == "codex":
                lines = self._decoded(str(row[0]), json.loads(row[1]))
                if lines:
                    return lines
            # A copy may have no line of its own: what it was copied from has.
            current = row[3]
        return []

    def _decoded(self, session_id: str, groups: list[list[int]]) -> list[dict[str, Any]]:
        if session_id not in self._records:
            self._records[session_id] = list(records_of_session(self._db, session_id))
        records, lines = self._records[session_id], []
        for number in sorted({number for group in groups for number in group}):
            try:
                line = decode(records[number]) if number < len(records) else None
            except NotJson:
                continue  # A torn record made no part either.
            if isinstance(line, dict) and line.get("type") in KEPT:
                lines.append(line)
        return lines
