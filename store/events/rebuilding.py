"""Makes a fresh library of the event log, and compares the log with the three tables."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from store.engine.companions import beside
from store.engine.connection import Connection, dialect_of
from store.engine.database import Database, open_database
from store.engine.dialect import quoted
from store.engine.opening import open_target
from store.engine.schema import REQUIRED_COLUMNS
from store.engine.server_url import ServerUrl
from store.engine.snapshots import COMPANIONS, left_partials, partial_beside
from store.engine.transactions import explained, transaction, unmoving
from store.errors import Refused
from store.events.log import require_events
from store.events.rows import TABLES, Row, Text, Value, exact, fold, is_same, placed, row_of
from store.events.sql import STORE_STREAM
from store.system.files import AlreadyThere
from store.system.locations import PRIVATE_FILE

Progress = Callable[[int, int], None]
"""Takes how many streams are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A library that was made of an event log.

    Attributes:
        path: Its file; of a server, its place in our data folder.
        name: What it is called in messages: the path, or the URL.
        rows: The number of rows by table.
        differing: Sessions whose rows are not those of the store: the log is wrong, or a
            server cannot hold one of their values.
        left: The number of rows of the store's other tables that hold what no log has, by table;
            empty ones are not named.
    """

    path: Path
    name: str
    rows: dict[str, int]
    differing: list[str] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)


NOT_IN_A_LOG = ("original_records", "attachments", "system_prompts", "verb_log", "source_units")
"""Tables beside the three with what a user may miss in a store that is made of a log."""


def _left(db: Database) -> dict[str, int]:
    counts = {table: db.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
              for table in NOT_IN_A_LOG}
    return {table: count for table, count in counts.items() if count}


def streams(connection: Connection) -> list[Value]:
    """Return the sessions that have events, within ``exact``."""
    return [row[0] for row in connection.execute(
        "SELECT DISTINCT stream_id FROM events WHERE stream_id <> ?", (STORE_STREAM,))]


def rows_of(connection: Connection, stream: Value) -> Iterator[tuple[str, Row]]:
    """Yield the table and the values of each row that a session's events make.

    Args:
        connection: The library, within ``exact``.
        stream: The session's id.
    """
    for table, events in fold(connection, stream).rows():
        yield table, row_of(connection, stream, table, events)


_SELECT = {
    table: "SELECT " + ", ".join(quoted(name) for name in names) + f" FROM main.{table}"
    for table, names in REQUIRED_COLUMNS.items()
}
_OWNER = {"chat_sessions": "id", "chat_messages": "session_id", "chat_parts": "session_id"}


def _stored(connection: Connection, stream: Value) -> dict[str, int]:
    """Return how many rows a session has in each of the three tables."""
    return {table: connection.execute(
        f"SELECT count(*) FROM {table} WHERE {column} = {placed(stream)}", (stream,)
    ).fetchone()[0] for table, column in _OWNER.items()}  # fmt: skip


def differing(
    db: Database, taking: Callable[[str, Row], None] = lambda table, row: None,
    progress: Progress = lambda done, total: None,
) -> list[str]:
    """Return the sessions whose rows in the three tables are not those that the log makes.

    Args:
        db: The library; in a transaction, if others may write.
        taking: Takes each row that the log makes.
        progress: Takes how far it is.
    """
    connection, odd = db.connection, []
    with exact(connection):
        found = streams(connection)
        known = {bytes(one) for one in found if isinstance(one, bytes)}
        without = [row[0] for row in connection.execute("SELECT id FROM chat_sessions")
                   if row[0] not in known]
        for number, stream in enumerate([*found, *without], 1):
            try:
                same = _is_same(connection, stream, taking)
            except ValueError:  # Events are missing.
                same = False
            if not same:
                odd.append(str(stream))
            progress(number, len(found) + len(without))
    return odd


def _is_same(
    connection: Connection, stream: Value, taking: Callable[[str, Row], None]
) -> bool:
    """Return whether the rows that a session's events make are those of the three tables."""
    left, same = _stored(connection, stream), True
    for table, row in rows_of(connection, stream):
        left[table] -= 1
        taking(table, row)
        there = connection.execute(
            f"{_SELECT[table]} WHERE id = {placed(row[0])}", (row[0],)).fetchone()
        same = same and there is not None and is_same(there, row)
    return same and not any(left.values())


def rebuild(
    db: Database, path: Path | ServerUrl, *, progress: Progress = lambda done, total: None
) -> Rebuilt:
    """Make a library of the log alone, and compare it with the store.

    A file gets its name when it is whole; on a server all rows come in one transaction.

    Args:
        db: The store with the log.
        path: The new library; its folder must exist. Or a database without sessions.
        progress: Takes how far it is.

    Raises:
        AlreadyThere: Something is at the path, or the database has sessions.
        Refused: The store has no log that tells all, or the file cannot be written.
        StoreError: The store is damaged, the disk full, or the server takes no such rows.
    """
    state = require_events(db)
    if not state.tells_all:
        raise Refused(
            f"the event log of {db.name} "
            + ("does not have every session yet" if state.is_on else "is off")
            + ", so no store can be made of it; run `backscroll events --on` first")
    if isinstance(path, ServerUrl):
        return _make_on_server(db, path, progress)
    if path.exists() or path.is_symlink():
        raise AlreadyThere(f"{path} exists already")
    partial = partial_beside(path)
    try:
        for left in left_partials(path):
            left.unlink(missing_ok=True)
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
        made = _make(db, partial, path, progress)
        try:
            os.link(partial, path)
        except FileExistsError as error:
            raise AlreadyThere(f"{path} exists already") from error
        except OSError:
            partial.rename(path)  # A file system without links.
        return made
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}") from error
    except sqlite3.Error as error:
        raise explained(error, path) from error
    finally:
        for ending in ("", *COMPANIONS):
            beside(partial, ending).unlink(missing_ok=True)


def _make(db: Database, partial: Path, path: Path, progress: Progress) -> Rebuilt:
    with contextlib.closing(open_database(partial, create=True)) as made:
        new = made.connection
        new.execute("PRAGMA foreign_keys = OFF")
        new.execute("BEGIN IMMEDIATE")
        counts, odd = _copy(db, new, progress)
        new.execute("COMMIT")
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return Rebuilt(path, str(path), counts, odd, _left(db))


def _make_on_server(db: Database, url: ServerUrl, progress: Progress) -> Rebuilt:
    with contextlib.closing(open_target(url.dsn, create=True, write=True)) as made:
        if made.form.name != "own":
            raise Refused(f"{made.name} belongs to another program: nothing is made there")
        if made.read_only:
            raise Refused(made.read_only)
        try:
            with transaction(made.connection):
                if made.connection.execute("SELECT 1 FROM chat_sessions LIMIT 1").fetchone():
                    raise AlreadyThere(f"{made.name} has sessions already")
                counts, odd = _copy(db, made.connection, progress)
        except sqlite3.Error as error:
            raise explained(error, made.path) from error
    return Rebuilt(made.path, made.name, counts, odd, _left(db))


_AT_ONCE = 200
"""Rows of a table that are written together."""


def _copy(db: Database, new: Connection, progress: Progress) -> tuple[dict[str, int], list[str]]:
    """Write the rows that a log makes; return their number by table, and what differs.

    Args:
        db: The store with the log.
        new: The new library, in a transaction.
        progress: Takes how far it is.
    """
    counts = dict.fromkeys(TABLES, 0)
    waiting: dict[str, list[Row]] = {table: [] for table in TABLES}
    messages: set[Value] = set()
    elsewhere: list[Row] = []
    changed: dict[str, None] = {}
    is_file = dialect_of(new).name == "sqlite"

    def write(table: str, rows: list[Row]) -> None:
        for kinds, some in groupby(rows, key=lambda row: tuple(map(type, row))):
            marks = ", ".join("CAST(? AS TEXT)" if is_file and kind is Text else "?"
                              for kind in kinds)
            new.executemany(f"INSERT INTO {table} VALUES ({marks})", some)
        rows.clear()

    def flush() -> None:
        for table in TABLES:
            write(table, waiting[table])

    def take(table: str, row: Row) -> None:
        counts[table] += 1
        if not is_file and not all(map(_can_be_on_a_server, row)):
            changed[str(row[list(REQUIRED_COLUMNS[table]).index(_OWNER[table])])] = None
        if table == "chat_sessions":
            messages.clear()
        elif table == "chat_messages":
            messages.add(row[0])
        elif row[1] not in messages:
            # Its message is in a session that comes later, perhaps.
            elsewhere.append(row)
            return
        waiting[table].append(row)
        if len(waiting[table]) >= _AT_ONCE:
            flush()

    with unmoving(db):
        odd = differing(db, take, progress)
    flush()
    write("chat_parts", elsewhere)
    return counts, list(dict.fromkeys([*odd, *changed]))


def _can_be_on_a_server(value: Value) -> bool:
    """Return whether a server has a value as it is: no bytes, and no text with NUL."""
    if not isinstance(value, bytes):
        return True
    try:
        return isinstance(value, Text) and "\0" not in value.decode()
    except UnicodeDecodeError:
        return False
