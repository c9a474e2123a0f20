"""What the transcript reads beside its first window: the skeleton, rows by key, matches.

The skeleton (what there is, without its content) comes in pages, so that other reads go
in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from store.engine.database import Database
from store.engine.reading import PART_COLUMNS, message_columns, message_row, part_row
from store.engine.values import number, number_or_none, text
from store.rows import MessageRow, PartRow

Keyset = tuple[int, str]
"""``(created_at, id)`` of a message."""


class Outline(NamedTuple):
    """What the skeleton keeps of one part, and of the message that holds it.

    Attributes:
        position: The part's ``"index"``; None for a message without parts.
        size: Length of ``data_json``.
    """

    message_id: str
    role: str
    created_at: int
    hidden_at: int | None
    queued_at: int | None
    cancelled_at: int | None
    inherited: int
    origin: str | None
    position: int | None
    type: str | None
    size: int
    state: str | None


class Child(NamedTuple):
    """A session that was started from this one.

    Attributes:
        message_id: The message of the call that started it; None where only the call's id
            is known, which need not be unique in the session.
    """

    id: str
    title: str | None
    tool_call_id: str | None
    kind: str | None
    message_id: str | None = None

    def is_of(self, message_id: str, call_id: str | None) -> bool:
        """Tell whether a call of a message started it."""
        named = self.message_id in (None, message_id)
        return call_id is not None and self.tool_call_id == call_id and named


def child_of(children: Iterable[Child], message_id: str, call_id: str | None) -> Child | None:
    """Return the session that a call of a message started.

    Args:
        children: The sessions that started from this one.
        message_id: The message of the tool call.
        call_id: The tool call's id.
    """
    return next((child for child in children if child.is_of(message_id, call_id)), None)


def starting_message(db: Database) -> str:
    """Return SQL for the message whose call started the session ``s``; NULL if unknown."""
    call = db.form.fact("s", "lineage.tool_call_id")
    return (
        "(SELECT p.message_id FROM chat_parts p WHERE p.message_id = s.parent_message_id"
        f" AND p.tool_call_id = {call} LIMIT 1)"
    )


def outline_columns(db: Database) -> str:
    """Return what an ``Outline`` has of its message, of the table ``chat_messages m``."""
    return (
        f"m.id AS id, m.role, m.created_at AS created_at, {db.form.hidden_at('m')} AS hidden_at,"
        f" {outline_facts(db)}"
    )


def outline_facts(db: Database) -> str:
    """Return those columns of an ``Outline`` that a message's ``metadata_json`` tells."""
    metadata, sql = "m.metadata_json", db.sql
    return (
        f"{sql.true_number(metadata, 'queued_at')} AS queued_at,"
        f" {sql.number(metadata, 'queue_canceled_at')} AS cancelled_at,"
        f" CAST({sql.is_text(metadata, 'inherited_from')} AS integer) AS inherited,"
        f" {sql.rare_fact(metadata, 'origin')} AS origin"
    )


def outline_maker(db: Database) -> Callable[[Sequence[Any]], Outline]:
    """Return what makes an ``Outline`` of the columns that SQLite gives.

    Only other programs' rows may hold values of any type.
    """
    return _outline if db.form.name == "own" else _hosts_outline


_outline: Callable[[Sequence[Any]], Outline] = partial(tuple.__new__, Outline)
"""Makes an ``Outline`` as ``_make`` does, without counting its fields."""


def _hosts_outline(row: Sequence[Any]) -> Outline:
    """Make the outline of another program's row; ``created_at`` stays, for keysets."""
    given = Outline._make(row)
    return given._replace(
        message_id=text(given.message_id) or "", role=text(given.role) or "",
        hidden_at=number_or_none(given.hidden_at), queued_at=number_or_none(given.queued_at),
        cancelled_at=number_or_none(given.cancelled_at), origin=text(given.origin),
        position=number_or_none(given.position), type=text(given.type), state=text(given.state),
    )


def outline_page(
    db: Database, session_id: str, after: Keyset | None = None, limit: int = 1000
) -> list[Outline]:
    """Return the outlines of up to ``limit`` messages that follow ``after``, in order.

    Args:
        db: The store.
        session_id: The session's id.
        after: The last message of the page before; None for the first page.
        limit: How many at most.
    """
    return outline_range(db, session_id, after, None, limit)


def outline_range(
    db: Database, session_id: str, after: Keyset | None, until: Keyset | None, limit: int
) -> list[Outline]:
    """Return the outlines of the messages that follow one, up to another one, in order.

    Args:
        db: The store.
        session_id: The session.
        after: The message before the first; None for the beginning of the session.
        until: The last message, in the list or not; None for the session's end.
        limit: At most so many messages.
    """
    beyond = "AND (m.created_at, m.id) > ($3, $4)" if after else ""
    values: dict[str, Any] = {"1": session_id, "2": limit}
    if after:
        values |= {"3": after[0], "4": after[1]}
    if until:
        beyond += " AND (m.created_at, m.id) <= ($5, $6)"
        values |= {"5": until[0], "6": until[1]}
    make = outline_maker(db)
    return [make(row) for row in db.connection.execute(
        outlines_of_messages(db, beyond), values).fetchall()]


def outlines_of_messages(db: Database, beyond: str, more: str = "") -> str:
    """Return SQL for the outlines of the first ``$2`` messages of the session ``$1``, in order.

    Args:
        db: The store.
        beyond: A further condition for the messages ``m``.
        more: Further columns of the parts ``p``.
    """
    return (
        f'SELECT o.*, p."index", p.type, coalesce(length({db.sql.text("p.data_json")}), 0),'
        f" p.tool_state{more}"
        f" FROM (SELECT {outline_columns(db)} FROM chat_messages m"
        f" WHERE m.session_id = $1 {beyond} ORDER BY m.created_at, m.id LIMIT $2) o"
        f" LEFT JOIN chat_parts p ON p.message_id = o.id{db.form.of_session('p', '$1')}"
        ' ORDER BY o.created_at, o.id, p."index"'
    )


def rows_of(
    db: Database, spans: Sequence[tuple[str, int, int]]
) -> tuple[list[MessageRow], list[PartRow]]:
    """Return rows by key.

    Args:
        db: The store.
        spans: ``(message id, first index, last index)``, both ends included.
    """
    messages: list[MessageRow] = []
    parts: list[PartRow] = []
    for message_id, low, high in spans:
        row = db.connection.execute(
            f"SELECT {message_columns(db)} FROM chat_messages m WHERE m.id = $1",
            {"1": message_id},
        ).fetchone()
        if row is None:
            continue
        messages.append(message_row(row))
        parts.extend(part_row(part) for part in db.connection.execute(
            f"SELECT {PART_COLUMNS} FROM chat_parts p WHERE p.message_id = $1"
            ' AND p."index" BETWEEN $2 AND $3 ORDER BY p."index"',
            {"1": message_id, "2": low, "3": high},
        ).fetchall())
    return messages, parts


def matches(
    db: Database, message_ids: Sequence[str], containing: str | None
) -> list[tuple[str, int, str]]:
    """Return ``(message id, index, data_json)`` of the parts of some messages.

    Args:
        db: The store.
        message_ids: At most some hundred.
        containing: ASCII letters, digits and blanks that the JSON text must hold in any
            case; None returns every part.
    """
    marks = ",".join("?" * len(message_ids))
    like, values = "", list(message_ids)
    if containing is not None:
        like = f"AND {db.sql.like(db.sql.text('data_json'), '?')}"
        values.append("%" + containing.replace("_", "\\_") + "%")
    return db.connection.execute(
        f'SELECT message_id, "index", data_json FROM chat_parts WHERE message_id IN ({marks})'
        f' {like} ORDER BY message_id, "index"', values,
    ).fetchall()


def index_of(db: Database, part_id: str) -> int | None:
    """Return the index of a part within its message, None where it is unknown."""
    row = db.connection.execute(
        'SELECT "index" FROM chat_parts WHERE id = $1', {"1": part_id}).fetchone()
    return number(row[0]) if row else None


def children(db: Database, session_id: str) -> list[Child]:
    """Return the sessions whose parent this is."""
    rows = db.connection.execute(
        f"SELECT s.id, {db.form.title('s')},"
        f" {db.form.fact('s', 'lineage.tool_call_id')}, {db.form.fact('s', 'lineage.kind')},"
        f" {starting_message(db)}"
        " FROM chat_sessions s WHERE s.parent_id = $1", {"1": session_id},
    ).fetchall()
    return [Child(text(row[0]) or "", *map(text, row[1:])) for row in rows]


def title_of(db: Database, session_id: str) -> str | None:
    """Return a session's title, None where it has none or is unknown."""
    row = db.connection.execute(
        f"SELECT {db.form.title('s')} FROM chat_sessions s WHERE s.id = $1", {"1": session_id}
    ).fetchone()
    return text(row[0]) if row else None


def last_usage(db: Database, session_id: str, look_back: int = 24) -> str | None:
    """Return ``metadata_json`` of the newest visible message that carries a usage.

    What was used beside the conversation (``no_answer``) says nothing of its size.

    Args:
        db: The store.
        session_id: The session's id.
        look_back: How many messages are looked at.
    """
    rows = db.connection.execute(
        f"SELECT m.metadata_json, {db.form.hidden_at('m')} FROM chat_messages m"
        " WHERE m.session_id = $1 AND m.role = 'assistant'"
        " ORDER BY m.created_at DESC, m.id DESC LIMIT $2", {"1": session_id, "2": look_back},
    ).fetchall()
    return next(
        (found for value, hidden in rows
         if not hidden and '"usage"' in (found := text(value) or "")
         and '"no_answer":true' not in found), None
    )  # fmt: skip


class Extent(NamedTuple):
    """Moves whenever rows of a session come, go, hide or change.

    Attributes:
        touched: The newest ``updated_at`` of its rows, epoch ms.
        noted: In a library, the session's newest entry in ``changes``.
    """

    messages: int
    parts: int
    touched: int
    noted: int


def extent(db: Database, session_id: str) -> Extent:
    """Return how much a session holds and when a row of it was last written."""
    def one(sql: str) -> Any:
        return db.connection.execute(sql, {"1": session_id}).fetchone()

    messages, message_at = one(
        "SELECT count(*), max(updated_at) FROM chat_messages WHERE session_id = $1")
    (parts,) = one("SELECT count(*) FROM chat_parts WHERE session_id = $1")
    (part_at,) = one("SELECT max(updated_at) FROM chat_parts WHERE session_id = $1")
    (session_at,) = one("SELECT max(updated_at) FROM chat_sessions WHERE id = $1")
    noted = 0
    if db.form.name == "own":
        (noted,) = one("SELECT coalesce(max(seq), 0) FROM changes WHERE session_id = $1")
    touched = max(number(at) for at in (message_at, part_at, session_at))
    return Extent(messages, parts, touched, noted)
