"""A session of the hub as its rows are, before it is mapped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.databases import decoded, record_bytes
from store.sources.base.drafts import MessageDraft
from store.sources.base.ordering import in_order
from store.sources.base.protocol import Problem
from store.sources.base.row_reader import Row
from store.sources.base.values import mapping, ms_or_0, string, utc_ms

_NO_PARTS: list[Row] = []
"""The rows of a message's parts where it has none."""


@dataclass(slots=True)
class StoredPart:
    """One row of ``parts``.

    Attributes:
        data: The decoded column.
        created_at: Epoch ms.
        record: Number of its original record.
        row: The row as it was fetched.
    """

    id: str
    type: str
    data: dict[str, Any]
    created_at: int
    updated_at: int
    record: int = -1
    row: Row = field(default_factory=dict)


@dataclass(slots=True)
class StoredMessage:
    """One row of ``messages``, with its parts in order; ``row`` is None where it has none."""

    id: str
    role: str
    data: dict[str, Any]
    created_at: int
    updated_at: int
    records: tuple[int, ...] = ()
    parts: list[StoredPart] = field(default_factory=list)
    row: Row | None = None


@dataclass(slots=True)
class StoredSession:
    """One row of ``sessions``, and all that belongs to it.

    Attributes:
        row: The row, JSON columns decoded.
        records: The original rows, as JSON.
    """

    id: str
    row: Row
    path: str
    messages: list[StoredMessage] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def complain(self, reason: str) -> None:
        """Note what is damaged in the session."""
        self.problems.append(Problem(self.path, 0, f"session {self.id}: {reason}"))


@dataclass(slots=True)
class Rows:
    """The rows of a session, as they were fetched.

    Attributes:
        session: None where it is not there any more.
        parts: By the id of their message; a list is another one where a row of it is.
    """

    session: Row | None
    messages: list[Row]
    parts: dict[str, list[Row]]


def by_message(parts: Iterable[Row]) -> dict[str, list[Row]]:
    """Return rows of parts by the id of their message."""
    found: dict[str, list[Row]] = {}
    for row in parts:
        found.setdefault(str(row.get("message_id")), []).append(row)
    return found


@dataclass(slots=True)
class TakenMessage:
    """A message as it was made of its rows.

    Attributes:
        rows: The rows of its parts.
        records: The original records of the message, where it has a row, and of its parts.
    """

    message: StoredMessage
    rows: list[Row]
    records: list[bytes]


class Memo:
    """What was made of rows and may be taken again, as long as they are the same objects.

    Attributes:
        messages: By id, those that are not damaged.
        drafts: By the id of the message: the message that a draft was made from, the number of
            its first record, and the draft.
    """

    def __init__(self) -> None:
        """Start with nothing made."""
        self.messages: dict[str, TakenMessage] = {}
        self.drafts: dict[str, tuple[StoredMessage, int, MessageDraft]] = {}
        self._parts: dict[str, StoredPart] = {}
        self._rows: dict[tuple[str, str], tuple[Row, dict[str, Any] | None, bytes]] = {}

    def part(self, row: Row) -> StoredPart | None:
        """Return the part that was made of a row, None where it was damaged."""
        known = self._parts.get(str(row["id"]))
        return known if known is not None and known.row is row else None

    def keep(self, part: StoredPart) -> StoredPart:
        """Keep a part as it was made of its row, and return it."""
        if "unreadable" not in part.data:
            self._parts[part.id] = part
        return part

    def of(self, table: str, row: Row) -> tuple[dict[str, Any] | None, bytes]:
        """Return a row's ``data``, None where that is no object, and its original record."""
        name = table, str(row["id"])
        known = self._rows.get(name)
        if known is None or known[0] is not row:
            data = decoded(row.get("data"))
            found = data if isinstance(data, dict) else None
            kept = found if found is not None else {"unreadable": row.get("data")}
            known = row, found, record_bytes({"table": table, **row, "data": kept})
            self._rows[name] = known
        return known[1], known[2]


def stored_session(session_id: str, rows: Rows, path: str, memo: Memo) -> StoredSession | None:
    """Return a session of its rows; None when it is not there any more.

    Args:
        session_id: The session's id at the source.
        rows: Its rows.
        path: The database, for problems.
        memo: What was made of the same rows before.
    """
    if rows.session is None:
        return None
    row = {**rows.session, **{key: decoded(rows.session.get(key)) for key in ("metadata", "data")}}
    stored = StoredSession(session_id, row, path)
    stored.records.append(record_bytes({"table": "sessions", **row}))
    _take_rows(stored, rows, memo)
    return stored


def _take_rows(stored: StoredSession, rows: Rows, memo: Memo) -> None:
    """Put messages and parts in order; parts without a message are in one of their own."""
    own: dict[str, Row | None] = {str(row["id"]): row for row in rows.messages}
    own |= dict.fromkeys(rows.parts.keys() - own.keys())
    taken = [
        _taken(stored, name, row, rows.parts.get(name, _NO_PARTS), memo)
        for name, row in own.items()
    ]
    for one in in_order(taken, lambda t: t.message.id, lambda t: t.message.created_at):
        _number(one, len(stored.records))
        stored.messages.append(one.message)
        stored.records += one.records


def _taken(
    stored: StoredSession, message_id: str, row: Row | None, rows: list[Row], memo: Memo
) -> TakenMessage:
    """Return a message with its parts in order: the one of before where its rows are the same.

    Args:
        stored: Takes what is damaged.
        message_id: The message's id.
        row: Its row, None where it is missing.
        rows: The rows of its parts.
        memo: What was made of rows before.
    """
    known = memo.messages.get(message_id)
    if known is not None and known.message.row is row and known.rows is rows:
        return known
    damages = len(stored.problems)
    if row is not None:
        message = _message(stored, row, memo)
    else:
        at = utc_ms(rows[0].get("created_at")) or 0
        message = StoredMessage(message_id, "", {}, at, at)
        stored.complain(
            f"part {rows[0]['id']} belongs to message {message_id}, which is missing")
    parts = [_part(stored, one, memo) for one in rows]
    message.parts = in_order(parts, lambda p: p.id, lambda p: p.created_at)
    records = [memo.of("parts", part.row)[1] for part in message.parts]
    if row is not None:
        records.insert(0, memo.of("messages", row)[1])
    taken = TakenMessage(message, rows, records)
    if row is not None and len(stored.problems) == damages:
        memo.messages[message_id] = taken
    else:
        memo.messages.pop(message_id, None)
    return taken


def _number(taken: TakenMessage, first: int) -> None:
    """Number the records of a message and its parts."""
    message = taken.message
    if message.records == (first,):
        return
    if message.row is not None:
        message.records = (first,)
        first += 1
    for number, part in enumerate(message.parts, first):
        part.record = number


def _message(stored: StoredSession, row: Row, memo: Memo) -> StoredMessage:
    data = _object(stored, "message", row, memo)
    at = utc_ms(row.get("created_at")) or ms_or_0(mapping(data.get("time")).get("created"))
    role = string(row.get("role")) or ""
    return StoredMessage(
        str(row["id"]), role, data, at, utc_ms(row.get("updated_at")) or at, row=row
    )


def _part(stored: StoredSession, row: Row, memo: Memo) -> StoredPart:
    known = memo.part(row)
    if known is not None:
        return known
    at = utc_ms(row.get("created_at")) or 0
    data, kind = _object(stored, "part", row, memo), string(row.get("type")) or "part"
    ended = utc_ms(row.get("updated_at")) or at
    return memo.keep(StoredPart(str(row["id"]), kind, data, at, ended, row=row))


def _object(stored: StoredSession, what: str, row: Row, memo: Memo) -> dict[str, Any]:
    data, _ = memo.of(f"{what}s", row)
    if data is not None:
        return data
    stored.complain(f"{what} {row.get('id')} holds no JSON object")
    return {"unreadable": row.get("data")}
