"""The statements that add events of no change: snapshots, and what was deleted or forgotten.

What a change adds is written by the triggers of ``store.engine.event_log``.
"""

from __future__ import annotations

from store.engine.dialect import quoted
from store.engine.event_log import EventTables, keys_of, values_of, without_stream

_LAST = "(SELECT coalesce(max(seq), 0) FROM events WHERE stream_id = CAST(:session AS TEXT))"


def _snapshot(tables: EventTables, table: str, word: str, source: str, order: str) -> str:
    """Return the statement that adds rows as events.

    Args:
        tables: The log.
        table: The rows' table.
        word: What a row is called in the kind.
        source: Where they are selected from, as ``r``.
        order: Their order.
    """
    keys = keys_of(table, "r")
    columns = without_stream(keys) | {
        name: tables.stored(f'r."{name}"', name) for name in values_of(table)}
    names = ", ".join(map(quoted, ("stream_id", "seq", "at", "kind", *columns)))
    values = ", ".join([
        keys["stream_id"], f"{_LAST} + row_number() OVER (ORDER BY {order})",
        "CAST(:at AS BIGINT)", f"'{word}.snapshot'", *columns.values()])
    return f"INSERT INTO events({names}) SELECT {values} FROM {source} ORDER BY {order}"


def snapshot_of_head(tables: EventTables) -> tuple[str, str]:
    """Return the statements that add the rows of ``:session`` and its messages, at ``:at``."""
    return (
        _snapshot(tables, "chat_sessions", "session",
                  "chat_sessions r WHERE r.id = CAST(:session AS TEXT)", "r.id"),
        _snapshot(tables, "chat_messages", "message",
                  "chat_messages r WHERE r.session_id = CAST(:session AS TEXT)",
                  "r.created_at, r.id"),
    )  # fmt: skip


def _page_of_parts(tables: EventTables, columns: str) -> str:
    key = tables.part_key
    return (f"(SELECT {key} AS number{columns} FROM chat_parts"
            f" WHERE session_id = CAST(:session AS TEXT) AND {key} > :after"
            f" ORDER BY {key} LIMIT :most) r")


def snapshot_of_parts(tables: EventTables) -> str:
    """Return the statement that adds ``:most`` parts of the session after the key ``:after``."""
    return _snapshot(
        tables, "chat_parts", "part", _page_of_parts(tables, ", chat_parts.*"), "r.number")


def last_part(tables: EventTables) -> str:
    """Return the statement for the last key that ``snapshot_of_parts`` adds."""
    return f"SELECT max(number) FROM {_page_of_parts(tables, '')}"


WITHOUT_SNAPSHOT = (
    "SELECT id FROM chat_sessions s"
    " WHERE (CAST(:after AS TEXT) IS NULL OR id > CAST(:after AS TEXT)) AND NOT EXISTS"
    " (SELECT 1 FROM events e WHERE e.stream_id = s.id AND e.kind = 'session.created'"
    " AND e.id >= (SELECT first_id FROM event_log)) ORDER BY id LIMIT 1"
)
"""The statement for the next session that existed when the log was switched on."""

DELETED = (
    "INSERT INTO events(stream_id, seq, at, kind) SELECT CAST(:session AS TEXT),"
    f" {_LAST} + 1, CAST(:at AS BIGINT), 'session.deleted'"
)
"""The statement that adds the deletion of ``:session``."""
STORE_STREAM = "store"
"""The stream of events that are about no session."""
FORGOTTEN = (
    "INSERT INTO events(id, stream_id, seq, at, kind)"
    " SELECT CAST(:id AS BIGINT), CAST(:stream AS TEXT),"
    " coalesce((SELECT max(seq) FROM events WHERE stream_id = CAST(:stream AS TEXT)), 0) + 1,"
    " CAST(:at AS BIGINT), 'store.forgot'"
)
"""The statement that takes the place of the newest event, without a word of what was forgotten."""
