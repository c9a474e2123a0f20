"""Switches the event log of a library on and off, and says whether it is on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from store.engine.database import Database, in_transaction
from store.engine.event_log import VERSION, EventTables, FileEvents
from store.errors import Refused
from store.events import sql
from store.system.clock import Clock, system_clock

Progress = Callable[[int, int], None]
"""Takes how many sessions are done, and how many there are."""

AT_ONCE_S = 0.2
"""Seconds that snapshots may keep other writers waiting."""
_PAGE = 200


@dataclass(frozen=True, slots=True)
class LogState:
    """The event log of a library.

    Attributes:
        version: Of its format.
        is_on: Whether changes are logged.
        complete: Whether every session is in it.
        first_id: The first event since it was switched on.
        switched_at: When that was, or when it was switched off; epoch ms.
        trimmed_at: When old events were last cut; 0 for never.
    """

    version: int
    is_on: bool
    complete: bool
    first_id: int
    switched_at: int
    trimmed_at: int

    @property
    def tells_all(self) -> bool:
        """Whether the three tables can be made of it."""
        return self.is_on and self.complete and self.version == VERSION


def tables_of(db: Database) -> EventTables:
    """Return the tables and triggers of the event log that a library has, or may have."""
    if db.server is None:
        return FileEvents(db.file)
    # Only for such a store, as it brings an event loop.
    from store.engine.server.event_log import ServerEvents

    return ServerEvents(db.remote)


def log_state(db: Database) -> LogState | None:
    """Return the state of a store's event log; None where it has none."""
    if db.form.name != "own" or not tables_of(db).has("event_log"):
        return None
    row = db.connection.execute(
        "SELECT version, is_on, complete, first_id, switched_at, trimmed_at FROM event_log"
    ).fetchone()
    if row is None:
        return None
    version, is_on, complete, first_id, switched_at, trimmed_at = row
    return LogState(version, bool(is_on), bool(complete), first_id, switched_at, trimmed_at)


def has_events(db: Database) -> bool:
    """Return whether a store has events, be the log on or off."""
    return db.form.name == "own" and tables_of(db).has("events")


def require_own(db: Database) -> None:
    """Refuse a store that is no library: another program's gets no table.

    Raises:
        Refused: It is none, or it is on a server and its log may not be read.
    """
    if db.form.name != "own":
        raise Refused(
            f"{db.name} belongs to another program, and Backscroll adds nothing to it: only a"
            " library can have an event log")
    schema = tables_of(db).forbidden_schema()
    if schema is not None:
        raise Refused(
            f"the role of {db.name} may not read the event log; its owner grants that with"
            f" `GRANT SELECT ON ALL TABLES IN SCHEMA {schema}` (docs/teams.md)")


def require_events(db: Database) -> LogState:
    """Return the state of a log that can be read.

    Raises:
        Refused: There is none, or it is of a newer Backscroll.
    """
    require_own(db)
    state = log_state(db)
    if state is None or not has_events(db):
        raise Refused(f"{db.name} has no event log. `backscroll events --on` begins one.")
    if state.version > VERSION:
        raise Refused(
            f"the event log of {db.name} has the newer version {state.version}; update Backscroll")
    return state


def is_lacking(db: Database) -> bool:
    """Return whether a log lacks its table of events, or a trigger."""
    return not has_events(db) or bool(tables_of(db).missing())


def switch_on(
    db: Database, *, clock: Clock = system_clock, progress: Progress = lambda done, total: None
) -> bool:
    """Log each change from now on, after a snapshot of every session; returns whether it was off.

    Changes are logged from the first moment. The snapshots are made in many short transactions,
    so that others can write; when it is interrupted, the next call goes on.

    Args:
        db: The library, open for writing.
        clock: Gives the time of the snapshots.
        progress: Takes how many sessions have one.

    Raises:
        Refused: The file is no library, or is read only.
        sqlite3.Error: It is locked, full or damaged.
    """
    require_own(db)
    was_off = in_transaction(db, _begin, clock())
    (total,) = db.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()
    (done_to,) = db.connection.execute("SELECT done_to FROM event_log").fetchone()
    place = _Place(done_to)
    while in_transaction(db, _snapshots, place, clock(), time.monotonic() + AT_ONCE_S):
        progress(place.done, total)
    in_transaction(db, _complete, clock())
    return was_off


def _begin(db: Database, now: int) -> bool:
    """Create what is missing, and start a log that is off; returns whether it was."""
    connection, tables = db.connection, tables_of(db)
    tables.create()
    state = log_state(db)
    if state is not None and state.version > VERSION:
        require_events(db)
    if state is not None and state.is_on and not tables.missing() and state.version == VERSION:
        return False
    tables.put()
    connection.execute("DELETE FROM event_log")
    connection.execute(
        "INSERT INTO event_log SELECT CAST(? AS BIGINT), 1, 0, coalesce(max(id), 0) + 1, NULL,"
        " CAST(? AS BIGINT), 0 FROM events", (VERSION, now))
    return state is None or not state.is_on


@dataclass(slots=True)
class _Place:
    """How far the snapshots are.

    Attributes:
        session: The last session that was begun; None before the first one.
        part: The key of the last part of it; None where it is done.
        done: How many sessions are done.
    """

    session: str | None
    part: int | str | None = None
    done: int = 0


def _snapshots(db: Database, place: _Place, now: int, ends: float) -> bool:
    """Add snapshots until the time is over; returns whether some are left.

    What changes in a session meanwhile is logged, and rows that come later have it.

    Args:
        db: The library, in a transaction.
        place: How far they are; it goes on.
        now: Epoch ms.
        ends: When the time is over, by ``time.monotonic``.
    """
    connection, tables = db.connection, tables_of(db)
    while True:
        if place.part is None:
            found = connection.execute(
                sql.WITHOUT_SNAPSHOT, {"after": place.session}).fetchone()
            if found is None:
                return False
            place.session, place.part = found[0], tables.first_key
            for statement in sql.snapshot_of_head(tables):
                connection.execute(statement, {"session": place.session, "at": now})
        elif (last := _snapshot_parts(db, place.session, place.part, now)) is not None:
            place.part = last
        else:
            connection.execute("UPDATE event_log SET done_to = ?", (place.session,))
            place.part, place.done = None, place.done + 1
        if time.monotonic() > ends:
            return True


def _snapshot_parts(
    db: Database, session: str | None, after: int | str, now: int
) -> int | str | None:
    """Add some parts of a session to its events; returns the key of the last one, or None."""
    tables = tables_of(db)
    page = {"session": session, "after": after, "most": _PAGE, "at": now}
    found: tuple[int | str | None] = db.connection.execute(
        sql.last_part(tables), page).fetchone()
    if found[0] is not None:
        db.connection.execute(sql.snapshot_of_parts(tables), page)
    return found[0]


def snapshot(db: Database, session: str, now: int) -> None:
    """Add the present rows of a session to its events; what came before no longer counts.

    Args:
        db: The library, in a transaction.
        session: The session's id.
        now: Epoch ms.
    """
    tables = tables_of(db)
    for statement in sql.snapshot_of_head(tables):
        db.connection.execute(statement, {"session": session, "at": now})
    after: int | str | None = tables.first_key
    while after is not None:
        after = _snapshot_parts(db, session, after, now)


def _complete(db: Database, now: int) -> None:
    """Add what was deleted while the log was off."""
    connection = db.connection
    gone = connection.execute(
        "SELECT g.stream_id FROM (SELECT DISTINCT stream_id FROM events"
        " WHERE stream_id NOT IN (SELECT id FROM chat_sessions)) g WHERE g.stream_id <> ?"
        " AND (SELECT kind FROM events e WHERE e.stream_id = g.stream_id ORDER BY seq DESC"
        " LIMIT 1) <> 'session.deleted'", (sql.STORE_STREAM,)).fetchall()
    for (session,) in gone:
        connection.execute(sql.DELETED, {"session": session, "at": now})
    connection.execute("UPDATE event_log SET complete = 1")


def switch_off(db: Database, *, drop: bool = False, clock: Clock = system_clock) -> bool:
    """Stop logging; returns whether it was on.

    Args:
        db: The library, open for writing.
        drop: Whether to delete the events, too.
        clock: Gives the present.

    Raises:
        Refused: The file is no library, or is read only.
    """
    require_own(db)

    def off(db: Database) -> bool:
        state, tables = log_state(db), tables_of(db)
        tables.drop()
        if drop:
            tables.drop_tables()
        elif state is not None and state.is_on:
            db.connection.execute(
                "UPDATE event_log SET is_on = 0, complete = 0, switched_at = ?", (clock(),))
        return state is not None and state.is_on

    return in_transaction(db, off)


def forget_events(db: Database, sessions: Sequence[str], now: int) -> None:
    """Delete the events of sessions that are forgotten.

    Args:
        db: The library, in a transaction, with ``secure_delete``.
        sessions: Their ids.
        now: Epoch ms.
    """
    if not has_events(db):
        return
    connection = db.connection
    newest = "SELECT max(id) FROM events"
    ((before,),) = connection.execute(newest).fetchall()
    connection.executemany("DELETE FROM events WHERE stream_id = ?", ((one,) for one in sessions))
    ((after,),) = connection.execute(newest).fetchall()
    if before is not None and after != before:
        # Readers of all sessions go on after the newest event, whose number must not come again.
        connection.execute(sql.FORGOTTEN, {"id": before, "stream": sql.STORE_STREAM, "at": now})
