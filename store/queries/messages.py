"""Messages of a session with their parts, from either end or from the middle.

Pages go by ``(created_at, id)`` over the messages; their parts are then fetched by message
id, in ``"index"`` order. Every row comes back, hidden and queued ones and unknown kinds too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from store.engine.database import Database
from store.engine.reading import PART_COLUMNS, message_columns, message_row, part_row
from store.engine.values import decoded, number
from store.errors import MOST_CHOICES, Ambiguous, Choice, NotFound, no_message
from store.rows import MessageRow, PartRow

Cursor = tuple[int, str]
"""``(created_at, id)`` of a message."""
WithParts = tuple[MessageRow, list[PartRow]]

_IDS_PER_QUERY = 500
_WORDS_SHOWN = 60
"""Characters of a message's words that tell it from others."""
LAST_CODE_POINT = "\U0010ffff"


def page(
    db: Database,
    session_id: str,
    *,
    after: Cursor | None = None,
    before: Cursor | None = None,
    around: Cursor | None = None,
    limit: int = 64,
    shown_only: bool = False,
) -> list[WithParts]:
    """Return messages with their parts, in display order; without a place, from the start.

    Args:
        db: The store.
        session_id: Whose messages.
        after: The first of the messages behind this one.
        before: The last of the messages in front of this one.
        around: This message in the middle, half of the others in front of it.
        limit: How many messages.
        shown_only: Leave out hidden, queued and cancelled ones.
    """
    rows = keys_page(
        db, session_id, after=after, before=before, around=around, limit=limit,
        shown_only=shown_only,
    )  # fmt: skip
    return with_parts(db, rows)


def keys_page(
    db: Database,
    session_id: str,
    *,
    after: Cursor | None = None,
    before: Cursor | None = None,
    around: Cursor | None = None,
    limit: int = 64,
    shown_only: bool = False,
) -> list[MessageRow]:
    """Return the messages of ``page`` without their parts.

    Args:
        db: The store.
        session_id: The session's id.
        after: Only messages after this place.
        before: Only messages before this place.
        around: The message in the middle.
        limit: How many messages at most.
        shown_only: Leave hidden and queued messages out.
    """
    if around is not None:
        behind = _walk(db, session_id, around, ">=", limit, shown_only)
        in_front = _walk(db, session_id, around, "<", limit, shown_only)
        front = min(len(in_front), max(limit // 2, limit - len(behind)))
        return in_front[len(in_front) - front :] + behind[: limit - front]
    if before is not None:
        return _walk(db, session_id, before, "<", limit, shown_only)
    return _walk(db, session_id, after, ">", limit, shown_only)


def first(db: Database, session_id: str, *, limit: int = 64) -> list[WithParts]:
    """Return the first messages with their parts.

    Args:
        db: The store.
        session_id: The session's id.
        limit: How many at most.
    """
    return with_parts(db, _walk(db, session_id, None, ">", limit, False))


def last(db: Database, session_id: str, *, limit: int = 64) -> list[WithParts]:
    """Return the last messages with their parts, in display order.

    Args:
        db: The store.
        session_id: The session's id.
        limit: How many at most.
    """
    return with_parts(db, _walk(db, session_id, None, "<", limit, False))


def walk_sql(
    db: Database, direction: str, *, placed: bool, shown_only: bool = False
) -> str:
    """Return the text of a page's query: ``$1`` session, ``$2 $3`` place, ``$4`` limit.

    Args:
        db: The store.
        direction: ``>`` or ``>=`` towards the end, ``<`` towards the start.
        placed: Whether it starts at a place; else it starts at the end of the session.
        shown_only: Leave out hidden, queued and cancelled ones.
    """
    place = f" AND (m.created_at, m.id) {direction} ($2, $3)" if placed else ""
    shown = f" AND {db.form.shown('m')}" if shown_only else ""
    order = "DESC" if direction == "<" else "ASC"
    return (
        f"SELECT {message_columns(db)} FROM chat_messages m WHERE m.session_id = $1{place}{shown}"
        f" ORDER BY m.created_at {order}, m.id {order} LIMIT $4"
    )


def _walk(
    db: Database,
    session_id: str,
    place: Cursor | None,
    direction: str,
    limit: int,
    shown_only: bool,
) -> list[MessageRow]:
    sql = walk_sql(db, direction, placed=place is not None, shown_only=shown_only)
    parameters: dict[str, Any] = {"1": session_id, "4": limit}
    if place is not None:
        parameters |= {"2": place[0], "3": place[1]}
    rows = [message_row(row) for row in db.connection.execute(sql, parameters).fetchall()]
    return rows[::-1] if direction == "<" else rows


def with_parts(db: Database, rows: Sequence[MessageRow]) -> list[WithParts]:
    """Return each message with its parts."""
    parts = parts_of(db, [row.id for row in rows])
    return [(row, parts[row.id]) for row in rows]


def parts_of(db: Database, message_ids: Sequence[str]) -> dict[str, list[PartRow]]:
    """Return the parts of each of these messages, in ``"index"`` order."""
    found: defaultdict[str, list[PartRow]] = defaultdict(list)
    for start in range(0, len(message_ids), _IDS_PER_QUERY):
        ids = message_ids[start : start + _IDS_PER_QUERY]
        parameters = {str(number): name for number, name in enumerate(ids, 1)}
        rows = db.connection.execute(parts_sql(len(ids)), parameters).fetchall()
        for row in rows:
            part = part_row(row)
            found[part.message_id].append(part)
    return {name: found[name] for name in message_ids}


def parts_sql(count: int) -> str:
    """Return the text of the query for the parts of so many messages."""
    places = ", ".join(f"${number}" for number in range(1, count + 1))
    return (
        f"SELECT {PART_COLUMNS} FROM chat_parts p WHERE p.message_id IN ({places})"
        ' ORDER BY p.message_id, p."index"'
    )


def get(db: Database, message_id: str) -> MessageRow | None:
    """Return a message by its id, or None."""
    sql = f"SELECT {message_columns(db)} FROM chat_messages m WHERE m.id = $1"
    row = db.connection.execute(sql, {"1": message_id}).fetchone()
    return None if row is None else message_row(row)


def get_part(db: Database, part_id: str) -> PartRow | None:
    """Return a part by its id, or None."""
    sql = f"SELECT {PART_COLUMNS} FROM chat_parts p WHERE p.id = $1"
    row = db.connection.execute(sql, {"1": part_id}).fetchone()
    return None if row is None else part_row(row)


def count(db: Database, session_id: str, *, shown_only: bool = False) -> int:
    """Return how many messages a session has.

    Args:
        db: The store.
        session_id: The session's id.
        shown_only: Leave hidden and queued messages out.
    """
    shown = f" AND {db.form.shown('m')}" if shown_only else ""
    sql = f"SELECT count(*) FROM chat_messages m WHERE m.session_id = $1{shown}"
    return number(db.connection.execute(sql, {"1": session_id}).fetchone()[0])


def resolve_message(db: Database, session_id: str, name: str) -> MessageRow:
    """Return the message of a session that a user names.

    Args:
        db: The store.
        session_id: Its session.
        name: Its id, its id at the source, or the beginning of one that no other shares.

    Raises:
        NotFound: No message of the session has that name.
        Ambiguous: Several have it.
    """
    if not name:
        raise NotFound("no message given; name its id, its source id, or the start of one")
    source_id = db.form.fact("m", "source.id")
    for condition in (
        "m.id = $2",
        f"{source_id} = $2",
        f"((m.id >= $2 AND m.id < $3) OR ({source_id} >= $2 AND {source_id} < $3))",
    ):
        sql = (
            f"SELECT {message_columns(db)} FROM chat_messages m"
            f" WHERE m.session_id = $1 AND {condition}"
            f" ORDER BY m.created_at DESC, m.id DESC LIMIT {MOST_CHOICES + 1}"
        )
        parameters = {"1": session_id, "2": name, "3": name + LAST_CODE_POINT}
        found = [message_row(row) for row in db.connection.execute(sql, parameters).fetchall()]
        if len(found) > 1:
            several = found[:MOST_CHOICES]
            choices = [Choice(row.id, row.created_at, (row.role, *words)) for row, words in
                       zip(several, _beginnings(db, several), strict=True)]  # fmt: skip
            raise Ambiguous(name, "messages", choices, more=len(found) > MOST_CHOICES)
        if found:
            return found[0]
    raise no_message(name, session_id)


def _beginnings(db: Database, rows: Sequence[MessageRow]) -> list[tuple[str, ...]]:
    """Return how the words of each message begin; nothing for one without words."""
    found: list[tuple[str, ...]] = []
    for _, parts in with_parts(db, rows):
        texts = (decoded(part.data_json).get("text") for part in parts)
        words = " ".join(text for text in texts if isinstance(text, str)).split()
        line = " ".join(words)[:_WORDS_SHOWN]
        found.append((line,) if line else ())
    return found
