"""The first window of a session's transcript: some neighbouring parts with their messages.

A window costs the same wherever it lies and however long the session is: messages come
by keyset on ``(created_at, id)``, parts by ``(message_id, "index")``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.engine.database import Database
from store.engine.reading import PART_COLUMNS, message_columns, message_row, part_row
from store.queries.transcript import (
    Child,
    Keyset,
    Outline,
    children,
    outline_columns,
    outline_maker,
    title_of,
)
from store.rows import MessageRow, PartRow
from store.text.stored_json import array_of


@dataclass(slots=True)
class Opening:
    """What the first paint of a session needs, read in one go."""

    window: Window
    children: list[Child]
    parent_title: str | None


@dataclass(slots=True)
class Window:
    """Some neighbouring parts with their messages, in display order.

    Attributes:
        at_start: Nothing lies before it.
        at_end: Nothing lies after it.
    """

    outlines: list[Outline] = field(default_factory=list)
    messages: list[MessageRow] = field(default_factory=list)
    parts: list[PartRow] = field(default_factory=list)
    at_start: bool = True
    at_end: bool = True


def opening(
    db: Database, session_id: str, parent_id: str | None, around: str | None, *, at_end: bool
) -> Opening:
    """Return the first window of a session, its children, and its parent's title.

    Args:
        db: The store.
        session_id: The session.
        parent_id: Its parent, if it has one.
        around: The message where the reader stood; None for an end of the session.
        at_end: Which end.
    """
    if around is not None:
        window = window_around(db, session_id, around)
    else:
        window = (window_at_end if at_end else window_at_start)(db, session_id)
    title = title_of(db, parent_id) if parent_id is not None else None
    return Opening(window, children(db, session_id), title)


def window_at_end(db: Database, session_id: str, parts: int = 64) -> Window:
    """Return the last parts of a session.

    Args:
        db: The store.
        session_id: The session's id.
        parts: How many parts at most.
    """
    return _collect(db, session_id, None, parts, backwards=True)


def window_at_start(db: Database, session_id: str, parts: int = 64) -> Window:
    """Return the first parts of a session.

    Args:
        db: The store.
        session_id: The session's id.
        parts: How many parts at most.
    """
    return _collect(db, session_id, None, parts, backwards=False)


def window_around(db: Database, session_id: str, message_id: str, parts: int = 64) -> Window:
    """Return parts before and after the start of a message; the end where it is unknown.

    Args:
        db: The store.
        session_id: The session's id.
        message_id: The message's id.
        parts: How many parts at most.
    """
    found = db.connection.execute(
        "SELECT created_at, id FROM chat_messages WHERE id = $1 AND session_id = $2",
        {"1": message_id, "2": session_id},
    ).fetchone()
    if found is None:
        return window_at_end(db, session_id, parts)
    before = _collect(db, session_id, (found[0], found[1]), parts // 2, backwards=True)
    after = _collect(db, session_id, (found[0], found[1]), parts, backwards=False)
    return Window(
        before.outlines + after.outlines, before.messages + after.messages,
        before.parts + after.parts, before.at_start, after.at_end,
    )


def _collect(
    db: Database, session_id: str, start: Keyset | None, wanted: int, *, backwards: bool
) -> Window:
    """Gather whole messages (the last one perhaps in part) until enough parts are there.

    Going on from ``start``: backwards it is left out, forwards it is the first.
    """
    order = "DESC" if backwards else "ASC"
    beyond = ""
    values: dict[str, Any] = {"1": session_id, "2": wanted + 1}
    if start is not None:
        beyond = f"AND (m.created_at, m.id) {'<' if backwards else '>='} ($3, $4)"
        values |= {"3": start[0], "4": start[1]}
    columns = f"{message_columns(db)}, {outline_columns(db)}"
    rows = db.connection.execute(
        f"SELECT {columns} FROM chat_messages m WHERE m.session_id = $1 {beyond}"
        f" ORDER BY m.created_at {order}, m.id {order} LIMIT $2", values,
    ).fetchall()
    window, whole, count, make = Window(), True, 0, outline_maker(db)
    groups: list[tuple[MessageRow, tuple[Any, ...], list[PartRow]]] = []
    ahead: dict[str, list[PartRow]] = {}
    for place, row in enumerate(rows[:wanted]):
        if db.server is None:
            parts = _parts(db, row[0], wanted - count + 1, order)
        else:
            if row[0] not in ahead:
                ids = [each[0] for each in rows[place : place + _AHEAD]]
                ahead = _parts_of(db, ids, wanted - count + 1, order)
            parts = ahead[row[0]][: wanted - count + 1]
        if len(parts) > wanted - count:
            parts, whole = parts[:-1], False
        groups.append((message_row(row[:7]), row[7:], parts[::-1] if backwards else parts))
        count += max(1, len(parts))
        if count >= wanted:
            break
    complete = whole and len(groups) == len(rows)
    for message, outline, parts in reversed(groups) if backwards else groups:
        window.messages.append(message)
        window.parts.extend(parts)
        window.outlines.extend(
            make((*outline, part.index, part.type, len(part.data_json), part.tool_state))
            for part in parts
        )
        if not parts:
            window.outlines.append(make((*outline, None, None, 0, None)))
    window.at_start = complete if backwards else start is None
    window.at_end = start is None if backwards else complete
    return window


_AHEAD = 16
"""Messages whose parts are asked for at once on a server, where each statement is a round trip."""


def _parts_of(
    db: Database, message_ids: list[str], limit: int, order: str
) -> dict[str, list[PartRow]]:
    """Return the same of several messages.

    Args:
        db: The store, on a server.
        message_ids: The messages.
        limit: Of the parts of each.
        order: ``ASC`` or ``DESC``.
    """
    found: dict[str, list[PartRow]] = {each: [] for each in message_ids}
    for row in db.connection.execute(
        f"SELECT {PART_COLUMNS} FROM {db.sql.texts('$1', 'ids')} JOIN LATERAL"
        " (SELECT q.* FROM chat_parts q WHERE q.message_id = ids.value"
        f' ORDER BY q."index" {order} LIMIT $2) p ON TRUE ORDER BY ids.key, p."index" {order}',
        {"1": array_of(message_ids), "2": limit},
    ).fetchall():
        part = part_row(row)
        found[part.message_id].append(part)
    return found


def _parts(db: Database, message_id: str, limit: int, order: str) -> list[PartRow]:
    rows = db.connection.execute(
        f"SELECT {PART_COLUMNS} FROM chat_parts p WHERE p.message_id = $1"
        f' ORDER BY p."index" {order} LIMIT $2', {"1": message_id, "2": limit},
    ).fetchall()
    return [part_row(row) for row in rows]
