"""A session that is made of rows: its original records, and what is damaged in it."""

from __future__ import annotations

from typing import Any

from store.sources.base.databases import decoded, record_bytes
from store.sources.base.protocol import Problem
from store.sources.base.repeats import equal_earlier, places_without_repeats
from store.sources.base.row_reader import Row


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


def without_repeats(rows: list[Row]) -> list[Row]:
    """Return rows without those that were copied under new ids, as two merged databases have.

    Args:
        rows: Rows of one session in order; their column ``id`` numbers them.
    """
    bare = [{name: value for name, value in row.items() if name != "id"} for row in rows]
    alike = equal_earlier(tuple(one.values()) for one in bare)
    if not alike:
        return rows
    raw = [record_bytes(one) for one in bare]
    return [rows[place] for place in places_without_repeats(bare, raw, alike)]
