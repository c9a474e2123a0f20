"""Lists a database's sessions, each with a cheap sign of whether it moved.

``session.time_updated`` misses streaming writes, and those of the second engine altogether
(opencode format page, sections 2.2 and 2.8). The sign is made of the session's row, the
number of its last event, counts that come from indexes alone, and the times of its last
rows; rows that no event mentions (imports, older versions) are all asked for their time.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.sources.base.protocol import FileStamp, Problem, Unit
from store.sources.base.values import ms_or_0, number
from store.sources.opencode.opening import columns, order_of

_ROW = (
    "parent_id", "directory", "title", "version", "share_url", "cost", "tokens_input",
    "tokens_output", "revert", "agent", "model", "permission", "time_created", "time_updated",
    "time_compacting", "time_archived",
)  # fmt: skip
_BYTES_PER_PART = 4096
"""A guess; it weighs a session in the progress of a sync."""
_LAST = 2
"""Messages at the end whose rows' times are looked at."""


@dataclass(slots=True)
class _Counts:
    messages: tuple[Any, ...] = ()
    parts: tuple[Any, ...] = ()
    events: int = 0
    second: tuple[Any, ...] = ()
    todos: tuple[Any, ...] = ()


def list_sessions(
    connection: sqlite3.Connection, path: Path, prefix: str, problems: list[Problem]
) -> Iterator[Unit]:
    """Yield a unit for each session.

    Args:
        connection: In a read transaction.
        path: The database.
        prefix: What each unit's key begins with.
        problems: Takes rows that belong to no session.
    """
    names = [name for name in _ROW if name in columns(connection, "session")]
    counts = _counts(connection)
    rows = connection.execute(f"SELECT id, {', '.join(names)} FROM session ORDER BY id").fetchall()
    for session_id, *values in rows:
        if not isinstance(session_id, str):
            continue
        found = counts.pop(session_id, _Counts())
        row = dict(zip(names, values, strict=True))
        last = _last_rows(connection, session_id, found)
        sign = repr((sorted(row.items()), found, last)).encode("utf-8", "surrogatepass")
        at = max(ms_or_0(row.get("time_updated")), ms_or_0(row.get("time_archived")), _newest(last))
        size = _BYTES_PER_PART * (1 + number(found.parts[1] if found.parts else 0))
        stamp = FileStamp(
            str(path),
            int.from_bytes(hashlib.blake2b(sign, digest_size=7).digest(), "big"),
            size,
            at * 1_000_000,
        )
        yield Unit(f"{prefix}{session_id}", (stamp,), at)
    for session_id, found in counts.items():
        if found.messages:
            reason = f"{found.messages[1]} messages of session {session_id}, which is not there"
            problems.append(Problem(str(path), 0, reason))


def _counts(connection: sqlite3.Connection) -> dict[str, _Counts]:
    """Count each session's rows, by indexes that hold all that is asked for."""
    counts: dict[str, _Counts] = {}
    order = order_of(connection, "session_message", "seq")
    for name, table, what in (
        ("messages", "message", "session_id, count(*), max(time_created)"),
        ("parts", "part", "session_id, count(*), max(rowid)"),
        ("second", "session_message", f"session_id, count(*), max({order})"),
        ("todos", "todo", "session_id, count(*), max(time_updated)"),
        ("events", "event_sequence", "aggregate_id, seq"),
    ):
        if not columns(connection, table):
            continue
        group = "" if table == "event_sequence" else " GROUP BY session_id"
        for row in connection.execute(f"SELECT {what} FROM {table}{group}"):
            found = counts.setdefault(row[0], _Counts())
            setattr(found, name, row[1] if table == "event_sequence" else row)
    return counts


def _last_rows(connection: sqlite3.Connection, session_id: str, found: _Counts) -> list[Any]:
    """Return the times of a session's last rows; of all its rows where no event mentions them."""
    last: list[Any] = []
    if found.messages:
        messages = connection.execute(
            "SELECT id, time_updated FROM message WHERE session_id = ?"
            " ORDER BY time_created DESC, id DESC LIMIT ?",
            (session_id, _LAST if found.events else -1),
        ).fetchall()
        last += [row[1] for row in messages]
        if found.events:
            for message_id, _ in messages:
                last += _part_times(connection, "message_id", message_id)
        else:
            last += _part_times(connection, "session_id", session_id)
    if found.second:
        order = order_of(connection, "session_message", "seq")
        rows = connection.execute(
            "SELECT time_updated FROM session_message WHERE session_id = ?"
            f" ORDER BY {order} DESC, id DESC LIMIT ?",
            (session_id, _LAST),
        )
        last += [row[0] for row in rows]
    return last


def _part_times(connection: sqlite3.Connection, column: str, value: str) -> list[Any]:
    row = connection.execute(
        f"SELECT max(time_updated), sum(time_updated) % 1000003 FROM part WHERE {column} = ?",
        (value,),
    ).fetchone()
    return [row[0], str(row[1])]


def _newest(times: list[Any]) -> int:
    return max((ms_or_0(time) for time in times), default=0)
