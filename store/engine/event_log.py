"""The tables of the event log, and the triggers that write them.

Triggers write the log, so an event is in the transaction of its change, whoever writes. They use
nothing but what SQLite brings along: any program may write to a library. Values are copied as they
are, with their storage class and bytes; nothing goes through a JSON function.
``store.engine.server.event_log`` is the same on PostgreSQL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from store.engine.connection import Connection
from store.engine.dialect import quoted
from store.engine.schema import REQUIRED_COLUMNS, statements
from store.engine.transactions import transaction

VERSION = 1
"""Of the log's format, stored in ``event_log``; a newer one is not read."""


class EventTables(ABC):
    """The tables and triggers of a store's event log, on either engine.

    Attributes:
        part_key: A column of ``chat_parts`` that tells its rows apart and orders them.
        first_key: Below the ``part_key`` of every row.
    """

    part_key: str
    first_key: int | str

    def __init__(self, connection: Connection) -> None:
        """Take the store's connection."""
        self._connection = connection

    @abstractmethod
    def stored(self, expression: str, column: str) -> str:
        """Return the SQL of a value as an event stores it.

        Args:
            expression: The value in a row.
            column: Its column in one of the three tables.
        """

    @abstractmethod
    def has(self, table: str) -> bool:
        """Return whether ``events`` or ``event_log`` is there."""

    def forbidden_schema(self) -> str | None:
        """Return the schema, for SQL, of a log that may not be read; None if it may, or is none."""
        return None

    @abstractmethod
    def create(self) -> None:
        """Create the tables that are missing."""

    def missing(self) -> list[str]:
        """Return the triggers that are missing, switched off, or not those of this version."""
        there = self._there()
        return [name for name, text in self._wanted().items() if there.get(name) != text]

    @abstractmethod
    def put(self) -> None:
        """Create the triggers anew."""

    @abstractmethod
    def drop(self) -> None:
        """Drop the triggers, whatever version of Backscroll made them."""

    @abstractmethod
    def drop_tables(self) -> None:
        """Drop the tables with all events."""

    def renew(self) -> bool:
        """Replace the triggers of older versions; return whether there were any.

        Nothing is replaced where a trigger is missing, as events may be missing too: the doctor
        mends that. On a server only the owner of the functions replaces them; until then the older
        ones go on logging.

        Raises:
            sqlite3.Error: The store is locked or full.
        """
        if not self.has("event_log") or not self._is_old():
            return False
        with transaction(self._connection):
            if is_old := self._is_old():
                self._put_texts()
        return is_old

    def _is_old(self) -> bool:
        state = self._connection.execute("SELECT is_on, version FROM event_log").fetchone()
        if state != (1, VERSION):
            return False
        there, wanted = self._there(), self._wanted()
        return there != wanted and there.keys() >= wanted.keys() and self._may_renew()

    def _may_renew(self) -> bool:
        return True

    def _put_texts(self) -> None:
        """Give the triggers the text of this version."""
        self.put()

    @abstractmethod
    def _wanted(self) -> dict[str, str]:
        """Return the text of each trigger, by name."""

    @abstractmethod
    def _there(self) -> dict[str, str]:
        """Return the text of the triggers that are there and switched on, by name."""


TABLES = """
CREATE TABLE IF NOT EXISTS event_log (
    version     INTEGER NOT NULL,
    is_on       INTEGER NOT NULL,
    complete    INTEGER NOT NULL,
    first_id    INTEGER NOT NULL,
    done_to     TEXT,
    switched_at INTEGER NOT NULL,
    trimmed_at  INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS events (
    id                INTEGER PRIMARY KEY,
    stream_id         TEXT NOT NULL,
    seq               INTEGER NOT NULL,
    at                INTEGER NOT NULL,
    kind              TEXT NOT NULL,
    message_id        TEXT,
    part_id           TEXT,
    changed           INTEGER,
    agent             TEXT,
    workspace_root    TEXT,
    model_json        TEXT,
    parent_id         TEXT,
    parent_message_id TEXT,
    permissions_json  TEXT,
    prompt_tokens     INTEGER,
    completion_tokens INTEGER,
    reasoning_tokens  INTEGER,
    cache_read        INTEGER,
    cache_write       INTEGER,
    total_tokens      INTEGER,
    cost_usd          REAL,
    archived_at       INTEGER,
    role              TEXT,
    "index"           INTEGER,
    type              TEXT,
    tool_call_id      TEXT,
    tool_state        TEXT,
    created_at        INTEGER,
    updated_at        INTEGER,
    kept              INTEGER,
    insert_at         INTEGER,
    inserted          INTEGER,
    metadata_json     TEXT,
    data_json         TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS events_stream ON events(stream_id, seq);
"""
"""``event_log`` has one row. ``complete``: every session has its snapshot since the log was
switched on, ``done_to`` the last one by its id; ``first_id``: the first event since then;
``trimmed_at``: when old events were last cut, 0 for never.

``events``: ``stream_id`` is the session, ``at`` the time of the write in epoch ms. ``changed`` is
NULL where the event has the whole row, else bit n is set for the n-th column of the contract's
table; columns that did not change are NULL. ``kept``, ``insert_at`` and ``inserted`` say that
``data_json`` has only what was added to the text (``grown`` in ``store.events.rows``).
"""

TAIL = 64
"""A text that keeps all bytes but the last 64 is stored by what follows them.

That begins when all sessions have their snapshots: before, the log may not have what it grew from.
"""

NOW = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"

KEYS = {
    "chat_sessions": {"id": "stream_id"},
    "chat_messages": {"id": "message_id", "session_id": "stream_id"},
    "chat_parts": {"id": "part_id", "message_id": "message_id", "session_id": "stream_id"},
}
"""Columns of the three tables that are keys of an event, by table."""


def values_of(table: str) -> list[str]:
    """Return the columns of a table that are no keys, in the contract's order."""
    return [name for name in REQUIRED_COLUMNS[table] if name not in KEYS[table]]


def bit_of(table: str, column: str) -> int:
    """Return the number of a column in ``changed``."""
    return REQUIRED_COLUMNS[table].index(column)


def keys_of(table: str, row: str) -> dict[str, str]:
    """Return the SQL of an event's keys, by their columns.

    Args:
        table: The table that changed.
        row: ``NEW``, ``OLD`` or an alias.
    """
    return {key: f"{row}.{column}" for column, key in KEYS[table].items()}


def _insert(stream: str, kind: str, columns: dict[str, str], source: str = "") -> str:
    """Return the statement of a trigger that adds an event.

    Args:
        stream: The SQL of the session's id.
        kind: The SQL of the kind.
        columns: The SQL of the further columns.
        source: Where they are selected from; one row.
    """
    last = f"(SELECT seq FROM events WHERE stream_id = {stream} ORDER BY seq DESC LIMIT 1)"
    names = ", ".join(map(quoted, ("stream_id", "seq", "at", "kind", *columns)))
    values = ", ".join([stream, f"coalesce({last}, 0) + 1", NOW, kind, *columns.values()])
    selected = f"SELECT {values} FROM {source}" if source else f"VALUES ({values})"
    return f"INSERT INTO events({names}) {selected}"


def without_stream(keys: dict[str, str]) -> dict[str, str]:
    """Return the keys of an event without that of its stream."""
    return {key: sql for key, sql in keys.items() if key != "stream_id"}


def _created(table: str, word: str) -> str:
    columns = without_stream(keys_of(table, "NEW"))
    columns |= {name: f'NEW."{name}"' for name in values_of(table)}
    return _insert(keys_of(table, "NEW")["stream_id"], f"'{word}.created'", columns)


_MOVED = {
    table: " OR ".join(f"NEW.{column} IS NOT OLD.{column}" for column in KEYS[table])
    for table in KEYS
}
"""The condition for a row that became another one, by table."""


def _mask(table: str) -> str:
    return " | ".join(
        f'((NEW."{name}" IS NOT OLD."{name}") << {bit_of(table, name)})'
        for name in values_of(table)
    )


def _changed(table: str) -> dict[str, str]:
    return {
        name: f'CASE WHEN NEW."{name}" IS NOT OLD."{name}" THEN NEW."{name}" END'
        for name in values_of(table)
    }


def _updated(table: str, kind: str) -> str:
    columns = without_stream(keys_of(table, "NEW")) | {"changed": _mask(table)} | _changed(table)
    source = ""
    if table == "chat_parts":
        columns |= {
            "kept": "kept",
            "insert_at": "CASE WHEN kept IS NOT NULL THEN insert_at END",
            "inserted": "CASE WHEN kept IS NOT NULL THEN inserted END",
            "data_json": (
                "CASE WHEN NEW.data_json IS OLD.data_json THEN NULL"
                " WHEN kept IS NULL THEN NEW.data_json"
                " WHEN insert_at IS NULL THEN substr(n, kept + 1)"
                " ELSE CAST(substr(n, insert_at + 1, inserted) || substr(n, kept + inserted + 1)"
                " AS BLOB) END"),
        }  # fmt: skip
        source = f"({_GROWN})"
    return _insert(keys_of(table, "NEW")["stream_id"], kind, columns, source)


_RAW = "CAST('\",\"input\":' AS BLOB)"
"""What follows the raw text of a tool's input while it streams; inside it quotes are escaped."""
_GROWN = (
    "SELECT n, insert_at, inserted, CASE"
    f" WHEN length(o) <= {TAIL} OR NOT (SELECT complete FROM event_log) THEN NULL"
    f" WHEN substr(o, 1, length(o) - {TAIL}) = substr(n, 1, length(o) - {TAIL})"
    f" AND insert_at IS NULL THEN length(o) - {TAIL}"
    f" WHEN insert_at BETWEEN 0 AND length(o) - {TAIL} AND inserted >= 0"
    " AND substr(o, 1, insert_at) = substr(n, 1, insert_at)"
    f" AND substr(o, insert_at + 1, length(o) - {TAIL} - insert_at)"
    f" = substr(n, insert_at + inserted + 1, length(o) - {TAIL} - insert_at)"
    f" THEN length(o) - {TAIL} END AS kept"
    f" FROM (SELECT o, n, CASE WHEN streams THEN instr(o, {_RAW}) - 1 END AS insert_at,"
    f" CASE WHEN streams THEN instr(n, {_RAW}) - instr(o, {_RAW}) END AS inserted"
    " FROM (SELECT CAST(OLD.data_json AS BLOB) AS o, CAST(NEW.data_json AS BLOB) AS n,"
    " OLD.tool_state = 'input-streaming' AND NEW.tool_state = 'input-streaming'"
    " AND instr(OLD.data_json, '\",\"input\":') > 0 AND instr(NEW.data_json, '\",\"input\":') > 0"
    " AS streams"
    " WHERE OLD.data_json IS NOT NEW.data_json AND typeof(OLD.data_json) = 'text'"
    " AND typeof(NEW.data_json) = 'text'"
    " UNION ALL SELECT NULL, NULL, 0 LIMIT 1) LIMIT 1) LIMIT 1"
)
"""Rows of ``n`` (the new text as bytes) and how it grew out of the old one; NULL if it did not."""


def _key(what: str, path: str) -> str:
    new, old = (f"json_extract({row}.metadata_json, '$.{path}')" for row in ("NEW", "OLD"))
    if what == "set":
        return f"{new} IS NOT NULL AND {old} IS NULL"
    return f"{new} IS NULL AND {old} IS NOT NULL"


SESSION_KIND = (
    "CASE WHEN NEW.archived_at IS NOT NULL AND OLD.archived_at IS NULL THEN 'session.archived'"
    " WHEN NEW.archived_at IS NULL AND OLD.archived_at IS NOT NULL THEN 'session.unarchived'"
    " ELSE 'session.updated' END"
)
"""The SQL of the kind of a session's update."""
_MESSAGE_KINDS = (
    ("set", "hidden_at", "message.hidden"), ("cleared", "hidden_at", "message.shown"),
    ("set", "backscroll.aborted_at", "run.aborted"),
    ("set", "queue_canceled_at", "message.cancelled"),
    ("set", "queued_at", "message.queued"), ("cleared", "queued_at", "message.fired"),
)  # fmt: skip
"""What happens to a key of a message's metadata, and the kind of that update."""


def message_kind(same: str, key: Callable[[str, str], str]) -> str:
    """Return the SQL of the kind of a message's update.

    Args:
        same: The condition that its metadata tell nothing.
        key: Returns the condition that a key was ``set`` or ``cleared``, by that and its path.
    """
    cases = "".join(
        f" WHEN {key(what, path)} THEN '{kind}'" for what, path, kind in _MESSAGE_KINDS)
    return f"CASE WHEN {same} THEN 'message.updated'{cases} ELSE 'message.updated' END"


_MESSAGE_KIND = message_kind(
    "NEW.metadata_json IS OLD.metadata_json"
    " OR typeof(NEW.metadata_json) <> 'text' OR typeof(OLD.metadata_json) <> 'text'"
    " OR NOT json_valid(NEW.metadata_json) OR NOT json_valid(OLD.metadata_json)", _key)

WORDS = {"chat_sessions": "session", "chat_messages": "message", "chat_parts": "part"}
"""What a row of the three tables is called in the kind of an event."""
_KINDS = {
    "chat_sessions": SESSION_KIND, "chat_messages": _MESSAGE_KIND, "chat_parts": "'part.updated'",
}  # fmt: skip
_STAYS = "WHEN EXISTS (SELECT 1 FROM chat_sessions WHERE id = OLD.session_id)"
"""The condition for a deleted row to have an event: rows that go with their session have none."""


def triggers() -> Iterator[tuple[str, str]]:
    """Yield the name and the SQL of each trigger."""
    for table, word in WORDS.items():
        old = keys_of(table, "OLD")
        bodies = {
            "created": ("INSERT", "", [_created(table, word)]),
            "updated": (
                "UPDATE", f"WHEN NOT ({_MOVED[table]}) AND ({_mask(table)}) <> 0",
                [_updated(table, _KINDS[table])]),
            "moved": (
                "UPDATE", f"WHEN {_MOVED[table]}",
                [_insert(old["stream_id"], f"'{word}.moved'", without_stream(old)),
                 _created(table, word)]),
            "deleted": (
                "DELETE", "" if table == "chat_sessions" else _STAYS,
                [_insert(old["stream_id"], f"'{word}.deleted'", without_stream(old))]),
        }  # fmt: skip
        for what, (action, condition, inserts) in bodies.items():
            name = f"event_log_{word}_{what}"
            body = " ".join(f"{insert};" for insert in inserts)
            yield name, (
                f"CREATE TRIGGER {name} AFTER {action} ON {table} {condition} BEGIN {body} END")


class FileEvents(EventTables):
    """The event log of a library file."""

    part_key = "rowid"
    first_key = -(1 << 63)

    def stored(self, expression: str, column: str) -> str:
        """Return the SQL of a value as an event stores it: as it is.

        Args:
            expression: The value in a row.
            column: Its column in one of the three tables.
        """
        return expression

    def has(self, table: str) -> bool:
        """Return whether ``events`` or ``event_log`` is there."""
        return self._connection.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
        ).fetchone() is not None

    def create(self) -> None:
        """Create the tables that are missing."""
        for statement in statements(TABLES):
            self._connection.execute(statement)

    def put(self) -> None:
        """Create the triggers anew."""
        self.drop()
        for text in self._wanted().values():
            self._connection.execute(text)

    def drop(self) -> None:
        """Drop the triggers, whatever version of Backscroll made them."""
        for name in self._there():
            self._connection.execute(f'DROP TRIGGER "{name}"')

    def drop_tables(self) -> None:
        """Drop the tables with all events."""
        for table in ("events", "event_log"):
            self._connection.execute(f"DROP TABLE IF EXISTS {table}")

    def _wanted(self) -> dict[str, str]:
        return dict(triggers())

    def _there(self) -> dict[str, str]:
        return dict(self._connection.execute(
            "SELECT name, sql FROM sqlite_master"
            " WHERE type = 'trigger' AND name GLOB 'event_log_*'").fetchall())
