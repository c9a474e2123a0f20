"""Reads a session row by row for an export, without keeping all of it in memory.

Rows are dicts by column name, with all columns that the store has; JSON columns are decoded
and named without ``_json``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from store.conversation.outline_marks import NOT_READ, is_outline
from store.engine.connection import Cursor
from store.engine.database import Database
from store.engine.large_parts import data_columns, large_data, unmoving_on_server
from store.engine.values import text
from store.errors import Refused, no_session
from store.prices.table import PriceTable
from store.queries.context import context_ids
from store.sharing.masks import Masks, Place
from store.text.exact_json import column_value
from store.text.figures import count_of
from store.text.stored_json import as_dict

Row = dict[str, Any]
View = Literal["all", "display", "hidden", "context", "resumed"]
"""``all``: every row. ``display``: all except hidden, queued and cancelled messages.
``hidden``: the same with hidden ones. ``context``: the messages that the model would be sent
now. ``resumed``: the same, with a compaction's marker before all that it keeps, as an agent takes
what comes before its own marker for replaced."""

LARGEST_IMAGE = 2_000_000
"""Bytes of a picture; a page only names larger ones."""
_BATCH = 200
_SUFFIX = "_json"


@dataclass(slots=True)
class MessageReading:
    """One message with its parts."""

    message: Row
    parts: list[Row]

    @property
    def is_said(self) -> bool:
        """Whether it says something, and does not only count what a request spent."""
        metadata = self.message["metadata"]
        own = metadata.get("backscroll") if isinstance(metadata, dict) else None
        return bool(self.parts) or not (isinstance(own, dict) and own.get("no_answer"))


class Playing(NamedTuple):
    """How a session is played as a recording of a terminal.

    Attributes:
        columns: Of the terminal.
        rows: Of the terminal.
        longest_wait: Seconds that nothing happens, at most.
    """

    columns: int = 100
    rows: int = 30
    longest_wait: float = 2.0


@dataclass(slots=True)
class SessionReading:
    """A session that is being read.

    Attributes:
        db: The session's store.
        session: Its row.
        messages: Its messages in the order of the view; can be iterated once.
        hidden_left_out: Number of hidden messages that the view leaves out.
        queued: Number of queued messages that the view leaves out, as all but ``all`` do.
        originals: Returns what may be written of an original record, None for nothing.
        export_id: A new UUID, for formats whose files have an id of their own.
        remarks: Messages from the format's writer to the user.
        agent_id: The session's id at an agent after the export; None for formats without an
            agent, or if nothing was written.
        beside: Texts of further files of the export, by their paths from where its name is;
            known when it was written.
        playing: How a recording of it is played.
        further: Other sessions for the same file, in formats that take several.
        largest_image: Bytes of a picture that is part of a page; 0 for none.
        prices: What models cost, to estimate what the agent does not tell; None estimates nothing.
    """

    db: Database
    session: Row
    messages: Iterator[MessageReading]
    hidden_left_out: int
    queued: int
    originals: Callable[[Row], Row | None] = lambda record: record
    export_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    remarks: list[str] = field(default_factory=list)
    agent_id: str | None = None
    beside: dict[str, str] = field(default_factory=dict)
    playing: Playing = Playing()
    further: tuple[SessionReading, ...] = ()
    largest_image: int = LARGEST_IMAGE
    prices: PriceTable | None = None

    @property
    def queued_left_out(self) -> str:
        """Says that a document leaves out prompts that still wait; nothing where none does."""
        if not self.queued:
            return ""
        verb = "is" if self.queued == 1 else "are"
        return f"{count_of(self.queued, 'waiting prompt')} {verb} left out, not sent yet"


def read_session(
    db: Database, session_id: str, view: View = "all", *, in_pieces: bool = False
) -> SessionReading:
    """Return a session for reading.

    Args:
        db: The store; nothing else may use its connection until the messages are read.
        session_id: Its id.
        view: Which messages to read, and in which order.
        in_pieces: Whether large parts are read piece by piece, which takes longer and leaves
            other threads their turns.

    Raises:
        NotFound: The store has no such session.
        Refused: It is listed, and its messages are not read yet.
    """
    cursor = db.connection.execute("SELECT * FROM chat_sessions WHERE id = $1", {"1": session_id})
    found = _rows(cursor, cursor.fetchall())
    if not found:
        raise no_session(session_id)
    if is_outline(as_dict(found[0]["metadata"])):
        raise Refused(NOT_READ)
    hidden, queued = _left_out(db, session_id)
    read_parts = _parts_in_pieces if in_pieces else _parts
    messages = (_in_context(db, session_id, view, read_parts) if view in ("context", "resumed")
                else _walk(db, session_id, view, read_parts))
    left_out = hidden if view in ("display", "context", "resumed") else 0
    queued = 0 if view == "all" else queued
    return SessionReading(db, found[0], messages, left_out, queued)


def with_masks(reading: SessionReading, masks: Masks) -> SessionReading:
    """Return the same reading with the secrets in all its texts masked.

    Args:
        reading: A session, none of whose messages has been read yet.
        masks: What is masked; it counts what it has masked, and where.
    """
    masks.place = Place()
    session = _masked(reading.session, masks)
    return replace(
        reading, session=session, messages=_masked_messages(reading.messages, masks),
        originals=lambda record: reading.originals(masks.mask_json(record)))


def _masked_messages(
    messages: Iterator[MessageReading], masks: Masks
) -> Iterator[MessageReading]:
    for each in messages:
        masks.place = Place(each.message["id"])
        message, parts = _masked(each.message, masks), []
        for part in each.parts:
            masks.place = Place(each.message["id"], part["id"])
            parts.append(_masked(part, masks))
        yield MessageReading(message, parts)


_STRUCTURE = frozenset({
    "id", "session_id", "message_id", "parent_id", "parent_message_id", "role", "type",
    "tool_state",
})  # fmt: skip
"""Columns that say how rows belong together; they hold no text."""


def _masked(row: Row, masks: Masks) -> Row:
    return {
        name: value if name in _STRUCTURE else masks.mask_member(name, value)
        for name, value in row.items()
    }


def queued_messages(db: Database, session_id: str) -> list[MessageReading]:
    """Return the queued messages, oldest first."""
    cancelled, queued = db.form.cancelled("m"), db.form.queued("m")
    return list(_select(db, session_id, f"{queued} AND NOT {cancelled}", _parts))


def _left_out(db: Database, session_id: str) -> tuple[int, int]:
    form = db.form
    hidden, cancelled, queued = form.hidden_at("m"), form.cancelled("m"), form.queued("m")
    row = db.connection.execute(
        f"SELECT count(*) FILTER (WHERE {hidden} IS NOT NULL AND NOT {cancelled}),"
        f" count(*) FILTER (WHERE {queued} AND {hidden} IS NULL AND NOT {cancelled})"
        " FROM chat_messages m WHERE m.session_id = $1",
        {"1": session_id},
    ).fetchone()
    return row[0], row[1]


ReadParts = Callable[[Database, Sequence[str]], list[Row]]


def _walk(
    db: Database, session_id: str, view: View, read_parts: ReadParts
) -> Iterator[MessageReading]:
    conditions = {
        "all": "TRUE",
        "display": db.form.shown("m"),
        "hidden": f"NOT {db.form.queued('m')} AND NOT {db.form.cancelled('m')}",
    }
    return _select(db, session_id, conditions[view], read_parts)


def _select(
    db: Database, session_id: str, condition: str, read_parts: ReadParts
) -> Iterator[MessageReading]:
    cursor = db.connection.execute(
        f"SELECT m.* FROM chat_messages m WHERE m.session_id = $1 AND {condition}"
        " ORDER BY m.created_at, m.id",
        {"1": session_id},
    )
    while batch := cursor.fetchmany(_BATCH):
        yield from _with_parts(db, _rows(cursor, batch), read_parts)


def _in_context(
    db: Database, session_id: str, view: View, read_parts: ReadParts
) -> Iterator[MessageReading]:
    ids = context_ids(db, session_id, marker_first=view == "resumed")
    for start in range(0, len(ids), _BATCH):
        wanted = ids[start : start + _BATCH]
        places = ",".join("?" * len(wanted))
        cursor = db.connection.execute(
            f"SELECT * FROM chat_messages WHERE id IN ({places})", wanted
        )
        rows = {row["id"]: row for row in _rows(cursor, cursor.fetchall())}
        yield from _with_parts(
            db, [rows[name] for name in wanted if name in rows], read_parts)


def _with_parts(
    db: Database, messages: Sequence[Row], read_parts: ReadParts
) -> Iterator[MessageReading]:
    parts: dict[str, list[Row]] = {row["id"]: [] for row in messages}
    for part in read_parts(db, list(parts)):
        parts[part["message_id"]].append(part)
    for message in messages:
        yield MessageReading(message, parts[message["id"]])


def _parts(db: Database, message_ids: Sequence[str]) -> list[Row]:
    places = ",".join("?" * len(message_ids))
    cursor = db.connection.execute(
        f'SELECT * FROM chat_parts WHERE message_id IN ({places}) ORDER BY "index", id',
        message_ids,
    )
    return _rows(cursor, cursor.fetchall())


def _parts_in_pieces(db: Database, message_ids: Sequence[str]) -> list[Row]:
    parts = _parts_and_keys(db, message_ids)
    if any(part["large"] is not None for part in parts):
        with unmoving_on_server(db) as may_differ:
            if may_differ:
                parts = _parts_and_keys(db, message_ids)
            for part in parts:
                if part["large"] is not None:
                    part["data"] = large_data(db, part["large"], column_value)
    for part in parts:
        del part["large"]
    return parts


def _parts_and_keys(db: Database, message_ids: Sequence[str]) -> list[Row]:
    """Return rows of parts, with no data but a key as ``large`` where they are large."""
    places = ",".join("?" * len(message_ids))
    small, large = data_columns(db)
    columns = ", ".join(
        f"{small} AS data_json" if name == "data_json" else f'"{name}"'
        for name in db.form.columns["chat_parts"]
    )
    cursor = db.connection.execute(
        f"SELECT {columns}, {large} AS large"
        f' FROM chat_parts WHERE message_id IN ({places}) ORDER BY "index", id',
        message_ids,
    )
    return _rows(cursor, cursor.fetchall())


def _rows(cursor: Cursor, values: Sequence[Sequence[Any]]) -> list[Row]:
    names = [column[0] for column in cursor.description]
    plain = [name.removesuffix(_SUFFIX) for name in names]
    decoded = [name.endswith(_SUFFIX) for name in names]
    return [
        {
            name: column_value(text(value)) if is_json else _plain(value)
            for name, is_json, value in zip(plain, decoded, row, strict=True)
        }
        for row in values
    ]


def _plain(value: Any) -> Any:
    """Return a value that JSON supports: bytes, and what a host's server has, become text."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return text(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)
