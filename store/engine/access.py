"""How a SQLite file is opened for reading without leaving anything beside it.

What SQLite does (seen with 3.40): ``mode=ro`` on a WAL database makes ``-wal`` and ``-shm``
where they are missing and cannot take them away again; ``immutable=1`` makes nothing but
ignores a ``-wal`` that is there, and so loses the newest session. So the way depends on
what lies on disk:

=============================================  =========================================
on disk                                        way
=============================================  =========================================
no WAL database                                ``live``: ``mode=ro``
``-wal`` and ``-shm`` there (a program has     ``live``: sees each later write at once
it open, or was killed)
no ``-wal``, or an empty one (nobody has it    ``immutable``; when the main file or its
open)                                          ``-wal`` moves, it is to be opened again
``-wal`` with content but no ``-shm``          ``copy``: a private copy, which recovers it;
                                               to be made again when one of them moves
any other that ``mode=ro`` fails on (a hot     ``copy``
journal, a folder that is read only)
``-shm`` cannot be made (the disk is full)     ``immutable`` without a ``-wal`` that holds
                                               something, else ``copy``
=============================================  =========================================

A file of our own is opened ``live`` where its folder can be written: what appears beside
it is ours.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from store.engine.companions import Signature, Way, beside, copy_aside, signature, size_of
from store.errors import StoreError

MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_NO_SPACE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
_OPENING_FAILED = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}


class Header(NamedTuple):
    """What the first 100 bytes of a SQLite file tell (sqlite.org/fileformat.html).

    They may be behind what its ``-wal`` says.

    Attributes:
        wal: Whether it is a WAL database.
        promised_bytes: The size the header gives; 0 where it gives none.
    """

    wal: bool
    user_version: int
    application_id: int
    promised_bytes: int


def read_header(path: Path) -> Header:
    """Read the header of a file that should be a SQLite database.

    Raises:
        StoreError: It is none; the message says what it is and what to do.
    """
    try:
        status = path.stat()
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
"""Descriptors of databases by device and inode; they are never closed.

Closing any descriptor of a file drops the POSIX locks that SQLite holds on it for all
connections of the process (sqlite.org/howtocorrupt.html, 2.2). Another program that closes
the database would then think itself the last, and take the ``-wal`` away from under us.
"""


def _start_of(path: Path, inode: tuple[int, int]) -> bytes:
    """Return the first 100 bytes of a file, without dropping a lock on it."""
    if not hasattr(os, "pread"):
        with path.open("rb") as file:
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


def _parse_header(path: Path, start: bytes, size: int) -> Header:
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


def damaged(path: Path, how: str) -> str:
    """Return the line for a database that is damaged."""
    return (
        f"{path} is a damaged SQLite file ({how}); restore a backup, or save what it still"
        f" has with `sqlite3 {path.name} .recover`"
    )


def choose_way(path: Path, header: Header, *, ours: bool) -> Way:
    """Choose how to open a file for reading, by what lies on disk (see the module).

    Args:
        path: The database, symlinks resolved.
        header: Its header.
        ours: Whether it is a file of our own.
    """
    wal, shm = size_of(beside(path, "-wal")), size_of(beside(path, "-shm"))
    if not header.wal or (wal >= 0 and shm >= 0):
        return "live"
    if ours and os.access(path.parent, os.W_OK):
        return "live"
    return "copy" if wal > 0 else "immutable"


@dataclass(slots=True)
class Opened:
    """A connection for reading.

    Attributes:
        path: The file itself, symlinks resolved.
        signature: As it was before the file was opened; of its ``-wal``, as it is since.
        scratch: The folder of a private copy, which is to be removed after closing.
        no_space: Whether SQLite's own files could not be made beside it.
        made_wal: Whether opening it made a ``-wal`` where its last writer had just taken
            its own away.
    """

    path: Path
    connection: sqlite3.Connection
    way: Way
    signature: Signature
    scratch: Path | None = None
    no_space: bool = False
    made_wal: bool = False

    def close(self) -> None:
        """Close the connection and remove a private copy, or a ``-wal`` that opening made."""
        self.connection.close()
        if self.made_wal and size_of(beside(self.path, "-wal")) == 0:
            _leave_as_last(self.path)
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


def _leave_as_last(path: Path) -> None:
    """Let SQLite take away an empty ``-wal``, as it does where the last connection closes.

    A connection for reading only cannot. Where a program has opened the database meanwhile,
    this one is not the last, and SQLite leaves everything as it is.
    """
    with contextlib.suppress(sqlite3.Error):
        last = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=0)
        try:
            last.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        finally:
            last.close()


def connect(path: Path, parameters: str) -> sqlite3.Connection:
    """Open a connection of ours: autocommit, any thread, text that is no UTF-8 readable.

    Args:
        path: The database.
        parameters: Of the URI, as ``mode=ro``.
    """
    connection = sqlite3.connect(
        f"{path.as_uri()}?{parameters}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    # SQLite's own LIKE and lower() know the case of ASCII letters only.
    connection.create_function("casefold", 1, _casefold, deterministic=True)
    return connection


def _casefold(value: object) -> str | None:
    return None if value is None else str(value).casefold()


def open_for_reading(
    path: Path, header: Header, *, ours: bool, prepare: Callable[[sqlite3.Connection], None]
) -> Opened:
    """Open a file for reading so that nothing is left beside it.

    Args:
        path: The database, symlinks resolved.
        header: Its header.
        ours: Whether it is a file of our own.
        prepare: Runs on the new connection; must read from the file, so that a way that
            does not work shows here.

    Raises:
        sqlite3.Error: No way works.
        StoreError: The file kept changing while it was copied.
    """
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


def _open_by(way: Way, path: Path, prepare: Callable[[sqlite3.Connection], None]) -> Opened:
    """Open a file in a way, or as a private copy where that does not work."""
    sign = signature(path, way)
    if way != "copy":
        connection = connect(path, "mode=ro" if way == "live" else "mode=ro&immutable=1")
        try:
            prepare(connection)
            if way == "live":
                # Reading makes a -wal where none was.
                sign = (*sign[:2], *signature(path, way)[2:])
            return Opened(path, connection, way, sign)
        except BaseException as error:
            connection.close()
            if not _another_way(error):
                raise
    sign, scratch = copy_aside(path)
    try:
        connection = connect(scratch / path.name, "mode=rw")
        opened = Opened(path, connection, "copy", sign, scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    try:
        prepare(connection)
    except BaseException:
        opened.close()
        raise
    return opened


def _identity(path: Path) -> tuple[int, ...]:
    """Return what tells a file from one of the same name and number; () where it is missing."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_ctime_ns)


def _made_since(wal: Path, before: tuple[int, ...]) -> bool:
    """Say whether an empty ``-wal`` lies there that is not the one that was."""
    return size_of(wal) == 0 and _identity(wal) != before


def _another_way(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and _primary(error) in _OPENING_FAILED


def _primary(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
