"""The content blocks of the original records that a message was made of.

What Claude Code wrote itself goes back to it exactly: blocks are taken from the kept
records, for copies in a fork from those of the message they were copied from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from store.database import Database
from store.exports.encoding import NotJson, decode
from store.queries.originals import records_of_session

Block = dict[str, Any]


class Originals:
    """Finds original records by message; reads each session's records once."""

    def __init__(self, db: Database) -> None:
        """Start without anything read.

        Args:
            db: A store; only one of our own form keeps original records.
        """
        self._db = db
        self._session = ""
        self._records: list[bytes] = []

    def rows(self, message_id: str) -> list[dict[str, Any]]:
        """Return the decoded records of a message in their order; empty where none is kept."""
        found = self._owner(message_id)
        if found is None:
            return []
        session_id, groups = found
        if session_id != self._session:
            self._session = session_id
            self._records = list(records_of_session(self._db, session_id))
        numbers = sorted({number for group in groups for number in group})
        return [row for number in numbers if (row := self._decoded(number)) is not None]

    def _decoded(self, number: int) -> dict[str, Any] | None:
        if number >= len(self._records):
            return None
        try:
            row = decode(self._records[number])
        except NotJson:
            return None  # A torn record made no block either.
        return row if isinstance(row, dict) else None

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
            if row[1] is not None and row[2] == "claude-code":
                return str(row[0]), json.loads(row[1])
            current = row[3]
        return None


def content_blocks(row: dict[str, Any]) -> Iterator[Block]:
    """Yield the content blocks of a user, assistant or queued_command record."""
    attachment = row.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        content = attachment.get("prompt")
    else:
        message = row.get("message")
        content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict))


def results(rows: list[dict[str, Any]]) -> dict[str, Block]:
    """Return the tool_result blocks of records by the id of their call."""
    found: dict[str, Block] = {}
    for row in rows:
        for block in content_blocks(row):
            call_id = block.get("tool_use_id")
            if block.get("type") == "tool_result" and isinstance(call_id, str):
                found.setdefault(call_id, block)
    return found
