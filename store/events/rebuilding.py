"""Makes a fresh library of the event log, and compares the log with the three tables."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from store.engine.companions import beside
from store.engine.database import Database, open_database
from store.engine.schema import REQUIRED_COLUMNS
from store.engine.snapshots import COMPANIONS, PARTIAL, quoted
from store.engine.transactions import explained
from store.errors import Refused
from store.events.log import require_events
from store.events.rows import TABLES, Row, Value, exact, fold, is_same, placed, row_of
from store.events.sql import STORE_STREAM
from store.system.files import AlreadyThere
from store.system.holders import holders
from store.system.locations import PRIVATE_FILE

Progress = Callable[[int, int], None]
"""Takes how many streams are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A library that was made of an event log.

    Attributes:
        path: Its file.
        rows: The number of rows by table.
        differing: Sessions whose rows are not those of the store.
    """

    path: Path
    rows: dict[str, int]
    differing: list[str] = field(default_factory=list)


def streams(connection: sqlite3.Connection) -> list[Value]:
    """Return the sessions that have events, within ``exact``."""
    return [row[0] for row in connection.execute(
        "SELECT DISTINCT stream_id FROM events WHERE stream_id <> ?", (STORE_STREAM,))]


def rows_of(connection: sqlite3.Connection, stream: Value) -> Iterator[tuple[str, Row]]:
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


def _stored(connection: sqlite3.Connection, stream: Value) -> dict[str, int]:
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
    connection, odd = db.file, []
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
    connection: sqlite3.Connection, stream: Value, taking: Callable[[str, Row], None]
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
    db: Database, path: Path, *, progress: Progress = lambda done, total: None
) -> Rebuilt:
    """Make a library of the log alone, and compare it with the store.

    The file gets its name when it is whole.

    Args:
        db: The store with the log.
        path: The new library; its folder must exist.
        progress: Takes how far it is.

    Raises:
        AlreadyThere: Something is at the path.
        Refused: The store has no log that tells all, or the file cannot be written.
        StoreError: The store is damaged, or the disk full.
    """
    state = require_events(db)
    if not state.tells_all:
        raise Refused(
            f"the event log of {db.path} "
            + ("does not have every session yet" if state.is_on else "is off")
            + ", so no store can be made of it; run `backscroll events --on` first")
    if path.exists() or path.is_symlink():
        raise AlreadyThere(f"{path} exists already")
    start = f".{path.name[:100]}."
    partial = path.with_name(f"{start}{secrets.token_hex(4)}{PARTIAL}")
    try:
        _sweep(path.parent, start)
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


def _sweep(folder: Path, start: str) -> None:
    """Delete what rebuilding that was killed has left of the same store."""
    for name in os.listdir(folder):
        path = folder / name
        if name.startswith(start) and PARTIAL in name and not holders([path]):
            path.unlink(missing_ok=True)


def _make(db: Database, partial: Path, path: Path, progress: Progress) -> Rebuilt:
    with contextlib.closing(open_database(partial, create=True)) as made:
        new = made.connection
        new.execute("PRAGMA foreign_keys = OFF")
        new.execute("BEGIN IMMEDIATE")
        counts = dict.fromkeys(TABLES, 0)

        def take(table: str, row: Row) -> None:
            marks = ", ".join(placed(value) for value in row)
            new.execute(f"INSERT INTO {table} VALUES ({marks})", row)
            counts[table] += 1

        db.connection.execute("BEGIN")
        try:
            odd = differing(db, take, progress)
        finally:
            db.connection.execute("COMMIT")
        new.execute("COMMIT")
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return Rebuilt(path, counts, odd)



