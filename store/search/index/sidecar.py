"""The index file of a store: its place, tables and format.

``block``: documents that were indexed together; ``alive`` is a bitmap of the documents that
are current, ``heads`` of the first document of each message (see ``postings``).
``posting``: by block and term, the documents with the term.
``message``: what is indexed. A message has one document or, where it is long, several in a
row, from ``place`` on; ``ranges_json`` then has the first and last part index of each.
``fingerprint`` tells whether the rows still are what was indexed.
``dead``: documents that newer ones replaced; they go when their block is
merged or cleared.
``about``: the format, which store it is, and how far the index is.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from zlib import crc32

from store.engine.access import read_header
from store.engine.companions import beside
from store.engine.schema import APPLICATION_ID
from store.errors import StoreError
from store.search.index.terms import TERMS_VERSION
from store.system.locations import data_dir, private_file
from store.system.paths import real_path

FORMAT = f"3 {TERMS_VERSION}"
"""An index file of another format is made again."""
SUFFIX = ".search"
BUSY_MS, LOG_BUSY_MS = 60_000, 500
EVERYTHING, NOTHING = -(1 << 62), 1 << 62
"""Values of ``since``: all messages are in the index, or none."""
LARGE_BACKLOG = 50
"""With more changed sessions than these waiting, the index does not count as complete."""

_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE session (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE block (
    number INTEGER PRIMARY KEY,
    size   INTEGER NOT NULL,
    newest INTEGER NOT NULL,
    oldest INTEGER NOT NULL,
    alive  BLOB NOT NULL,
    heads  BLOB NOT NULL
);
CREATE TABLE posting (
    block INTEGER NOT NULL,
    term  BLOB NOT NULL,
    body  BLOB NOT NULL,
    PRIMARY KEY (block, term)
) WITHOUT ROWID;
CREATE TABLE message (
    block       INTEGER NOT NULL,
    place       INTEGER NOT NULL,
    session     INTEGER NOT NULL,
    key         INTEGER NOT NULL,
    id          TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    documents   INTEGER NOT NULL,
    ranges_json TEXT,
    PRIMARY KEY (block, place)
) WITHOUT ROWID;
CREATE INDEX message_key ON message(session, key);
CREATE TABLE dead (
    block     INTEGER NOT NULL,
    place     INTEGER NOT NULL,
    documents INTEGER NOT NULL,
    session   INTEGER NOT NULL,
    PRIMARY KEY (block, place)
) WITHOUT ROWID;
CREATE INDEX dead_session ON dead(session);
"""


class IndexUnusable(StoreError):
    """The index file is damaged, locked or on a full disk; the message says which."""


def index_path(store: Path) -> Path:
    """Return the place of a store's index: beside a library, else in our data folder.

    Raises:
        StoreError: The store is missing, or no SQLite file.
    """
    real = real_path(store)
    own = read_header(real).application_id == APPLICATION_ID
    if own and os.access(real.parent, os.W_OK):
        return beside(real, SUFFIX)
    name = blake2b(os.fsencode(real), digest_size=16).hexdigest()
    return data_dir() / "beside" / f"{name}{SUFFIX}"


def store_identity(store: Path) -> str:
    """Return what another file at the same place differs in."""
    status = os.stat(store)
    return f"{status.st_dev} {status.st_ino}"


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Return the open index file, created if it is missing, made again if it is unusable.

    Raises:
        IndexUnusable: It cannot be created.
    """
    try:
        try:
            return _opened_for_writing(path)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            remove_files(path)
            return _opened_for_writing(path)
    except (sqlite3.Error, OSError) as error:
        raise unusable(path, error) from error


def open_existing(path: Path) -> sqlite3.Connection | None:
    """Return the open index file for writing; None if there is none of this format.

    Raises:
        sqlite3.Error: It is damaged or locked.
    """
    if not path.exists():
        return None
    connection = _connect(path, "rw")
    if value_of(connection, "format") == FORMAT:
        return connection
    connection.close()
    return None


def has_tables(index: sqlite3.Connection) -> bool:
    """Return whether all tables of an index are there."""
    (count,) = index.execute(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN"
        " ('about', 'session', 'block', 'posting', 'message', 'dead')"
    ).fetchone()
    return int(count) == 6


def open_for_reading(path: Path) -> sqlite3.Connection | None:
    """Return the open index file; None if there is none that can be used."""
    if not path.exists():
        return None
    connection = None
    try:
        connection = _connect(path, "ro")
        if value_of(connection, "format") == FORMAT:
            return connection
    except sqlite3.Error:
        pass  # Without its index the store is searched row by row, which the screen says.
    if connection is not None:
        connection.close()
    return None


def _opened_for_writing(path: Path) -> sqlite3.Connection:
    private_file(path)
    connection = _connect(path, "rw")
    try:
        if value_of(connection, "format") == FORMAT:
            return connection
        if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            connection.close()
            remove_files(path)
            private_file(path)
            connection = _connect(path, "rw")
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        with transaction(connection):
            if value_of(connection, "format") is None:
                for statement in _TABLES.split(";\n"):
                    connection.execute(statement)
                set_values(connection, format=FORMAT, generation=0)
        return connection
    except BaseException:
        connection.close()
        raise


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}").fetchall()
        if mode == "rw":
            connection.execute("PRAGMA secure_delete = ON").fetchall()
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA cache_size = -16384")
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
    """Remove what the write-ahead log holds of earlier content, unless a search reads it now."""
    connection.execute(f"PRAGMA busy_timeout = {LOG_BUSY_MS}").fetchall()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}").fetchall()


def value_of(connection: sqlite3.Connection, name: str) -> str | int | None:
    """Return a value of ``about``; None if it is not set, or nothing is in the file.

    Args:
        connection: The open index.
        name: The value's name.
    """
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchone():
        return None
    row = connection.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
    return row[0] if row else None


def number_of(connection: sqlite3.Connection, name: str, otherwise: int = 0) -> int:
    """Return a number of ``about``.

    Args:
        connection: The open index.
        name: The number's name.
        otherwise: What is returned if it is not set.
    """
    value = value_of(connection, name)
    return value if isinstance(value, int) else otherwise


def set_values(connection: sqlite3.Connection, **values: str | int) -> None:
    """Set values of ``about``, within the caller's transaction."""
    connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", values.items())


def message_key(message_id: str) -> int:
    """Return the short key by which the entry of a message is found."""
    return crc32(message_id.encode("utf-8", "surrogatepass"))


def remove_files(path: Path) -> None:
    """Delete an index file."""
    for ending in ("-wal", "-shm", ""):
        beside(path, ending).unlink(missing_ok=True)


def is_damage(error: BaseException) -> bool:
    """Return whether an error says that the file is no index any more."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    if code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT):
        return True
    # A table is missing: something else wrote to the file.
    return isinstance(error, sqlite3.OperationalError) and code & 0xFF == sqlite3.SQLITE_ERROR


def unusable(path: Path, error: BaseException) -> IndexUnusable:
    """Return the error message for an index file that cannot be used."""
    reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    return IndexUnusable(
        f"the search index {path} cannot be used: {reason}; it may be deleted at any time"
    )
