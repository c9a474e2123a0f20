"""Fetches the rows of a session of the hub: all of them, or what was written since the last time.

Nothing is decoded here, so that a server's transaction is over before that begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from store.sources.base.databases import decoded
from store.sources.base.row_reader import Row, RowReader
from store.sources.base.values import mapping, string
from store.sources.hub.stored import Rows, by_message

if TYPE_CHECKING:
    from store.sources.base.servers.connection import Moment, PostgresRows

_MOST_CHANGED = 2000
"""With more rows written since, all are fetched again."""
_PARTS = (
    # Two halves with an index each: for an OR, PostgreSQL reads the whole table.
    "SELECT {parts} FROM parts WHERE session_id = $1{more} UNION ALL"
    " SELECT {of_parts} FROM messages JOIN parts ON parts.message_id = messages.id"
    " WHERE messages.session_id = $1"
    " AND (parts.session_id IS NULL OR parts.session_id <> $1){more}"
)
"""The parts of a session; ``more`` is another condition on them."""


def fetch_rows(reader: RowReader, session_id: str) -> Callable[[], Rows]:
    """Fetch a session's rows; return what decodes them.

    Args:
        reader: Runs the statements.
        session_id: The session's id at the source.
    """
    listed = reader.listed("sessions")
    session = reader.later(f"SELECT {listed} FROM sessions WHERE id = $1", session_id)
    listed = reader.listed("messages")
    messages = reader.later(f"SELECT {listed} FROM messages WHERE session_id = $1", session_id)
    sql = parts_of_session(reader)
    parts = reader.later(sql, session_id)
    return lambda: Rows(next(iter(session()), None), messages(), by_message(parts()))


def parts_of_session(reader: RowReader, more: str = "") -> str:
    """Return the statement for the parts of the session bound at 1.

    Args:
        reader: Tells the columns.
        more: Another condition on parts, which begins with AND.
    """
    parts, of_parts = reader.listed("parts"), reader.listed("parts", "parts")
    return _PARTS.format(parts=parts, of_parts=of_parts, more=more)


class Parent(NamedTuple):
    """The session that started one.

    Attributes:
        may_be_hidden: Whether this user may not see all sessions.
        call_id: The call of it that names the session it started, where one does.
    """

    is_there: bool
    may_be_hidden: bool
    call_id: str | None


def fetch_parent(reader: RowReader, session_id: str) -> Callable[[], Parent]:
    """Fetch what a session's parent says of it; return what decodes that.

    Args:
        reader: Runs the statements.
        session_id: The session's id at the source.
    """
    hidden = reader.is_narrowed("sessions")
    if "parent_id" not in reader.permitted("sessions"):
        return lambda: Parent(False, hidden, None)
    there = reader.later(
        "SELECT 1 AS found FROM sessions WHERE id ="
        " (SELECT parent_id FROM sessions WHERE id = $1)", session_id,
    )  # fmt: skip
    calls = reader.later(
        "SELECT data FROM parts WHERE session_id = (SELECT parent_id FROM sessions WHERE id = $1)"
        f" AND type = 'tool' AND {reader.contains('data', 1)} ORDER BY created_at, id", session_id,
    ) if {"data", "type", "created_at"} <= reader.readable("parts") else list[Row]  # fmt: skip

    def parent() -> Parent:
        named = (string(mapping(decoded(row["data"])).get("callID")) for row in calls())
        return Parent(bool(there()), hidden, next((one for one in named if one is not None), None))

    return parent


_NAMED = {"account": "accounts", "project": "projects", "workspace": "workspaces"}
"""What a session belongs to, and the tables that have its name."""


def fetch_names(reader: RowReader, session_id: str) -> Callable[[], dict[str, str]]:
    """Fetch the names of what a session belongs to; nothing else of these tables is asked for.

    Args:
        reader: Runs the statements.
        session_id: The session's id at the source.
    """
    known = reader.permitted("sessions")
    found = {
        what: reader.later(
            f"SELECT CAST(name AS text) AS name FROM {table} WHERE CAST(id AS text) ="
            f" (SELECT CAST({what}_id AS text) FROM sessions WHERE id = $1)", session_id)
        for what, table in _NAMED.items()
        if f"{what}_id" in known and {"id", "name"} <= reader.permitted(table)
    }

    def names() -> dict[str, str]:
        said = {what: string(row["name"]) for what, rows in found.items() for row in rows()}
        return {what: name for what, name in said.items() if name is not None}

    return names


class FollowedRows:
    """The rows of a session that grows on a server."""

    def __init__(self, session_id: str) -> None:
        """Start with nothing fetched."""
        self._id = session_id
        self._since: Moment | None = None
        self._messages: dict[str, Row] = {}
        self._parts: dict[str, Row] = {}
        self._of_messages: dict[str, list[Row]] = {}

    def fetch(self, reader: PostgresRows) -> Callable[[], Rows]:
        """Fetch what was written since the last call; return what returns all rows.

        All are fetched where rows went away, or do not name the transaction that wrote them.
        """
        versions = all(map(reader.has_versions, ("messages", "parts")))
        now, since = reader.moment() if versions else None, self._since
        if now is not None and since is not None and since.connected == now.connected:
            added = self._added(reader, since, now)
            if added is not None:
                return added
        whole = fetch_rows(reader, self._id)
        self._since = None

        def rows() -> Rows:
            found = whole()
            self._messages = {str(row["id"]): row for row in found.messages}
            self._of_messages = found.parts
            self._parts = {
                str(row["id"]): row for parts in found.parts.values() for row in parts
            }
            self._since = now
            return found

        return rows

    def _added(
        self, reader: PostgresRows, since: Moment, now: Moment
    ) -> Callable[[], Rows] | None:
        """Fetch what was written since; None where that does not tell all rows."""
        listed = reader.listed("messages")
        newer = f" AND {reader.written_since(2)}"
        of_parts = f" AND {reader.written_since(2, 'parts')}"
        messages = f"SELECT {listed} FROM messages WHERE session_id = $1"
        changed = []
        for known, sql, recent in (
            (self._messages, messages, messages + newer),
            (self._parts, parts_of_session(reader), parts_of_session(reader, of_parts)),
        ):
            (counted,) = reader.rows(f"SELECT count(*) AS count FROM ({sql}) AS q", self._id)
            found = reader.rows(f"{recent} LIMIT {_MOST_CHANGED}", self._id, since.oldest)
            rows = {str(row["id"]): row for row in found}
            if len(found) == _MOST_CHANGED or counted["count"] != (
                len(known) + len(rows.keys() - known.keys())
            ):
                return None
            changed.append(rows)
        listed = reader.listed("sessions")
        session = reader.later(f"SELECT {listed} FROM sessions WHERE id = $1", self._id)

        def rows_now() -> Rows:
            self._messages |= changed[0]
            self._take_parts(changed[1])
            self._since = now
            found = next(iter(session()), None)
            return Rows(found, list(self._messages.values()), self._of_messages)

        return rows_now

    def _take_parts(self, changed: dict[str, Row]) -> None:
        """Put rows of parts, by id, into the lists of their messages; others stay as they are."""
        before = by_message(self._parts[name] for name in changed if name in self._parts)
        now = by_message(changed.values())
        for message in before.keys() | now.keys():
            others = (
                row for row in self._of_messages.pop(message, ()) if str(row["id"]) not in changed
            )
            rows = [*others, *now.get(message, ())]
            if rows:
                self._of_messages[message] = rows
        self._parts |= changed
