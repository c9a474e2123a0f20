"""Which tables of a database hold sessions of the OpenAI Agents SDK.

The program may have given its two tables other names, so they are known by their columns. One
file may have several such pairs.
"""

from __future__ import annotations

from typing import NamedTuple

from store.engine.dialect import quoted
from store.sources.base.row_reader import Row, RowReader

_MESSAGES = frozenset({"id", "session_id", "message_data", "created_at"})
_SESSIONS = frozenset({"session_id", "created_at", "updated_at"})
_STRUCTURE = frozenset({"id", "session_id", "message_id", "branch_id", "sequence_number"})
_USUAL = "agent_messages"
_MOST_TABLES = 500


class Tables(NamedTuple):
    """Two tables that belong together.

    Attributes:
        messages: The table with a row for each item.
        sessions: The table with a row for each session; None where there is none.
        branched: Whether ``message_structure`` refers to them.
    """

    messages: str
    sessions: str | None
    branched: bool


def tables_in(reader: RowReader) -> list[Tables]:
    """Return the pairs of tables in a database, the one with the usual names first."""
    names = [str(row["name"]) for row in reader.rows(
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name <> $1, name LIMIT $2",
        _USUAL, _MOST_TABLES,
    )]  # fmt: skip
    found = [name for name in names if reader.columns(quoted(name)) >= _MESSAGES]
    if not found:
        return []
    owners = [name for name in names
              if name not in found and reader.columns(quoted(name)) >= _SESSIONS]  # fmt: skip
    branched = reader.columns("message_structure") >= _STRUCTURE
    referred = _referred(reader, "message_structure").get("message_id") if branched else None
    return [
        Tables(name, _owner(reader, name, owners), branched and referred in (None, name))
        for name in found
    ]


def _owner(reader: RowReader, messages: str, owners: list[str]) -> str | None:
    named = _referred(reader, messages).get("session_id")
    if named in owners:
        return named
    # Without a foreign key the names tell: agent_messages is of agent_sessions.
    alike = messages.replace("messages", "sessions")
    return alike if alike in owners else owners[0] if len(owners) == 1 else None


def _referred(reader: RowReader, table: str) -> dict[str, str]:
    """Return the tables that a table's columns refer to."""
    rows: list[Row] = reader.rows(f"PRAGMA foreign_key_list({quoted(table)})")
    return {str(row["from"]): str(row["table"]) for row in rows}
