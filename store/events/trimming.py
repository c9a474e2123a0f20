"""Keeps an event log within bounds: old events of a session become one for each of its rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from store.engine.database import Database, in_transaction
from store.events.log import LogState, has_events, log_state, require_events
from store.events.rows import Value, exact, fold, placed, row_of
from store.events.sql import KEYS, STORE_STREAM, quoted, values_of
from store.system.clock import Clock, system_clock

if TYPE_CHECKING:
    from store.config import EventSettings

DAY_MS = 86_400_000
ROW_BYTES = 180
"""About what an event takes beside its texts, its line of the index included."""
_TEXTS = ("metadata_json", "data_json", "model_json", "permissions_json")
_SIZE = f"count(*), coalesce(sum({ROW_BYTES} + " + " + ".join(
    f"coalesce(length(CAST({name} AS BLOB)), 0)" for name in _TEXTS) + "), 0)"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a log is kept; the present state always is.

    Attributes:
        days: Older events are cut; None for no age.
        bytes: Above this size, the events of the sessions that changed longest ago are cut, until
            it is reached or nothing but the present state is left; None for no size.
    """

    days: int | None = None
    bytes: int | None = None


def bounds_of(settings: EventSettings) -> Bounds:
    """Return the bounds that the config wants."""
    return Bounds(settings.keep_days or None, settings.max_mb * 1_000_000 or None)


@dataclass(slots=True)
class Trimmed:
    """What was cut.

    Attributes:
        sessions: The sessions that had events cut.
        events: How many events are gone.
    """

    sessions: int = 0
    events: int = 0


def log_size(db: Database) -> tuple[int, int]:
    """Return how many events a store has, and about how many bytes they take."""
    if not has_events(db):
        return 0, 0
    count, size = db.connection.execute(f"SELECT {_SIZE} FROM events").fetchone()
    return int(count), int(size)


def is_due(state: LogState | None, bounds: Bounds, now: int) -> bool:
    """Return whether a log should be trimmed: once a day, where it has bounds.

    Args:
        state: Of the log; None where there is none.
        bounds: How much is kept.
        now: Epoch ms.
    """
    if state is None or (bounds.days is None and bounds.bytes is None):
        return False
    return not 0 <= now - state.trimmed_at < DAY_MS


def trim(
    db: Database, bounds: Bounds, *, clock: Clock = system_clock,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Trimmed:
    """Cut old events; a store can still be made of the log.

    Each session is cut in a transaction of its own.

    Args:
        db: The library, open for writing.
        bounds: How much is kept.
        clock: Gives the present.
        progress: Takes how many sessions are done, and how many there are.

    Raises:
        Refused: There is no log, or the store is read only.
        sqlite3.Error: It is locked, full or damaged.
    """
    require_events(db)
    done, now = Trimmed(), clock()
    with exact(db.file) as connection:
        found = connection.execute(
            "SELECT stream_id, max(at) FROM events WHERE stream_id <> ? GROUP BY stream_id"
            " ORDER BY 2", (STORE_STREAM,)).fetchall()
        if bounds.days is not None:
            before = now - bounds.days * DAY_MS
            for number, (stream, _) in enumerate(found, 1):
                _cut_one(db, stream, before, done)
                progress(number, len(found))
        if bounds.bytes is not None:
            over = log_size(db)[1] - bounds.bytes
            for stream, _ in found:
                if over <= 0:
                    break
                size = _size(connection, stream)
                _cut_one(db, stream, None, done)
                over -= size - _size(connection, stream)

    def note(db: Database) -> None:
        db.connection.execute("UPDATE event_log SET trimmed_at = ?", (now,))

    in_transaction(db, note)
    return done


def trim_if_due(db: Database, bounds: Bounds, *, clock: Clock = system_clock) -> Trimmed | None:
    """Cut old events once a day; returns None where nothing is due.

    Args:
        db: The library, open for writing.
        bounds: How much is kept.
        clock: Gives the present.
    """
    return trim(db, bounds, clock=clock) if is_due(log_state(db), bounds, clock()) else None


def _size(connection: sqlite3.Connection, stream: Value) -> int:
    row = connection.execute(
        f"SELECT {_SIZE} FROM events WHERE stream_id = {placed(stream)}", (stream,)).fetchone()
    return int(row[1])


def _cut_one(db: Database, stream: Value, before: int | None, done: Trimmed) -> None:
    count = in_transaction(db, _cut, stream, before)
    done.events += count
    done.sessions += count > 0


def _cut(db: Database, stream: Value, before: int | None) -> int:
    """Cut the events of a session, in a transaction; returns how many are gone.

    Args:
        db: The library, within ``exact``.
        stream: The session's id.
        before: Events before it are cut, epoch ms; None for all.
    """
    connection, of = db.file, f"stream_id = {placed(stream)}"

    def number(sql: str, *values: Value) -> int | None:
        found: int | None = connection.execute(sql, (stream, *values)).fetchone()[0]
        return found

    first_kept = None if before is None else number(
        f"SELECT min(seq) FROM events WHERE {of} AND at >= ?", before)
    until = number(f"SELECT max(seq) FROM events WHERE {of} AND seq < ?",
                   1 << 62 if first_kept is None else first_kept)
    if until is None:
        return 0
    count = number(f"SELECT count(*) FROM events WHERE {of} AND seq <= ?", until) or 0
    rows = list(fold(connection, stream, until).rows())
    # Of a session that is gone one event stays, so that its numbers go on.
    left = max(len(rows), 1)
    if count <= left:
        return 0
    for table, events in rows:
        if len(events) > 1:
            _merge(connection, stream, table, events)
    if not rows:
        connection.execute(f"DELETE FROM events WHERE {of} AND seq < ?", (stream, until))
        return count - left
    stay = sorted((events[0] for _, events in rows), reverse=True)
    others = connection.execute(
        f"SELECT seq FROM events WHERE {of} AND seq <= ?", (stream, until)).fetchall()
    known = set(stay)
    connection.executemany(
        f"DELETE FROM events WHERE {of} AND seq = ?",
        ((stream, seq) for (seq,) in others if seq not in known))
    # The later ones move first, so that no number is there twice; the session's is the first one.
    # An event is rewritten as a whole, so each is once.
    connection.executemany(
        "UPDATE events SET seq = ?, kind = substr(kind, 1, instr(kind, '.')) || 'snapshot'"
        f" WHERE {of} AND seq = ? AND (seq <> ? OR kind NOT GLOB '*.snapshot')",
        ((until - place, stream, seq, until - place) for place, seq in enumerate(stay)))
    return count - left


def _merge(
    connection: sqlite3.Connection, stream: Value, table: str, events: list[int]
) -> None:
    """Give the first event of a row all that its updates say.

    Args:
        connection: The library, within ``exact``.
        stream: The session's id.
        table: The row's table.
        events: Its full event and its updates.
    """
    of = f"stream_id = {placed(stream)} AND seq = ?"
    row = row_of(connection, stream, table, events)[len(KEYS[table]):]
    ((at,),) = connection.execute(
        f"SELECT at FROM events WHERE {of}", (stream, events[-1])).fetchall()
    changes = ["at = ?"] + [f"{name} = {placed(value)}"
                            for name, value in zip(quoted(values_of(table)), row, strict=True)]
    connection.execute(
        f"UPDATE events SET {', '.join(changes)} WHERE {of}", (at, *row, stream, events[0]))
