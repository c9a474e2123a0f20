"""The rows of a session, of which only those that differ from the last reading are decoded.

No column tells of every change: two writes may share a millisecond, and a row that somebody
else writes keeps its ``time_updated``. So the values of each row are compared, which costs a
fraction of parsing their JSON and mapping it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.databases import decoded, record_bytes
from store.sources.base.values import mapping, ms_or_0, string
from store.sources.opencode.stored import StoredMessage, StoredPart, StoredSession, in_order

Sign = tuple[object, ...]
SECOND_TABLE = "session_message"
"""Has the messages of the second engine."""


@dataclass(slots=True, eq=False)
class StoredRow:
    """A row of ``message``, ``part`` or ``session_message``.

    Attributes:
        sign: Its values, a long text as its hash; equal signs mean an equal row.
        values: By column name, without ``data``.
        data: What the column ``data`` holds.
        record: The row as an original record.
        damage: What is wrong with it.
        made: The message that was made of it, where it alone makes one.
    """

    sign: Sign
    values: dict[str, Any]
    data: dict[str, Any]
    record: bytes
    damage: str | None
    made: StoredMessage | None = None

    @property
    def name(self) -> str:
        """Return its id."""
        return str(self.values["id"])

    @property
    def created_at(self) -> int:
        """Return ``time_created``; 0 where it is no time."""
        return ms_or_0(self.values.get("time_created"))


@dataclass(slots=True)
class _Group:
    """A message's row and those of its parts, and what they make; no row where it is missing."""

    row: StoredRow | None
    parts: list[StoredRow]
    message: StoredMessage
    records: list[bytes] = field(default_factory=list)
    first: int = -1


class KeptRows:
    """The rows of one session as of its last reading."""

    def __init__(self) -> None:
        """Start with nothing read."""
        self.decoded = 0
        """How many rows were decoded so far."""
        self._columns: dict[str, Sequence[str]] = {}
        self._rows: dict[str, dict[object, StoredRow]] = {}
        self._groups: dict[str, _Group] = {}

    def read(
        self, connection: sqlite3.Connection, table: str, query: str, session_id: str
    ) -> list[StoredRow]:
        """Return a table's rows of the session; one that is as it was is the same object.

        Args:
            connection: In a read transaction.
            table: The table.
            query: Selects all columns of its rows, with the session's id bound.
            session_id: The session.
        """
        cursor = connection.execute(query, (session_id,))
        names = [column[0] for column in cursor.description]
        same_columns = self._columns.get(table) == names
        before = self._rows.get(table, {}) if same_columns else {}
        id_at, data_at = names.index("id"), names.index("data") if "data" in names else None
        now: dict[object, StoredRow] = {}
        found: list[StoredRow] = []
        for values in cursor:
            sign: Sign = values
            if data_at is not None and isinstance(values[data_at], str):
                sign = (*values[:data_at], hash(values[data_at]), *values[data_at + 1 :])
            row = before.get(values[id_at])
            if row is None or row.sign != sign:
                row = self._decode(table, dict(zip(names, values, strict=True)), sign)
            now[values[id_at]] = row
            found.append(row)
        self._columns[table], self._rows[table] = names, now
        return found

    def _decode(self, table: str, values: dict[str, Any], sign: Sign) -> StoredRow:
        self.decoded += 1
        raw, damage = values.get("data"), None
        data = decoded(raw)
        if not isinstance(data, dict):
            text = data if table == SECOND_TABLE else raw
            data = {"unreadable": string(text) or ""}
            damage = f"{table} {values.get('id')} holds no JSON object"
        record = record_bytes({"table": table, **values, "data": data})
        values.pop("data", None)
        return StoredRow(sign, values, data, record, damage)

    def messages(
        self, stored: StoredSession, messages: list[StoredRow], parts: list[StoredRow]
    ) -> None:
        """Give a session its messages with their parts, in order.

        Parts whose message is missing are in one of their own.

        Args:
            stored: The session; it has no messages yet.
            messages: Its rows of ``message``.
            parts: Its rows of ``part``.
        """
        rows: dict[str, StoredRow | None] = {}
        groups: dict[str, list[StoredRow]] = {}
        for row in messages:
            if row.damage is not None:
                stored.complain(row.damage)
            rows[row.name], groups[row.name] = row, []
        for part in parts:
            name = str(part.values.get("message_id"))
            if name not in rows:
                stored.complain(f"part {part.name} belongs to message {name}, which is missing")
                rows[name], groups[name] = None, []
            if part.damage is not None:
                stored.complain(part.damage)
            groups[name].append(part)
        found = {name: self._group(name, row, groups[name]) for name, row in rows.items()}
        self._groups = found
        made = [group.message for group in found.values()]
        stored.messages = in_order(made, lambda one: one.id, lambda one: one.created_at)
        for message in stored.messages:
            found[message.id].first = _numbered(found[message.id], stored)

    def _group(self, name: str, row: StoredRow | None, parts: list[StoredRow]) -> _Group:
        before = self._groups.get(name)
        if before is not None and before.row is row and before.parts == parts:
            return before
        if row is not None:
            at = row.created_at or ms_or_0(mapping(row.data.get("time")).get("created"))
            updated = ms_or_0(row.values.get("time_updated")) or at
            message = StoredMessage(name, row.data, at, updated)
        else:
            at = parts[0].created_at
            message = StoredMessage(name, {}, at, at)
        ordered = in_order(parts, lambda part: part.name, lambda part: 0)
        message.parts = [_part(part) for part in ordered]
        records = [] if row is None else [row.record]
        return _Group(row, parts, message, records + [part.record for part in ordered])


def _part(row: StoredRow) -> StoredPart:
    at = row.created_at
    return StoredPart(row.name, row.data, at, ms_or_0(row.values.get("time_updated")) or at, -1)


def _numbered(group: _Group, stored: StoredSession) -> int:
    """Keep the records of a message and its parts; return the number of the first."""
    first = len(stored.records)
    stored.records += group.records
    if first != group.first:
        message, own = group.message, group.row is not None
        message.records = (first,) if own else ()
        for number, part in enumerate(message.parts, first + own):
            part.record = number
    return first
