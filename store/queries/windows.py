"""The first window of a session's transcript: some neighbouring parts with their messages.

A window costs the same wherever it lies and however long the session is: messages come
by keyset on ``(created_at, id)``, parts by ``(message_id, "index")``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from store.engine.database import Database
from store.engine.reading import PART_COLUMNS, message_columns, message_maker, part_maker
from store.queries.transcript import (
    Child,
    Outline,
    children,
    outline_facts,
    outline_maker,
    title_of,
)
from store.rows import MessageRow, PartRow


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
    return _windows(db, session_id, None, _Side(parts, "DESC"))[0]


def window_at_start(db: Database, session_id: str, parts: int = 64) -> Window:
    """Return the first parts of a session.

    Args:
        db: The store.
        session_id: The session's id.
        parts: How many parts at most.
    """
    return _windows(db, session_id, None, _Side(parts, "ASC"))[0]


def window_around(db: Database, session_id: str, message_id: str, parts: int = 64) -> Window:
    """Return parts before and after the start of a message; the end where it is unknown.

    Args:
        db: The store.
        session_id: The session's id.
        message_id: The message's id.
        parts: How many parts at most.
    """
    before, after = _windows(
        db, session_id, message_id, _Side(parts // 2, "DESC"), _Side(parts, "ASC"))
    if not after.messages:
        return window_at_end(db, session_id, parts)
    return Window(
        before.outlines + after.outlines, before.messages + after.messages,
        before.parts + after.parts, before.at_start, after.at_end,
    )


class _Side(NamedTuple):
    """What is read from one place of a session, in one direction.

    Attributes:
        wanted: How many parts at most; a message without parts counts as one.
        order: ``DESC`` goes backwards.
    """

    wanted: int
    order: Literal["ASC", "DESC"]

    @property
    def compares(self) -> str:
        """How a row compares with the place: forwards the message there is the first."""
        return "<" if self.order == "DESC" else ">="


_Line = Sequence[Any]
"""The columns of a message and of one of its parts, which are None where it has no parts."""
_MESSAGE, _FACTS, _PART = slice(0, 7), slice(7, 11), slice(11, 21)
"""Of a line: the columns of a ``MessageRow``, what else an ``Outline`` tells, and a ``PartRow``."""
_ID, _SIDE = 0, 21
_NO_PART = (None,) * 10


def _windows(
    db: Database, session_id: str, message_id: str | None, *sides: _Side
) -> list[Window]:
    """Return a window for each side.

    Args:
        db: The store.
        session_id: The session.
        message_id: The message from which they are read; None for an end of the session.
        sides: What is read.
    """
    read = _lines_of_file if db.server is None else _lines_on_server
    return [
        _window(db, side, lines, from_an_end=message_id is None)
        for side, lines in zip(sides, read(db, session_id, message_id, sides), strict=True)
    ]


def _window(db: Database, side: _Side, lines: list[_Line], *, from_an_end: bool) -> Window:
    """Return the window of some lines, one more than wanted where there are as many."""
    whole, backwards = len(lines) <= side.wanted, side.order == "DESC"
    lines = lines[: side.wanted]
    if backwards:
        lines.reverse()
    window, make = Window(), outline_maker(db)
    make_message, make_part = message_maker(db), part_maker(db)
    told: str | None = None
    about: tuple[Any, ...] = ()
    for line in lines:
        if line[_ID] != told or told is None:
            told, _, role, _, hidden_at, created_at, _ = message = line[_MESSAGE]
            window.messages.append(make_message(*message))
            about = (told, role, created_at, hidden_at, *line[_FACTS])
        part = line[_PART]
        if part[0] is None:
            window.outlines.append(make((*about, None, None, 0, None)))
            continue
        row = make_part(*part)
        window.parts.append(row)
        window.outlines.append(
            make(about + (row.index, row.type, len(row.data_json), row.tool_state)))
    window.at_start = whole if backwards else from_an_end
    window.at_end = from_an_end if backwards else whole
    return window


def _columns(db: Database) -> str:
    return f"{message_columns(db)}, {outline_facts(db)}"


def _lines_of_file(
    db: Database, session_id: str, message_id: str | None, sides: Sequence[_Side]
) -> list[list[_Line]]:
    """Return the lines of each side; no more parts are read than wanted."""
    beyond, values = "", {"1": session_id}
    if message_id is not None:
        place = db.connection.execute(
            "SELECT created_at, id FROM chat_messages WHERE id = $1 AND session_id = $2",
            {"1": message_id, "2": session_id},
        ).fetchone()
        if place is None:
            return [[] for _ in sides]
        beyond, values = "AND (m.created_at, m.id) {} ($3, $4)", {
            "1": session_id, "3": place[0], "4": place[1]}
    found: list[list[_Line]] = []
    for side in sides:
        lines: list[_Line] = []
        for message in db.connection.execute(
            f"SELECT {_columns(db)} FROM chat_messages m WHERE m.session_id = $1"
            f" {beyond.format(side.compares)}"
            f" ORDER BY m.created_at {side.order}, m.id {side.order} LIMIT $2",
            {**values, "2": side.wanted + 1},
        ).fetchall():
            parts = db.connection.execute(
                f"SELECT {PART_COLUMNS} FROM chat_parts p WHERE p.message_id = $1"
                f' ORDER BY p."index" {side.order} LIMIT $2',
                {"1": message[0], "2": side.wanted + 1 - len(lines)},
            ).fetchall()
            lines += [(*message, *part) for part in parts or (_NO_PART,)]
            if len(lines) > side.wanted:
                break
        found.append(lines)
    return found


def _lines_on_server(
    db: Database, session_id: str, message_id: str | None, sides: Sequence[_Side]
) -> list[list[_Line]]:
    """Return the lines of each side, all read by one statement."""
    values = {"1": session_id}
    if message_id is not None:
        values["2"] = message_id
    sql = db.composed(("window", *sides, message_id is not None), lambda: " UNION ALL ".join(
        _side_on_server(db, number, side, is_beyond=message_id is not None)
        for number, side in enumerate(sides)))
    lines: Sequence[_Line] = db.remote.execute(sql, values).records
    return [[line for line in lines if line[_SIDE] == number] for number in range(len(sides))]


def _side_on_server(db: Database, number: int, side: _Side, *, is_beyond: bool) -> str:
    """Return the statement for the lines of a side, which ends at the last one wanted.

    Args:
        db: The store.
        number: Of the side, its last column.
        side: What is read.
        is_beyond: Whether it is read from the message ``$2``, and not from an end.
    """
    order, limit = side.order, side.wanted + 1
    beyond = (
        f"AND (m.created_at, m.id) {side.compares} (SELECT a.created_at, a.id"
        " FROM chat_messages a WHERE a.id = $2 AND a.session_id = $1)"
    ) if is_beyond else ""
    return (
        f"(SELECT m.*, {PART_COLUMNS}, {number} FROM (SELECT {_columns(db)} FROM chat_messages m"
        f" WHERE m.session_id = $1 {beyond} ORDER BY m.created_at {order}, m.id {order}"
        f" LIMIT {limit}) m LEFT JOIN LATERAL (SELECT q.* FROM chat_parts q"
        f" WHERE q.message_id = m.id{db.form.of_session('q', 'm.session_id')}"
        f' ORDER BY q."index" {order} LIMIT {limit}) p ON TRUE'
        f' ORDER BY m.created_at {order}, m.id {order}, p."index" {order} LIMIT {limit})'
    )
