"""Transactions on a store, and messages for SQLite's errors.

Every write runs in ``transaction``. ``explained`` turns an error of SQLite into one line that
says what to do.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator

from store.engine.access import damaged
from store.errors import Refused, StoreError
from store.system.paths import resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, TypeVar

    from store.engine.connection import Connection
    from store.engine.database import Database

    F = TypeVar("F", bound=Callable[..., Any])

POLL_S = 0.1
"""Seconds between tries for a lock, after SQLite's own ``busy_timeout`` has passed."""
VERB_PATIENCE_S = 30.0
"""So long a person's change waits for other writers, in browser and command line."""
_LEAST_FREE = 64 << 10
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_OF_THE_FILE = _LOCKED | _DAMAGED - {sqlite3.SQLITE_FORMAT} | {
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
}  # fmt: skip
"""Errors about the file; any other is a bug in a query."""
_LASTING = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FULL}
_READ_FAILED = {
    sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_FSTAT,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
}  # fmt: skip


class OneStatement:
    """A change that is one statement, outside of a transaction."""

    def __init__(
        self, sql: str, values: dict[str, object], has_written: Callable[[Any], bool],
        has_failed: Callable[[BaseException], bool],
    ) -> None:
        """Name the statement.

        Args:
            sql: The statement, which finds one row.
            values: Its values.
            has_written: Takes the row; returns whether the change is written.
            has_failed: The same with the error of the statement, which it may raise.
        """
        self.sql, self.values = sql, values
        self.has_written, self.has_failed = has_written, has_failed


class OfSession:
    """A change of the rows of one session alone.

    On a server it waits for no writer of another session.
    """

    def __init__(
        self, session_id: str, change: Callable[[Database], Any],
        at_once: Callable[[Database], OneStatement | None] | None = None,
    ) -> None:
        """Name the session.

        Args:
            session_id: The session.
            change: Takes the store, in a transaction.
            at_once: On a server, returns the statement that does the same, which is tried before;
                None where it takes more than one.
        """
        self.session_id, self._change, self.at_once = session_id, change, at_once

    def __call__(self, db: Database) -> Any:
        """Run the change."""
        return self._change(db)


_BESIDE_OTHERS: set[Callable[..., Any]] = set()


def beside_others(verb: F) -> F:
    """Note that a verb calls ``Database.lock_session`` for each session that it looks at.

    On a server such a verb waits for no recorder of another session.

    Args:
        verb: The function that is given to ``in_transaction``.
    """
    _BESIDE_OTHERS.add(verb)
    return verb


def is_beside_others(change: Callable[..., Any]) -> bool:
    """Return whether a change locks what it changes, so that others may write other sessions."""
    return isinstance(change, OfSession) or change in _BESIDE_OTHERS


@contextlib.contextmanager
def transaction(
    connection: Connection, path: str | Path | None = None, *, wait_s: float = 0.0,
    begin: Callable[[], object] | None = None,
) -> Iterator[None]:
    """Run the block in ``BEGIN IMMEDIATE`` ... ``COMMIT``, rolled back on any error.

    Args:
        connection: A writing connection in autocommit mode.
        path: The store's file: errors of SQLite are raised as a ``StoreError`` that names
            it. None raises them as they are.
        wait_s: How long to wait for other writers, beyond ``busy_timeout``.
        begin: Begins it, instead of ``BEGIN IMMEDIATE``.

    Raises:
        StoreError: With ``path``: the store is locked, read only, full or damaged.
        sqlite3.Error: The same without ``path``.
    """
    try:
        _patiently(begin or (lambda: connection.execute("BEGIN IMMEDIATE")), wait_s)
        try:
            yield
            _patiently(lambda: connection.execute("COMMIT"), wait_s)
        except BaseException:
            roll_back(connection)
            raise
    except sqlite3.DatabaseError as error:
        if path is None:
            raise
        raise explained(error, path) from error


@contextlib.contextmanager
def unmoving(db: Database) -> Iterator[None]:
    """Have all statements of the block see the same state: others may write between two of them.

    Args:
        db: The store; in a transaction nothing is to do.
    """
    if db.connection.in_transaction:
        yield
        return
    db.connection.execute(db.sql.begin_unmoving)
    try:
        yield
    finally:
        if db.connection.in_transaction:
            db.connection.execute("COMMIT")


class Patience:
    """How long something waits for other writers; between tries it sleeps ``POLL_S``."""

    def __init__(self, wait_s: float | None = None) -> None:
        """Start to wait.

        Args:
            wait_s: Seconds; as long as a person's change waits where none are given.
        """
        self._until = time.monotonic() + (VERB_PATIENCE_S if wait_s is None else wait_s)

    def lasts(self, error: BaseException) -> bool:
        """Return whether to try again after an error: another one writes, and may soon end."""
        return is_busy(error) and time.monotonic() < self._until


def roll_back(connection: Connection) -> None:
    """Undo a transaction that has failed."""
    # On a full disk SQLite has already rolled back; a server that is gone, too.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _patiently(statement: Callable[[], object], wait_s: float) -> None:
    patience = Patience(wait_s)
    while True:
        try:
            statement()
            return
        except sqlite3.OperationalError as error:
            if not patience.lasts(error):
                raise
            time.sleep(POLL_S)


def primary_code(error: BaseException) -> int:
    """Return SQLite's primary result code of an error; 0 if it has none."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_busy(error: BaseException) -> bool:
    """Return whether the error means that another connection holds a lock."""
    return isinstance(error, sqlite3.OperationalError) and primary_code(error) in _LOCKED


def is_lost(error: BaseException) -> bool:
    """Return whether an error says that the connection to a server is gone."""
    return any(getattr(one, "is_lost", False) for one in (error, error.__cause__))


def is_of_a_server(error: BaseException | None) -> bool:
    """Return whether an error says that a server cannot be reached or read."""
    from store.engine.server_url import ServerTrouble  # A library in a file does without.

    return error is not None and (is_lost(error) or isinstance(error, ServerTrouble))


def for_user(error: sqlite3.Error, path: str | Path, *, writing: bool = False) -> Exception:
    """Return the exception to raise instead of a SQLite error.

    Args:
        error: The error.
        path: The store's file.
        writing: Whether a verb failed: a temporary error is then ``Refused``.

    Returns:
        An error with a message for users if it is about the file, else the error itself.
    """
    code = primary_code(error)
    if code not in _OF_THE_FILE:
        return error
    found = explained(error, path)
    return Refused(str(found)) if writing and code not in _LASTING else found


def explained(error: sqlite3.Error, path: str | Path) -> StoreError:
    """Return an error with one line for users: what is wrong with the file, and what to do."""
    if (of_server := getattr(error, "for_user", None)) is not None:
        return StoreError(of_server)
    code = getattr(error, "sqlite_errorcode", None) or 0
    primary = code & 0xFF
    if primary in _LOCKED:
        return StoreError(
            f"{path} is locked by another program; wait until it is done, or close it there,"
            " and try again"
        )
    if primary in _DAMAGED:
        return StoreError(damaged(path, str(error)))
    if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and is_full(path)):
        return StoreError(f"the disk of {path} is full; free some space and try again")
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreError(f"{path} is read only; check its permissions")
    if primary == sqlite3.SQLITE_IOERR:
        what = "read" if code in _READ_FAILED else "written"
        return StoreError(f"{path} cannot be {what}: SQLite says {str(error)!r}; check its disk")
    if primary == sqlite3.SQLITE_CANTOPEN:
        return StoreError(
            f"{path} cannot be opened; check the permissions of the file and its folder"
        )
    return StoreError(f"{path} cannot be used as a store: SQLite says {str(error)!r}")


def is_full(path: str | Path) -> bool:
    """Return whether a file's disk has no room for a page and SQLite's index of it."""
    import shutil

    try:
        return shutil.disk_usage(os.path.dirname(resolved(path))).free < _LEAST_FREE
    except OSError:
        return False
