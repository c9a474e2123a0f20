"""A session that is made of rows: its original records, and what is damaged in it."""

from __future__ import annotations

from typing import Any

from store.sources.base.databases import decoded, record_bytes
from store.sources.base.protocol import Problem


class RowSession:
    """The rows of one session, kept as records, each with a number."""

    def __init__(self, session_id: str, path: str) -> None:
        """Start with no rows.

        Args:
            session_id: The session's id at the source.
            path: The database, for problems.
        """
        self.id, self.path = session_id, path
        self.records: list[bytes] = []
        self.problems: list[Problem] = []

    def keep(self, table: str, row: dict[str, Any]) -> int:
        """Keep an original row; return its number."""
        self.records.append(record_bytes({"table": table, **row}))
        return len(self.records) - 1

    def complain(self, reason: str) -> None:
        """Note what is damaged in the session."""
        self.problems.append(Problem(self.path, 0, f"session {self.id}: {reason}"))

    def listed(self, what: str, text: object) -> list[Any] | None:
        """Return the list that a column holds as JSON; None, with a problem, for anything else.

        Args:
            what: Names the row in the problem.
            text: The column.
        """
        value = decoded(text)
        if isinstance(value, list):
            return value
        self.complain(f"{what} holds no JSON list")
        return None
