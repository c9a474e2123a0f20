"""The rows that opencode itself wrote for a message, from the original records."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from store.database import Database
from store.exports.encoding import NotJson, decode
from store.queries.originals import records_of_session

Data = dict[str, Any]


@dataclass(slots=True)
class Original:
    """A message as opencode has it.

    Attributes:
        id: Its id there.
        info: ``role``, ``time`` and the rest, without ids.
        parts: Its parts in order, without ids.
    """

    id: str
    info: Data
    parts: list[Data] = field(default_factory=list)


class Originals:
    """Finds the original of a message or of what it is a copy of; reads each session once."""

    def __init__(self, db: Database) -> None:
        """Start without anything read.

        Args:
            db: A store; only one of our own form keeps original records.
        """
        self._db = db
        self._session = ""
        self._records: list[bytes] = []

    def of(self, message_id: str) -> Original | None:
        """Return the original; None where it came from elsewhere or was not kept."""
        found = self._owner(message_id)
        if found is None:
            return None
        session_id, groups = found
        if session_id != self._session:
            self._session = session_id
            self._records = list(records_of_session(self._db, session_id))
        original: Original | None = None
        parts = []
        for number in sorted({number for group in groups for number in group}):
            kind, row = _classified(self._decoded(number))
            if kind == "message":
                original = Original(str(row.pop("id", "")), _without_ids(row))
            elif kind == "part":
                parts.append(_without_ids(row))
        if original is None or original.info.get("role") not in ("user", "assistant"):
            return None
        original.parts = [part for part in parts if part.get("type")]
        return original

    def _decoded(self, number: int) -> Any:
        if number >= len(self._records):
            return None
        try:
            return decode(self._records[number])
        except NotJson:
            return None

    def _owner(self, message_id: str) -> tuple[str, list[list[int]]] | None:
        """Return the session and record numbers of a message or of what it is a copy of."""
        if self._db.form.name != "own":
            return None
        form = self._db.form
        seen: set[str] = set()
        current: str | None = message_id
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
                return None
            if row[1] is not None and row[2] == "opencode":
                return str(row[0]), json.loads(row[1])
            current = row[3]
        return None


def _classified(row: Any) -> tuple[str, Data]:
    """Return what a record is: a row of a database, or an object of a file."""
    if not isinstance(row, dict):
        return "", {}
    table = row.get("table")
    if table in ("message", "part") and isinstance(row.get("data"), dict):
        return str(table), {**row["data"], "id": row.get("id")}
    if table is not None:
        return "", {}
    if "messageID" in row:
        return "part", dict(row)
    return ("message", dict(row)) if "role" in row else ("", {})


def _without_ids(row: Data) -> Data:
    return {key: row[key] for key in row if key not in ("id", "sessionID", "messageID")}
