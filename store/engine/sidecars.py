"""Files beside a store that are made from it: its search index, its statistics.

Each may be deleted at any time and is then made again. Its table ``about`` has named values:
the ``format``, which ``store`` it was made from, and how far it is.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from store.engine.access import read_header
from store.engine.companions import beside
from store.engine.database import SERVERS
from store.engine.schema import APPLICATION_ID
from store.errors import StoreError
from store.system.locations import PRIVATE_FILE, data_dir, private_file, private_folder
from store.system.paths import real_path
from store.system.stopping import Stop

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock
    fcntl = None  # type: ignore[assignment]

BUSY_MS, LOG_BUSY_MS = 60_000, 500
LOCK_SUFFIX = "-lock"
_LOCK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A kind of such files.

    Attributes:
        suffix: What the name of a library's file ends with.
        format: A file of another format is made again.
        tables: The statements that create its tables.
        names: The names of these tables.
        what: Its name in messages.
        error: What is raised where it cannot be used.
    """

    suffix: str
    format: str
    tables: str
    names: tuple[str, ...]
    what: str
    error: type[StoreError]

    def path(self, store: Path) -> Path:
        """Return the place of a store's file: beside a library, else in our data folder.

        Beside ``Database.path`` for a store on a server.

        Raises:
            StoreError: The store is missing, or no SQLite file.
        """
        if str(store) in SERVERS:
            private_folder(store.parent)
            return beside(store, self.suffix)
        real = real_path(store)
        own = read_header(real).application_id == APPLICATION_ID
        if own and os.access(real.parent, os.W_OK):
            return beside(real, self.suffix)
        name = blake2b(os.fsencode(real), digest_size=16).hexdigest()
        return data_dir() / "beside" / f"{name}{self.suffix}"

    def open_for_writing(self, path: Path) -> sqlite3.Connection:
        """Return the open file, created if it is missing, made again if it is unusable.

        Raises:
            StoreError: It cannot be created; of the type ``error``.
        """
        try:
            try:
                return self._opened_for_writing(path)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                remove_files(path)
                return self._opened_for_writing(path)
        except (sqlite3.Error, OSError) as error:
            raise self.unusable(path, error) from error

    def open_existing(self, path: Path) -> sqlite3.Connection | None:
        """Return the open file for writing; None if there is none of this format.

        Raises:
            sqlite3.Error: It is damaged or locked.
        """
        if not path.exists():
            return None
        connection = _connect(path, "rw")
        if value_of(connection, "format") == self.format:
            return connection
        connection.close()
        return None

    def change(self, store: Path, work: Callable[[sqlite3.Connection], None]) -> None:
        """Have work done on a store's file; one of another format or that is damaged is deleted.

        Args:
            store: The store's file.
            work: Takes the open file.

        Raises:
            StoreError: The file cannot be changed; of the type ``error``.
        """
        path = self.path(store)
        try:
            file = self.open_existing(path)
            if file is None:
                remove_files(path)
                return
            try:
                work(file)
            finally:
                file.close()
        except sqlite3.Error as error:
            if not is_damage(error):
                raise self.unusable(path, error) from error
            remove_files(path)
        except OSError as error:
            raise self.unusable(path, error) from error

    def has_tables(self, connection: sqlite3.Connection) -> bool:
        """Return whether all its tables are there."""
        marks = ", ".join("?" * len(self.names))
        (count,) = connection.execute(
            f"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ({marks})",
            self.names,
        ).fetchone()
        return int(count) == len(self.names)

    def open_for_reading(self, path: Path) -> sqlite3.Connection | None:
        """Return the open file; None if there is none that can be used."""
        if not path.exists():
            return None
        connection = None
        try:
            connection = _connect(path, "ro")
            if value_of(connection, "format") == self.format:
                return connection
        except sqlite3.Error:
            pass  # The store itself is read instead, more slowly; screens say so.
        if connection is not None:
            connection.close()
        return None

    def is_damaged(self, path: Path) -> bool:
        """Return whether it is this file, not its store, that cannot be read."""
        try:
            opened = self.open_existing(path)
            if opened is None:
                return True
            try:
                ok = opened.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
                return not ok or not self.has_tables(opened)
            finally:
                opened.close()
        except sqlite3.DatabaseError as error:
            return is_damage(error)

    def _opened_for_writing(self, path: Path) -> sqlite3.Connection:
        private_file(path)
        connection = _connect(path, "rw")
        try:
            if value_of(connection, "format") == self.format:
                return connection
            if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                connection.close()
                remove_files(path)
                private_file(path)
                connection = _connect(path, "rw")
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            with transaction(connection):
                if value_of(connection, "format") is None:
                    for statement in self.tables.split(";\n"):
                        connection.execute(statement)
                    set_values(connection, format=self.format, generation=0)
            return connection
        except BaseException:
            connection.close()
            raise

    @contextlib.contextmanager
    def lock(self, path: Path, stop: Stop, standing_by: Callable[[], None]) -> Iterator[bool]:
        """Hold the lock that lets one process keep a file; yields False if stopped before that.

        Args:
            path: The file; the lock file is beside it and is not deleted.
            stop: Ends the waiting.
            standing_by: Called while another process holds the lock.

        Raises:
            StoreError: The lock file cannot be created; of the type ``error``.
        """
        if fcntl is None:
            yield True
            return
        try:
            private_folder(path.parent)
            lock = os.open(beside(path, LOCK_SUFFIX), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        except OSError as error:
            raise self.unusable(path, error) from error
        try:
            yield _acquired(lock, stop, standing_by)
        finally:
            os.close(lock)

    def unusable(self, path: Path, error: BaseException) -> StoreError:
        """Return the error message for a file that cannot be used."""
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        return self.error(
            f"the {self.what} {path} cannot be used: {reason}; it may be deleted at any time"
        )


def _acquired(lock: int, stop: Stop, standing_by: Callable[[], None]) -> bool:
    while not stop.is_set():
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            standing_by()
            stop.wait(_LOCK_EVERY_S)
        except OSError:
            # Some network file systems have no locks; two processes do the same work then.
            return True
    return False


def store_identity(store: Path) -> str:
    """Return what another file at the same place differs in."""
    if str(store) in SERVERS:
        return store.name
    status = os.stat(store)
    return f"{status.st_dev} {status.st_ino}"


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}").fetchall()
        if mode == "rw":
            connection.execute("PRAGMA secure_delete = ON").fetchall()
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA cache_size = -16384")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except UnicodeDecodeError as error:
        connection.close()
        raise damage_of(error) from error
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one write transaction, rolled back on any error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def empty_log(connection: sqlite3.Connection) -> None:
    """Remove what the write-ahead log holds of earlier content, unless it is being read."""
    connection.execute(f"PRAGMA busy_timeout = {LOG_BUSY_MS}").fetchall()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}").fetchall()


def value_of(connection: sqlite3.Connection, name: str) -> str | int | None:
    """Return a value of ``about``; None if it is not set, or nothing is in the file.

    Args:
        connection: The open file.
        name: The value's name.
    """
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchone():
        return None
    row = connection.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
    return row[0] if row else None


def number_of(connection: sqlite3.Connection, name: str, otherwise: int = 0) -> int:
    """Return a number of ``about``.

    Args:
        connection: The open file.
        name: The number's name.
        otherwise: What is returned if it is not set.
    """
    value = value_of(connection, name)
    return value if isinstance(value, int) else otherwise


def set_values(connection: sqlite3.Connection, **values: str | int) -> None:
    """Set values of ``about``, within the caller's transaction."""
    connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", values.items())


def remove_files(path: Path) -> None:
    """Delete such a file."""
    for ending in ("-wal", "-shm", ""):
        beside(path, ending).unlink(missing_ok=True)


def damage_of(error: UnicodeDecodeError) -> sqlite3.DatabaseError:
    """Return the error of a damaged file for one that its message cannot be decoded of.

    SQLite's message has the file's own bytes, where the names of its tables are damaged.
    """
    damage = sqlite3.DatabaseError(f"malformed database schema: {error}")
    damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return damage


def is_damage(error: BaseException) -> bool:
    """Return whether an error says that the file is damaged or something else."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    if code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT):
        return True
    # A table is missing: something else wrote to the file.
    return isinstance(error, sqlite3.OperationalError) and code & 0xFF == sqlite3.SQLITE_ERROR
