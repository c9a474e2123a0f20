"""Reads the events of a session, each with what changed, in the words of the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from store.engine.connection import Connection
from store.engine.database import Database
from store.engine.dialect import quoted
from store.engine.event_log import KEYS, bit_of, values_of
from store.engine.values import number, number_or_none
from store.events.log import has_events
from store.events.rows import Value, exact, grown, placed

Payload = Mapping[str, str | int | float | None]
"""Changed columns by the contract's names; JSON columns as their text."""
_NOTHING: Payload = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Event:
    """A change of a session.

    Attributes:
        at: When it happened, epoch ms: by the row's own time where the event sets it, else
            when it was written. A session that was imported has the times of its messages.
        seq: Its number among the session's events.
        kind: ``session.created``, ``message.updated``, ``part.created`` and so on.
        message_id: The message that it is about, also of a part; None for the session.
        part_index: The part's position in its message; None for others, or where an event
            before the log began had it.
        payload: What the row has now in the columns that changed. Empty for deletions.
        session_id: The session.
        part_id: The part.
        logged_at: When it was written, epoch ms.
        is_whole: Whether the payload is the whole row.
    """

    at: int
    seq: int
    kind: str
    message_id: str | None
    part_index: int | None
    payload: Payload
    session_id: str = ""
    part_id: str | None = None
    logged_at: int = 0
    is_whole: bool = False
    id: int = 0


_PLACES = {table: [(bit_of(table, name), name) for name in values_of(table)] for table in KEYS}
_ALL = list(dict.fromkeys(name for places in _PLACES.values() for _, name in places))
_DATA = 1 << bit_of("chat_parts", "data_json")
_HEAD = "id, stream_id, seq, at, kind, message_id, part_id, changed, kept, insert_at, inserted"
_LIGHT = ["index", "created_at", "updated_at"]
_AT_ONCE = 50
_TEXTS = 4
"""Texts that are remembered while they grow."""
_Raw = tuple[Value, ...]


def has_events_of(db: Database, session_id: str) -> bool:
    """Return whether a store's log has events of a session."""
    return has_events(db) and db.connection.execute(
        "SELECT 1 FROM events WHERE stream_id = ? LIMIT 1", (session_id,)).fetchone() is not None


def changes_of(db: Database, session_id: str, after: int = 0) -> Iterator[Event]:
    """Yield the events of a session without payloads: when each message and part changed.

    Args:
        db: The store; without a log there are none.
        session_id: The session.
        after: The ``seq`` of the last event that is known.
    """
    return _Reader(db, _LIGHT, session_id).read(after)


def events_of(db: Database, session_id: str, after: int = 0) -> Iterator[Event]:
    """Yield the events of a session with their payloads; a text that grew is there as a whole.

    Args:
        db: The store; without a log there are none.
        session_id: The session.
        after: The ``seq`` of the last event that is known.
    """
    return _Reader(db, _ALL, session_id).read(after)


def events_of_all(db: Database, after: int = 0) -> Iterator[Event]:
    """Yield the events of all sessions in the order in which they were written.

    Args:
        db: The store; without a log there are none.
        after: The ``id`` of the last event that is known.
    """
    return _Reader(db, _ALL, None).read(after)


def newest_event(db: Database, session_id: str | None = None) -> int:
    """Return the ``id`` of the newest event, or the ``seq`` of a session's; 0 if there is none.

    Args:
        db: The store.
        session_id: The session; None for all.
    """
    if not has_events(db):
        return 0
    query, *of = ("SELECT coalesce(max(id), 0) FROM events",) if session_id is None else (
        "SELECT coalesce(max(seq), 0) FROM events WHERE stream_id = ?", session_id)
    return int(db.connection.execute(query, of).fetchone()[0])


class _Reader:
    """Reads events in their order, some at once."""

    def __init__(self, db: Database, columns: list[str], session_id: str | None) -> None:
        """Read nothing yet.

        Args:
            db: The store.
            columns: The columns that are read.
            session_id: The session; None for all.
        """
        self._db, self._columns = db, columns
        self._has_payloads = columns is _ALL
        key, of = ("id", "") if session_id is None else ("seq", "stream_id = ? AND ")
        self._parameters = () if session_id is None else (session_id,)
        self._select = (
            f"SELECT {_HEAD}, {', '.join(map(quoted, columns))} FROM events WHERE {of}{key} > ?"
            f" ORDER BY {key} LIMIT {_AT_ONCE}")
        self._key = 2 if session_id is not None else 0
        self._indexes: dict[Value, int | None] = {}
        self._texts: dict[Value, Value] = {}

    def read(self, after: int) -> Iterator[Event]:
        """Yield the events after one."""
        while has_events(self._db):
            connection = self._db.connection
            with exact(connection):
                found = connection.execute(self._select, (*self._parameters, after)).fetchall()
                events = [self._event(connection, row) for row in found]
            yield from events
            if not found:
                return
            after = found[-1][self._key]

    def _event(self, connection: Connection, row: _Raw) -> Event:
        identity, stream, seq, at, kind, message, part, changed = row[:8]
        values = dict(zip(self._columns, row[11:], strict=True))
        name = str(kind)
        gone = name.partition(".")[2] in ("deleted", "moved", "forgot")
        is_whole = changed is None and not gone
        payload = _NOTHING
        if self._has_payloads and not gone:
            if part is not None:
                values["data_json"] = self._text(connection, row, values["data_json"])
            table = _table_of(message, part)
            payload = {
                column: _plain(values[column]) for place, column in _PLACES[table]
                if (is_whole or number(changed) >> place & 1)
                and (column != "data_json" or values[column] is not None)}
        moment = values["created_at"] if is_whole else values["updated_at"]
        return Event(
            at=number(at if moment is None else moment), seq=number(seq), kind=name,
            message_id=None if message is None else str(message),
            part_index=None if part is None else self._index(connection, row, values["index"]),
            payload=payload, session_id=str(stream), part_id=None if part is None else str(part),
            logged_at=number(at), is_whole=is_whole, id=number(identity))

    def _index(self, connection: Connection, row: _Raw, index: Value) -> int | None:
        """Return the position of an event's part, which an earlier event may have."""
        part = row[6]
        if index is not None:
            self._indexes[part] = number(index)
        elif part not in self._indexes:
            found = self._before(connection, row, '"index"', '"index" IS NOT NULL')
            self._indexes[part] = number(found[0][0]) if found else None
        return self._indexes[part]

    def _text(self, connection: Connection, row: _Raw, data: Value) -> Value:
        """Return the text that an event's part has now; None where it did not change."""
        part, changed, kept = row[6], row[7], row[8]
        if changed is not None and not number(changed) & _DATA:
            return None
        if kept is not None:
            before = self._texts.get(part) or self._earlier_text(connection, row)
            if before is None:
                return None  # Events are missing.
            data = grown(before, data, *_growth(row[8:11]))
        self._texts.pop(part, None)
        self._texts[part] = data
        if len(self._texts) > _TEXTS:
            self._texts.pop(next(iter(self._texts)))
        return data

    def _earlier_text(self, connection: Connection, row: _Raw) -> Value:
        """Return the text that an event's part had before it."""
        texts = self._before(
            connection, row, "kept, insert_at, inserted, data_json",
            f"(changed IS NULL OR changed & {_DATA} <> 0)", until="kept IS NULL")
        text: Value = None
        for *growth, data in reversed(texts):
            if growth[0] is None:
                text = data
            elif text is not None:
                text = grown(text, data, *_growth(growth))
        return text

    def _before(
        self, connection: Connection, row: _Raw, columns: str, condition: str,
        until: str = "1",
    ) -> list[_Raw]:
        """Return values of earlier events of the same part, the latest first.

        Args:
            connection: The library.
            row: The event.
            columns: What is returned.
            condition: What an event must be.
            until: The condition for the last one that is returned.
        """
        cursor = connection.execute(
            f"SELECT {until}, {columns} FROM events WHERE stream_id = {placed(row[1])} AND seq < ?"
            f" AND part_id = {placed(row[6])} AND {condition} ORDER BY seq DESC",
            (row[1], row[2], row[6]))
        found = []
        for is_last, *values in cursor:
            found.append(tuple(values))
            if is_last:
                break
        return found


def _table_of(message: Value, part: Value) -> str:
    if part is not None:
        return "chat_parts"
    return "chat_sessions" if message is None else "chat_messages"


def _growth(values: Sequence[Value]) -> tuple[int, int | None, int | None]:
    kept, insert_at, inserted = values
    return number(kept), number_or_none(insert_at), number_or_none(inserted)


def _plain(value: Value) -> str | int | float | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
