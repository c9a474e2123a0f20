"""Opens SQLite files with the three tables for reading or writing.

Everything here is synchronous and light, so that the first page of sessions can be read
before asyncio is imported; ``store.store`` runs the same functions on its threads.

Library files (recognized by ``application_id``) are created, migrated and indexed. A host's
file, in the contract's plain form or Grida's, is opened without changing its schema.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Hashable, Iterable
from functools import partial

from store.engine import schema
from store.engine.access import (
    Header,
    Opened,
    connect,
    damaged,
    open_for_reading,
    read_header,
)
from store.engine.companions import Signature, beside, inode, signature, size_of
from store.engine.form import Form, detect_form
from store.engine.transactions import explained, is_beside_others, is_full, roll_back
from store.errors import BackscrollError, Refused, StoreError
from store.system.paths import real_path, resolved
from store.system.records import field, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Concatenate, ParamSpec, TypeVar

    from store.engine.connection import Connection
    from store.engine.dialect import Dialect
    from store.engine.server.connection import ServerConnection
    from store.engine.server_url import ServerUrl
    from store.engine.transactions import OneStatement

    P = ParamSpec("P")
    T = TypeVar("T")

__all__ = ["Database", "Form", "detect_form", "in_transaction", "open_database"]


READING = "opened read only"
_MOST_LOCKED = 200
"""Of more sessions, all others are kept from writing: a server has room for some thousand locks."""
SERVERS: dict[str, Callable[..., Database]] = {}
"""By ``Database.place``, what opens a store on a server that this process has opened before."""


@record
class Database:
    """An open connection with the form of its file, or of its database on a server.

    Attributes:
        place: Absolute path of the file. Of a server, a place in our data folder without a
            file, beside which lies what is kept here for the store.
        read_only: Why this connection cannot write, or None if it can.
        file_read_only: Why the file cannot be written at all, or None.
        opened: How it was opened for reading; None for a writing connection.
        written_as: Signature of a file that is open for writing.
        wal: Path of its ``-wal``; empty unless it is open for writing.
        server: The URL of a store on a server; None for a file.
        statements: Long statements by their keys, see ``composed``.
    """

    place: str
    connection: Connection
    form: Form
    read_only: str | None = None
    file_read_only: str | None = None
    opened: Opened | None = None
    written_as: Signature = ()
    wal: str = ""
    server: ServerUrl | None = None
    statements: dict[Hashable, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The ``place`` as a path; the first rows are read without ``pathlib``."""
        from pathlib import Path

        return Path(self.place)

    @property
    def sql(self) -> Dialect:
        """The words of its engine."""
        return self.form.sql

    @property
    def has_types(self) -> bool:
        """Whether values have the types of our tables: a server takes no others for them."""
        return self.server is not None and self.form.name == "own"

    @property
    def name(self) -> str:
        """What it is called in messages: its path, or its URL without the password."""
        return self.place if self.server is None else str(self.server)

    @property
    def json(self) -> Connection:
        """A connection on which SQLite's JSON functions work on texts that are bound."""
        if self.server is None:
            return self.connection
        return self.remote.scratch

    @property
    def file(self) -> sqlite3.Connection:
        """The connection of a file, for what only SQLite has.

        Raises:
            Refused: It is a store on a server.
        """
        if self.server is not None:
            raise Refused(f"{self.server} is on a server: this is for a store in a file")
        return self.connection  # type: ignore[return-value]

    @property
    def remote(self) -> ServerConnection:
        """The connection to a server, for what only PostgreSQL has.

        Raises:
            Refused: It is a store in a file.
        """
        if self.server is None:
            raise Refused(f"{self.place} is a file: this is for a store on a server")
        return self.connection  # type: ignore[return-value]

    def composed(self, key: Hashable, compose: Callable[[], str]) -> str:
        """Return a long statement, which is put together once for a store.

        Args:
            key: Tells it from others; there are few.
            compose: Puts it together.
        """
        found = self.statements.get(key)
        if found is None:
            found = self.statements[key] = compose()
        return found

    def moved(self) -> bool:
        """Return whether the file must be opened again to see its current content.

        Takes one to three ``stat`` calls. A ``live`` connection sees later writes itself; see
        ``store.engine.access`` for the others. A deleted file counts as moved only if it is
        open for writing, since writes to it would be lost.
        """
        if self.server is not None:
            return self.remote.is_closed
        if self.opened is None:
            # Called before each write, so links are not resolved: another target has another inode.
            return self._written_now() != self.written_as
        now = signature(self.opened.path, self.opened.way)
        return bool(now) and now != self.opened.signature

    def is_stale(self) -> bool:
        """Return whether it must be opened again, as ``moved`` does; a server is asked.

        Nobody listens to a server between two statements, so that it is gone, or came back, or
        lets the login do something else, is not seen before the next one.
        """
        if self.moved():
            return True
        try:
            return self.has_other_rights(at_once=True)
        except sqlite3.Error:
            return True

    def has_other_rights(self, *, at_once: bool = False) -> bool:
        """Return whether a server lets the login do something else than when it was opened.

        Args:
            at_once: Ask the server now; else it is asked every two seconds at most.
        """
        return self.server is not None and self.remote.has_other_rights(at_once=at_once)

    def lock_session(self, session_id: str) -> None:
        """Keep others from changing a session until the transaction ends, where they could.

        Args:
            session_id: The session's id.
        """
        if self.server is not None:
            self.remote.lock_session(session_id)

    def lock_sessions(self, find: Callable[[], Iterable[str]]) -> None:
        """Keep others from changing some sessions until the transaction ends, where they could.

        Args:
            find: Returns their ids; called again once they are locked, until it finds no others.
                Before that, a session may get children, or lose them.
        """
        if self.server is None:
            find()
            return
        found, locked = {*find()}, set[str]()
        if len(found) > _MOST_LOCKED:
            self.remote.lock_all()
        while found - locked:
            for session_id in sorted(found - locked):
                self.remote.lock_session(session_id)
            locked |= found
            found = {*find()}

    def beginning_beside_recorders(self) -> Callable[[], None] | None:
        """Return what begins a transaction that calls ``lock_session`` for what it writes.

        None begins one as usual, which is alone. On a server no recorder waits for the other,
        but for one of the same session; verbs, copies and imports wait for each other.
        """
        return None if self.server is None else partial(self.remote.begin_beside_others, None)

    def data_version(self) -> int:
        """Return a number that differs after every foreign commit."""
        return int(self.connection.execute(self.sql.data_version).fetchall()[0][0])

    def _written_now(self) -> Signature:
        """Return the file's current signature; () if it cannot be examined."""
        try:
            main = os.stat(self.place)
            return (main.st_dev, main.st_ino, inode(self.wal))
        except OSError:
            return ()

    def close(self) -> None:
        """Close the connection."""
        if self.opened is not None:
            self.opened.close()
        else:
            self.connection.close()


def in_transaction(
    database: Database,
    change: Callable[Concatenate[Database, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run a function in its own transaction, rolled back on any error.

    Args:
        database: The store, open for writing.
        change: The function; its first argument is the database.
        args: Its further positional arguments.
        kwargs: Its keyword arguments.

    Returns:
        The function's result.

    Raises:
        Refused: The database is open read only; the message says why.
        sqlite3.Error: The file is locked, full or damaged.
    """
    if database.read_only:
        raise Refused(database.read_only)
    if database.server is not None:
        at_once = getattr(change, "at_once", None)
        if at_once is not None and _is_written(database, at_once(database)):
            return None  # type: ignore[return-value]
    # As ``transaction`` without patience does, which a recorder calls with cold caches.
    connection = database.connection
    begin = _beginning(database, change)
    if begin is None:
        connection.execute("BEGIN IMMEDIATE")
    else:
        begin()
    try:
        done = change(database, *args, **kwargs)
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise
    return done


def _is_written(database: Database, statement: OneStatement | None) -> bool:
    """Return whether a change is written by the statement that it consists of."""
    if statement is None:
        return False
    try:
        row = database.connection.execute(statement.sql, statement.values).fetchone()
    except sqlite3.Error as error:
        return statement.has_failed(error)
    return statement.has_written(row)


def _beginning(
    database: Database, change: Callable[..., object]
) -> Callable[[], None] | None:
    """Return what begins a transaction of a change; None begins one beside no other writer."""
    if database.server is None or not is_beside_others(change):
        return None
    return partial(
        database.remote.begin_beside_others, getattr(change, "session_id", None))


def open_database(path: str | Path, *, create: bool = False, write: bool = True) -> Database:
    """Return an open store file.

    A file of a newer version, or one without write permission, is opened read only even with
    ``write``; ``read_only`` then says why.

    Args:
        path: The SQLite file; or the place of a store on a server that was opened before.
        create: Create a library (0600, its folder 0700) if the file is missing or empty.
        write: False opens it read only.

    Raises:
        StoreError: The file is missing or not a store; the message says which and what to do.
    """
    if not os.path.isabs(path := os.fspath(path)):
        path = os.path.join(os.getcwd(), path)
    if path in SERVERS:
        return SERVERS[path](create=create, write=write)
    try:
        if create:
            _create(path)
        header = read_header(path)
        database = _open_reading(path, header)
        if database.form.name == "own" and database.form.version < schema.CURRENT_VERSION:
            database = _bring_up_to_date(database, header)
        if not write or database.file_read_only:
            return database
        database.close()
        return _open_writing(path)
    except sqlite3.Error as error:
        raise explained(error, path) from error


def _open_reading(path: str, header: Header) -> Database:
    real = resolved(path)
    _refuse_truncated(path, header)
    forms: list[Form] = []
    damage: list[str] = []

    def prepare(connection: sqlite3.Connection) -> None:
        try:
            schema.apply_pragmas(connection)
            forms.append(detect_form(connection, path))
        except sqlite3.DatabaseError as error:
            if not str(error).startswith("malformed database schema"):
                raise
            # With this pragma SQLite skips what it cannot parse; nothing is written here.
            connection.execute("PRAGMA writable_schema = ON")
            schema.apply_pragmas(connection)
            forms.append(detect_form(connection, path))
            damage.append(str(error))

    ours = header.application_id == schema.APPLICATION_ID
    opened = open_for_reading(real, header, ours=ours, prepare=prepare)
    form = forms[-1]
    reason = _why_read_only(path, form)
    if damage:
        reason = f"the schema of {path} is damaged ({damage[-1]}), so it is {READING}"
    elif form.name != "own":
        from store.engine.rebuilt import not_ordinary, open_rebuilt  # Only for a host's file.

        if odd := not_ordinary(opened.connection):
            reason = f"{', '.join(odd)} of {path}: not an ordinary table, so the file is {READING}"
            opened.close()
            opened = open_rebuilt(real_path(path))
            schema.apply_pragmas(opened.connection)
    if opened.no_space and reason is None:
        reason = f"{_no_space(path)}, so it is {READING}; free some space to change it"
    return Database(path, opened.connection, form, reason or READING, reason, opened)


def _open_writing(path: str) -> Database:
    connection = connect(resolved(path), "mode=rw")
    try:
        schema.apply_pragmas(connection)
        form = detect_form(connection, path)
        if form.name == "own":
            _renew_event_log(connection)
        real = resolved(path)
        return Database(
            path, connection, form, written_as=signature(real, "live"), wal=beside(real, "-wal"),
        )
    except BaseException:
        connection.close()
        raise


def _renew_event_log(connection: sqlite3.Connection) -> None:
    """Give the event log of a library the triggers of this version, if it has one."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'event_log'").fetchone():
        from store.engine.event_log import FileEvents  # Few libraries have a log.

        FileEvents(connection).renew()


def _bring_up_to_date(database: Database, header: Header) -> Database:
    """Migrate a library file of an older version after a backup of it, and open it again."""
    path = database.place
    version = database.form.version
    if database.file_read_only:
        database.close()
        way_out = "" if database.opened and database.opened.no_space else (
            "; open a copy in a folder that you can write to"
        )
        raise StoreError(
            f"{path} has the older version {version} and cannot be"
            f" migrated: {database.file_read_only}{way_out}"
        )
    try:
        _back_up(database)
    finally:
        database.close()
    _on_connection(path, schema.migrate)
    return _open_reading(path, header)


def migration_backup(path: Path, version: int) -> Path:
    """Return where a library is kept as it was before its migration.

    Args:
        path: The library.
        version: The version that it had.
    """
    return beside(real_path(path), f".version-{version}")


def _back_up(database: Database) -> None:
    """Keep a library of an older version as it is now.

    A later one of the same version replaces it: a killed process may have migrated nothing.
    Where another process has migrated the library meanwhile, it has made the backup too.
    """
    from store.engine.snapshots import write_snapshot

    version = database.form.version
    target = migration_backup(database.path, version)
    try:
        write_snapshot(
            database.file, target, replace=True,
            wanted=lambda made: made.version == version)
    except BackscrollError as error:
        raise StoreError(
            f"{database.place} has the older version {version} and is not migrated, as no backup of"
            f" it can be made: {error}"
        ) from error


def _on_connection(path: str, work: Callable[[sqlite3.Connection], None]) -> None:
    connection = connect(resolved(path), "mode=rw")
    try:
        schema.apply_pragmas(connection)
        work(connection)
    finally:
        connection.close()


def _create(path: str) -> None:
    """Create a library if the file is missing, empty, or a SQLite file without tables."""
    try:
        if not os.path.exists(path):
            _make(real_path(path))
        if os.path.isfile(path) and os.stat(path).st_size == 0:
            _on_connection(path, schema.migrate)
            return
    except OSError as error:
        raise StoreError(cannot_be_made(path, error)) from error
    header = read_header(path)
    if header.application_id == 0 and header.user_version == 0 and os.access(path, os.W_OK):
        _on_connection(path, _migrate_if_bare)


_WRITE_VERSION, _READ_VERSION, _WAL = 18, 19, 2
"""Header offsets and value for WAL mode (sqlite.org/fileformat.html, 1.3.3)."""


def _make(path: Path) -> None:
    """Create a library file atomically, so that no process sees a partial one."""
    from store.system.files import AlreadyThere, write_whole
    from store.system.locations import private_folder

    private_folder(path.parent)
    # Another process may have created it meanwhile, which is fine.
    with contextlib.suppress(AlreadyThere):
        write_whole(path, [empty_image()])


def empty_image() -> bytes:
    """Return the bytes of a library file without sessions."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        schema.migrate(connection)
        image = bytearray(connection.serialize())
    finally:
        connection.close()
    image[_WRITE_VERSION], image[_READ_VERSION] = _WAL, _WAL
    return bytes(image)


def _migrate_if_bare(connection: sqlite3.Connection) -> None:
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        schema.migrate(connection)


def _refuse_truncated(path: str, header: Header) -> None:
    real = resolved(path)
    if any(size_of(beside(real, ending)) > 0 for ending in ("-wal", "-journal")):
        return
    size = size_of(real)
    if size < header.promised_bytes:
        raise StoreError(damaged(path, f"cut off: {size} of {header.promised_bytes} bytes"))


def _why_read_only(path: str, form: Form) -> str | None:
    if form.is_newer:
        newer = "a newer Backscroll" if form.name == "own" else "a newer Grida"
        return (
            f"{path} was written by {newer} (version {form.version}, known up to"
            f" {form.newest_known}), so it is opened read only; update Backscroll to"
            " write to it"
        )
    if not os.access(path, os.W_OK):
        return f"{path} is not writable, so it is opened read only"
    if not os.access(os.path.dirname(resolved(path)), os.W_OK):
        return f"the folder of {path} is not writable, so it is opened read only"
    return None


def cannot_be_made(path: str | Path, error: OSError) -> str:
    """Return the error message for a store that cannot be created."""
    return (
        f"{path} cannot be created: {error.strerror or error}; name a place that you may write to"
        " with --store, or set XDG_DATA_HOME"
    )


def _no_space(path: str) -> str:
    if is_full(path):
        return f"the disk of {path} is full"
    return f"SQLite cannot create its files beside {path}"
