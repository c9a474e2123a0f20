"""Opens a SQLite file for reading without leaving files beside it.

SQLite (seen with 3.40) with ``mode=ro`` on a WAL database creates missing ``-wal`` and
``-shm`` files and cannot delete them again; with ``immutable=1`` it creates nothing but
ignores an existing ``-wal``, and so misses the newest session. Therefore the way of opening
depends on the files on disk:

=============================================  =========================================
on disk                                        way
=============================================  =========================================
no WAL database                                ``live``: ``mode=ro``
``-wal`` and ``-shm`` exist (a program has     ``live``: sees each later write at once
it open, or was killed)
no ``-wal``, or an empty one (not open         ``immutable``; must be opened again when the
anywhere)                                      main file or its ``-wal`` changes
``-wal`` with content but no ``-shm``          ``copy``: a private copy, which recovers it;
                                               must be made again when one of them changes
anything else where ``mode=ro`` fails (a hot   ``copy``
journal, a read-only folder)
``-shm`` cannot be created (full disk)         ``immutable`` if the ``-wal`` is missing or
                                               empty, else ``copy``
=============================================  =========================================

A library file is opened ``live`` if its folder is writable: files beside it belong to it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Callable
from functools import partial

from store.engine.companions import Signature, beside, copy_aside, signature, size_of
from store.errors import StoreError
from store.system.records import NamedTuple, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from store.engine.companions import Way

MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_NO_SPACE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_OPENING_FAILED = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}


class Header(NamedTuple):
    """Values from the first 100 bytes of a SQLite file (sqlite.org/fileformat.html).

    They may be older than those in its ``-wal``.

    Attributes:
        wal: Whether it is a WAL database.
        promised_bytes: The file size according to the header; 0 if it has none.
    """

    wal: bool
    user_version: int
    application_id: int
    promised_bytes: int


def read_header(path: str | Path) -> Header:
    """Return the header of a SQLite database file.

    Raises:
        StoreError: It is not one; the message says what it is and what to do.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise StoreError(
            f"{path} does not exist; name a store that does, or let `backscroll sync` make one"
        ) from None
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror or error}") from error
    if stat.S_ISDIR(status.st_mode):
        raise StoreError(f"{path} is a folder, not a store; name the database file in it")
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{path} is not a regular file; name a SQLite file")
    try:
        start = _start_of(path, (status.st_dev, status.st_ino))
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror or error}; check its permissions"
        ) from error
    return _parse_header(path, start, status.st_size)


_held: dict[tuple[int, int], int] = {}
"""Descriptors of database files by device and inode; they are never closed.

Closing any descriptor of a file drops SQLite's POSIX locks on it for all connections of the
process (sqlite.org/howtocorrupt.html, 2.2). Another program that closes the database would
then consider itself the last user and delete the ``-wal`` that is still in use.
"""


def _start_of(path: str | Path, inode: tuple[int, int]) -> bytes:
    """Return the first 100 bytes of a file, without dropping a lock on it."""
    if not hasattr(os, "pread"):
        with open(path, "rb") as file:
            return file.read(_HEADER_BYTES)
    known = _held.get(inode)
    if known is not None:
        return os.pread(known, _HEADER_BYTES, 0)
    opened = os.open(path, os.O_RDONLY)
    start = os.pread(opened, _HEADER_BYTES, 0)
    status = os.fstat(opened)
    if start.startswith(MAGIC) and (status.st_dev, status.st_ino) == inode:
        _held[inode] = opened
    else:
        os.close(opened)
    return start


def _parse_header(path: str | Path, start: bytes, size: int) -> Header:
    if not start:
        raise StoreError(
            f"{path} is an empty file, not a store; delete it, or let `backscroll sync --store`"
            " make a store there"
        )
    if not start.startswith(MAGIC):
        looks = "a text file" if _is_text(start) else "a binary file"
        raise StoreError(
            f"{path} is {looks}, not a SQLite database;"
            " use `backscroll import` for an export, or name the folder of an agent"
        )
    if len(start) < _HEADER_BYTES:
        raise StoreError(damaged(path, f"it ends after {size} bytes"))
    number = partial(int.from_bytes, byteorder="big")
    page_size = number(start[16:18])
    pages = number(start[28:32]) if start[24:28] == start[92:96] else 0
    return Header(
        wal=start[18] == 2,
        user_version=number(start[60:64]),
        application_id=number(start[68:72]),
        promised_bytes=pages * (65536 if page_size == 1 else page_size),
    )


def _is_text(start: bytes) -> bool:
    return b"\0" not in start and not any(byte < 9 for byte in start)


def damaged(path: str | Path, how: str) -> str:
    """Return the error message for a damaged database."""
    return (
        f"{path} is a damaged SQLite file ({how}); restore a backup, or save what it still"
        f" has with `sqlite3 {os.path.basename(path)} .recover`"
    )


def choose_way(path: str | Path, header: Header, *, ours: bool) -> Way:
    """Return how to open a file for reading, by the files on disk (see the module).

    Args:
        path: The database, symlinks resolved.
        header: Its header.
        ours: Whether it is a library file.
    """
    wal, shm = size_of(f"{path}-wal"), size_of(f"{path}-shm")
    if not header.wal or (wal >= 0 and shm >= 0):
        return "live"
    if ours and os.access(os.path.dirname(path), os.W_OK):
        return "live"
    return "copy" if wal > 0 else "immutable"


@record
class Opened:
    """A read connection.

    Attributes:
        path: The file itself, symlinks resolved.
        signature: The file's signature before opening; the ``-wal``'s after it.
        scratch: Folder of a private copy, removed on closing.
        no_space: Whether SQLite's own files could not be created beside it.
        made_wal: Whether opening created a ``-wal`` because the last writer had just deleted
            its own.
    """

    path: str
    connection: sqlite3.Connection
    way: Way
    signature: Signature
    scratch: Path | None = None
    no_space: bool = False
    made_wal: bool = False

    def close(self) -> None:
        """Close the connection and remove a private copy, or a ``-wal`` made by opening."""
        self.connection.close()
        if self.made_wal and size_of(beside(self.path, "-wal")) == 0:
            _leave_as_last(self.path)
        if self.scratch is not None:
            import shutil

            shutil.rmtree(self.scratch, ignore_errors=True)


def _leave_as_last(path: str) -> None:
    """Have SQLite delete an empty ``-wal``, as it does when the last connection closes.

    A read-only connection cannot do this. If another program has opened the database
    meanwhile, this connection is not the last and SQLite changes nothing.
    """
    with contextlib.suppress(sqlite3.Error):
        last = sqlite3.connect(f"{_uri(path)}?mode=rw", uri=True, timeout=0)
        try:
            last.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        finally:
            last.close()


def connect(path: str | Path, parameters: str) -> sqlite3.Connection:
    """Return a connection: autocommit, usable on any thread, tolerant of invalid UTF-8.

    Args:
        path: The database.
        parameters: URI parameters, such as ``mode=ro``.
    """
    connection = sqlite3.connect(
        f"{_uri(path)}?{parameters}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    # SQLite's own LIKE and lower() handle only ASCII letters.
    connection.create_function("casefold", 1, _casefold, deterministic=True)
    return connection


_OF_URIS = frozenset(b"-./0123456789_abcdefghijklmnopqrstuvwxyz~ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _uri(path: str | Path) -> str:
    """Return an absolute path as a URI."""
    return "file://" + "".join(
        chr(byte) if byte in _OF_URIS else f"%{byte:02X}" for byte in os.fsencode(path))


def _casefold(value: object) -> str | None:
    return None if value is None else str(value).casefold()


def open_for_reading(
    path: str | Path, header: Header, *, ours: bool, prepare: Callable[[sqlite3.Connection], None]
) -> Opened:
    """Return a read connection that leaves no files beside the database.

    Args:
        path: The database, symlinks resolved.
        header: Its header.
        ours: Whether it is a library file.
        prepare: Runs on the new connection; must read from the file, so that a failing way
            of opening fails here.

    Raises:
        sqlite3.Error: The file cannot be opened in any way.
        StoreError: The file kept changing while it was copied.
    """
    path = os.fspath(path)
    wal = _identity(beside(path, "-wal"))
    way = choose_way(path, header, ours=ours)
    try:
        opened = _open_by(way, path, prepare)
        if header.wal and not ours and opened.way == "live":
            opened.made_wal = _made_since(beside(path, "-wal"), wal)
        return opened
    except sqlite3.Error as error:
        if _primary(error) not in _NO_SPACE:
            raise
        way = "copy" if size_of(beside(path, "-wal")) > 0 else "immutable"
        opened = _open_by(way, path, prepare)
        opened.no_space = True
        return opened


def _open_by(way: Way, path: str, prepare: Callable[[sqlite3.Connection], None]) -> Opened:
    """Open a file in the given way, or as a private copy if that fails."""
    sign = signature(path, way)
    if way != "copy":
        connection = connect(path, "mode=ro" if way == "live" else "mode=ro&immutable=1")
        try:
            prepare(connection)
            if way == "live":
                # Reading may have created the -wal.
                sign = (*sign[:2], *signature(path, way)[2:])
            return Opened(path, connection, way, sign)
        except BaseException as error:
            connection.close()
            if not _another_way(error):
                raise
    sign, scratch = copy_aside(path)
    try:
        connection = connect(scratch / os.path.basename(path), "mode=rw")
        opened = Opened(path, connection, "copy", sign, scratch)
    except BaseException:
        import shutil

        shutil.rmtree(scratch, ignore_errors=True)
        raise
    try:
        prepare(connection)
    except BaseException:
        opened.close()
        raise
    return opened


def _identity(path: str) -> tuple[int, ...]:
    """Return inode, size and change time of a file; () if it is missing."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_ctime_ns)


def _made_since(wal: str, before: tuple[int, ...]) -> bool:
    """Return whether there is an empty ``-wal`` that is not the earlier one."""
    return size_of(wal) == 0 and _identity(wal) != before


def _another_way(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and _primary(error) in _OPENING_FAILED


def _primary(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
