"""Keeps an event log within bounds: old events of a session become one for each of its rows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import partial
from typing import TYPE_CHECKING

from store.engine.connection import Connection, dialect_of
from store.engine.database import Database, in_transaction
from store.engine.dialect import quoted
from store.engine.event_log import KEYS, values_of
from store.engine.schema import REQUIRED_COLUMNS
from store.events.log import LogState, has_events, log_state, require_events
from store.events.rows import Value, exact, fold, placed, row_of
from store.events.sql import STORE_STREAM
from store.system.clock import Clock, system_clock

if TYPE_CHECKING:
    from store.config import EventSettings

DAY_MS = 86_400_000
ROW_BYTES = 180
"""About what an event takes beside its texts, its line of the index included."""
_AT_ONCE = 5_000
"""Steps of cutting a session that are one transaction."""
_PAUSE_S = 0.12
"""Seconds between two of them: who waits for the lock looks every 0.1 s."""
_TEXTS = ("metadata_json", "data_json", "model_json", "permissions_json")


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
        size: About how many bytes they took; counted by ``would_trim`` alone.
    """

    sessions: int = 0
    events: int = 0
    size: int = 0


def log_size(db: Database) -> tuple[int, int]:
    """Return how many events a store has, and about how many bytes they take."""
    if not has_events(db):
        return 0, 0
    count, size = db.connection.execute(
        f"SELECT {_sizes(db.connection)} FROM events").fetchone()
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

    Long sessions are cut in several transactions, so that others can write.

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
    with exact(db.connection) as connection:
        found = log_streams(db)
        if bounds.days is not None:
            before = now - bounds.days * DAY_MS
            for number, stream in enumerate(found, 1):
                _cut_one(db, stream, before, done)
                progress(number, len(found))
        if bounds.bytes is not None:
            over = log_size(db)[1] - bounds.bytes
            for stream in found:
                if over <= 0:
                    break
                size = _size(connection, stream)
                _cut_one(db, stream, None, done)
                over -= size - _size(connection, stream)

    def note(db: Database) -> None:
        db.connection.execute("UPDATE event_log SET trimmed_at = ?", (now,))

    in_transaction(db, note)
    return done


def would_trim(db: Database, bounds: Bounds, *, clock: Clock = system_clock) -> Trimmed:
    """Return what ``trim`` would cut; changes nothing.

    Args:
        db: The library.
        bounds: How much is kept.
        clock: Gives the present.

    Raises:
        Refused: There is no log.
        sqlite3.Error: The store is locked or damaged.
    """
    require_events(db)
    cuts: dict[Value, Trimmed] = {}
    with exact(db.connection):
        found = log_streams(db)
        if bounds.days is not None:
            before = clock() - bounds.days * DAY_MS
            cuts = {stream: _would_cut(db, stream, before) for stream in found}
        if bounds.bytes is not None:
            over = log_size(db)[1] - sum(cut.size for cut in cuts.values()) - bounds.bytes
            for stream in found:
                if over <= 0:
                    break
                whole = _would_cut(db, stream, None)
                over -= whole.size - cuts.get(stream, Trimmed()).size
                cuts[stream] = whole
    return Trimmed(*map(sum, zip(*map(astuple, cuts.values()), strict=True)))


def _would_cut(db: Database, stream: Value, before: int | None) -> Trimmed:
    cut = _Cut.of(db, stream, before)
    if cut is None:
        return Trimmed()
    return Trimmed(1, len(cut.ids) - cut.left, cut.freed(db.connection))


def log_streams(db: Database) -> list[Value]:
    """Return the sessions that have events, the one that changed longest ago first."""
    return [] if not has_events(db) else [stream for stream, _ in db.connection.execute(
        "SELECT stream_id, max(at) FROM events WHERE stream_id <> ? GROUP BY stream_id"
        " ORDER BY 2", (STORE_STREAM,))]


def trim_if_due(db: Database, bounds: Bounds, *, clock: Clock = system_clock) -> Trimmed | None:
    """Cut old events once a day; returns None where nothing is due.

    Args:
        db: The library, open for writing.
        bounds: How much is kept.
        clock: Gives the present.
    """
    return trim(db, bounds, clock=clock) if is_due(log_state(db), bounds, clock()) else None


def _sizes(connection: Connection) -> str:
    """Return the expressions for the number of events and their bytes."""
    sql = dialect_of(connection)
    texts = " + ".join(f"coalesce({sql.bytes_of(name)}, 0)" for name in _TEXTS)
    return f"count(*), coalesce(sum({ROW_BYTES} + {texts}), 0)"


def _size(connection: Connection, stream: Value) -> int:
    row = connection.execute(
        f"SELECT {_sizes(connection)} FROM events WHERE stream_id = {placed(stream)}", (stream,)
    ).fetchone()
    return int(row[1])


def _cut_one(db: Database, stream: Value, before: int | None, done: Trimmed) -> None:
    """Cut the events of a session, so many in a transaction; others can write in between.

    Args:
        db: The library, within ``exact``.
        stream: The session's id.
        before: Events before it are cut, epoch ms; None for all.
        done: Takes how many are gone.
    """
    cut = in_transaction(db, _Cut.of, stream, before)
    if cut is None:
        return
    steps, is_first = cut.steps(db.connection), True
    while some := list(itertools.islice(steps, _AT_ONCE)):
        if not is_first:
            time.sleep(_PAUSE_S)
        if not in_transaction(db, cut.run, some):
            return  # Another process cuts or mends it.
        is_first = False
    done.events += len(cut.ids) - cut.left
    done.sessions += 1


_Step = Callable[[], object]
_NEUTRAL = (
    "UPDATE events SET kind = CASE WHEN part_id IS NOT NULL THEN 'part.updated'"
    " WHEN message_id IS NOT NULL THEN 'message.updated' ELSE 'session.updated' END, changed = 0, "
    + ", ".join(f"{name} = NULL" for name in [
        "kept", "insert_at", "inserted",
        *map(quoted, dict.fromkeys(name for table in KEYS for name in values_of(table)))])
    + " WHERE id = ?"
)
"""The statement that makes an event one that changes nothing."""


@dataclass(slots=True)
class _Cut:
    """The events of a session that are cut, and the steps in which that is done.

    After each step the log makes the same rows, and no number is missing, so it can end after any:
    first what no longer counts becomes events that change nothing; what counts then moves past
    them to the end, in its order; and they are deleted, from the lowest number on.

    Attributes:
        stream: The session's id.
        ids: The events, in their order.
        first: The number of the first one.
        rows: By row its table, its full event and its updates.
    """

    stream: Value
    ids: list[int]
    first: int
    rows: list[tuple[str, list[int]]]

    @classmethod
    def of(cls, db: Database, stream: Value, before: int | None) -> _Cut | None:
        """Return what is cut of a session; None for nothing.

        Args:
            db: The library, in a transaction, within ``exact``.
            stream: The session's id.
            before: Events before it are cut, epoch ms; None for all.
        """
        connection, of = db.connection, f"stream_id = {placed(stream)}"
        last = 1 << 62
        if before is not None:
            (kept,) = connection.execute(
                f"SELECT min(seq) FROM events WHERE {of} AND at >= ?", (stream, before)).fetchone()
            last = last if kept is None else kept - 1
        first, end = connection.execute(
            f"SELECT min(seq), max(seq) FROM events WHERE {of} AND seq <= ?", (stream, last)
        ).fetchone()
        ids = [] if first is None else _ids(connection, stream, first, end)
        if not ids or len(ids) != end - first + 1:
            return None  # What lacks events is for the doctor.
        cut = cls(stream, ids, first, list(fold(connection, stream, last).rows()))
        return cut if len(ids) > cut.left else None

    @property
    def left(self) -> int:
        """How many events stay; of a session that is gone one, so that its numbers go on."""
        return max(len(self.rows), 1)

    def freed(self, connection: Connection) -> int:
        """Return about how many bytes it gives back."""
        left = ROW_BYTES * self.left
        for table, events in self.rows:
            names = REQUIRED_COLUMNS[table]
            row = row_of(connection, self.stream, table, events)
            left += sum(_bytes(value) for name, value in zip(names, row, strict=True)
                        if name in _TEXTS)
        of = f"stream_id = {placed(self.stream)} AND seq BETWEEN ? AND ?"
        _, size = connection.execute(
            f"SELECT {_sizes(connection)} FROM events WHERE {of}",
            (self.stream, self.first, self.first + len(self.ids) - 1)).fetchone()
        return int(size) - left

    def run(self, db: Database, steps: list[_Step]) -> bool:
        """Do some steps in a transaction; returns whether the events are still the same ones.

        Args:
            db: The library.
            steps: What ``steps`` gave.
        """
        there = _ids(db.connection, self.stream, self.first, self.first + len(self.ids) - 1)
        # Those that are deleted already are 0.
        if there != [number for number in self.ids if number]:
            return False
        for step in steps:
            step()
        return True

    def steps(self, connection: Connection) -> Iterator[_Step]:
        """Yield the steps; each but the first ones expects that those before are done.

        Args:
            connection: The library.
        """
        updates: set[int] = set()
        for table, events in self.rows:
            if len(events) > 1:
                updates.update(events[1:])
                yield partial(self._merge, connection, table, events)
        stay = sorted(events[0] for _, events in self.rows)
        known = updates.union(stay)
        if stay:
            for seq in range(self.first, self.first + len(self.ids)):
                if seq not in known:
                    yield partial(self._neutral, connection, seq)
        end = self.first + len(self.ids) - 1
        for place, seq in enumerate(reversed(stay)):
            yield partial(self._move, connection, seq, end - place)
        for seq in range(self.first, end - self.left + 1):
            yield partial(self._delete, connection, seq)

    def _neutral(self, connection: Connection, seq: int) -> None:
        connection.execute(_NEUTRAL, (self.ids[seq - self.first],))

    def _merge(self, connection: Connection, table: str, events: list[int]) -> None:
        _merge(connection, self.stream, table, events)
        for seq in events[1:]:
            self._neutral(connection, seq)

    def _move(self, connection: Connection, seq: int, to: int) -> None:
        """Let an event that counts and a later one that changes nothing change places."""
        ids, one, other = self.ids, seq - self.first, to - self.first
        if one != other:
            set_seq = "UPDATE events SET seq = ? WHERE id = ?"
            connection.execute(set_seq, (-1, ids[other]))
            connection.execute(set_seq, (to, ids[one]))
            connection.execute(set_seq, (seq, ids[other]))
            ids[one], ids[other] = ids[other], ids[one]
        connection.execute(
            "UPDATE events SET kind = CASE WHEN part_id IS NOT NULL THEN 'part.snapshot'"
            " WHEN message_id IS NOT NULL THEN 'message.snapshot' ELSE 'session.snapshot' END"
            " WHERE id = ? AND kind NOT LIKE '%.snapshot'", (ids[other],))

    def _delete(self, connection: Connection, seq: int) -> None:
        connection.execute("DELETE FROM events WHERE id = ?", (self.ids[seq - self.first],))
        self.ids[seq - self.first] = 0


def _bytes(value: object) -> int:
    """Return the length of a text in bytes."""
    return len(value if isinstance(value, bytes) else str(value).encode()) if value else 0


def _ids(connection: Connection, stream: Value, first: int, last: int) -> list[int]:
    """Return the ids of a session's events in their order.

    Args:
        connection: The library.
        stream: The session's id.
        first: The number of the first one.
        last: The number of the last one.
    """
    return [number for (number,) in connection.execute(
        f"SELECT id FROM events WHERE stream_id = {placed(stream)} AND seq BETWEEN ? AND ?"
        " ORDER BY seq", (stream, first, last))]


def _merge(
    connection: Connection, stream: Value, table: str, events: list[int]
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
    # On a server the JSON of parts is in a column of bytes.
    changes = ["at = ?"] + [
        f'"{name}" = ?' if name == "data_json" and dialect_of(connection).name != "sqlite" else
        f'"{name}" = {placed(value)}'
        for name, value in zip(values_of(table), row, strict=True)]
    connection.execute(
        f"UPDATE events SET {', '.join(changes)} WHERE {of}", (at, *row, stream, events[0]))
