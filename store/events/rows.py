"""The rows of the three tables as the log has them: their exact values, folded event by event."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from store.engine.connection import Connection
from store.engine.dialect import quoted
from store.engine.event_log import KEYS, values_of
from store.engine.schema import REQUIRED_COLUMNS

Value = int | float | bytes | None
"""A value of SQLite; text is ``Text``, which has its bytes."""
Row = tuple[Value, ...]
TABLES = tuple(REQUIRED_COLUMNS)


class Text(bytes):
    """The bytes of a text: not all that is stored as text is UTF-8."""

    __slots__ = ()

    def __str__(self) -> str:
        """Return the text."""
        return self.decode("utf-8", "replace")


@contextlib.contextmanager
def exact(connection: Connection) -> Iterator[Connection]:
    """Let a connection return each text as ``Text`` for a while."""
    before = connection.text_factory
    connection.text_factory = Text
    try:
        yield connection
    finally:
        connection.text_factory = before


def placed(value: Value) -> str:
    """Return the placeholder that stores a value as what it was read as."""
    return "CAST(? AS TEXT)" if isinstance(value, Text) else "?"


def is_same(one: Row, other: Row) -> bool:
    """Return whether two rows have the same values of the same storage classes."""
    return one == other and [type(value) for value in one] == [type(value) for value in other]


def grown(
    text: Value, added: Value, kept: int, insert_at: int | None, inserted: int | None
) -> Text:
    """Return a text that grew out of another one.

    Args:
        text: The earlier text.
        added: What was added: first what was inserted, then the new end.
        kept: How many bytes of the earlier text stay; new bytes follow them.
        insert_at: Where among those further bytes were inserted; None for nowhere.
        inserted: How many they are.
    """
    if not isinstance(text, bytes) or not isinstance(added, bytes):
        raise ValueError("the text that grew is not in the log")
    if insert_at is None or inserted is None:
        return Text(text[:kept] + added)
    return Text(b"".join((
        text[:insert_at], added[:inserted], text[insert_at:kept], added[inserted:])))


@dataclass(slots=True)
class Folded:
    """Which events the rows of a session are made of: by row its full event and its updates."""

    session: list[int] = field(default_factory=list)
    messages: dict[bytes, list[int]] = field(default_factory=dict)
    parts: dict[bytes, list[int]] = field(default_factory=dict)

    def take(
        self, seq: int, kind: str, message: bytes | None, part: bytes | None, is_whole: bool
    ) -> None:
        """Take the next event.

        Args:
            seq: Its number.
            kind: Its kind.
            message: The id of its message.
            part: The id of its part.
            is_whole: Whether it has the whole row.
        """
        what = kind.partition(".")[2]
        if part is None and message is None:
            if what in ("created", "snapshot", "deleted"):
                # Rows that go with their session have no events.
                self.messages.clear()
                self.parts.clear()
            self.session = _with(self.session, seq, what, is_whole)
            return
        rows, key = (self.parts, part) if part is not None else (self.messages, message or b"")
        events = _with(rows.get(key, []), seq, what, is_whole)
        if events:
            rows[key] = events
        else:
            rows.pop(key, None)

    def rows(self) -> Iterator[tuple[str, list[int]]]:
        """Yield the table and the events of each row."""
        if self.session:
            yield "chat_sessions", self.session
        for events in self.messages.values():
            yield "chat_messages", events
        for events in self.parts.values():
            yield "chat_parts", events


def _with(events: list[int], seq: int, what: str, is_whole: bool) -> list[int]:
    """Return the events of a row with one more; none where the row is gone, or not known."""
    if what in ("deleted", "moved"):
        return []
    if is_whole:
        return [seq]
    if events:
        events.append(seq)
    return events


def update(
    row: list[Value], names: Sequence[str], values: Sequence[Value], changed: int,
    growth: Sequence[Any],
) -> None:
    """Put into a row what an event changed.

    Args:
        row: Its columns in the contract's order.
        names: The columns at its end that are no keys.
        values: Their values in the event.
        changed: Which of them changed, by bits from the first column of the row on.
        growth: How ``data_json`` grew: the last three arguments of ``grown``.
    """
    for position, (name, value) in enumerate(
            zip(names, values, strict=True), len(row) - len(names)):
        if changed >> position & 1:
            grows = name == "data_json" and growth[0] is not None
            row[position] = grown(row[position], value, *growth) if grows else value


def fold(connection: Connection, stream: Value, until: int | None = None) -> Folded:
    """Return which events the rows of a session are made of.

    Args:
        connection: The library, within ``exact``.
        stream: The session's id.
        until: The last event that counts; None for all.
    """
    folded = Folded()
    for seq, kind, message, part, changed in connection.execute(
        "SELECT seq, kind, message_id, part_id, changed FROM events"
        f" WHERE stream_id = {placed(stream)} AND seq <= ? ORDER BY seq",
        (stream, (1 << 62) if until is None else until),
    ):
        folded.take(seq, str(kind), message, part, changed is None)
    return folded


_COLUMNS = {
    table: ", ".join(quoted(KEYS[table].get(name, name)) for name in names)
    for table, names in REQUIRED_COLUMNS.items()
}
_VALUES = {table: ", ".join(map(quoted, values_of(table))) for table in TABLES}


def row_of(connection: Connection, stream: Value, table: str, events: list[int]) -> Row:
    """Return a row of the three tables, its columns in the contract's order.

    Args:
        connection: The library, within ``exact``.
        stream: The session's id.
        table: The row's table.
        events: Its full event and its updates.
    """
    where = f"FROM events WHERE stream_id = {placed(stream)} AND seq = ?"
    (*row,) = connection.execute(
        f"SELECT {_COLUMNS[table]} {where}", (stream, events[0])).fetchone()
    names = values_of(table)
    for seq in events[1:]:
        changed, *found = connection.execute(
            f"SELECT changed, kept, insert_at, inserted, {_VALUES[table]} {where}",
            (stream, seq)).fetchone()
        update(row, names, found[3:], changed, found[:3])
    return tuple(row)
