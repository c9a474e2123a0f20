"""Copies a database that others may write meanwhile: one state of it, checked, in one file.

SQLite's backup API copies the pages of one read transaction, so that the copy is a state that
the database really had. It gets its name only when it has been checked.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from store.engine.companions import beside, size_of
from store.engine.dialect import quoted
from store.engine.transactions import explained, is_full, primary_code
from store.errors import Refused, StoreError
from store.system.files import AlreadyThere
from store.system.holders import holders
from store.system.locations import PRIVATE_FILE

Stage = Literal["copying", "checking", "restoring"]
Progress = Callable[[Stage, int, int], None]
"""Takes what is done now, how many pages are done and how many there are; both 0 if unknown."""

PAGES = 2048
"""Pages that are copied between two calls of ``Progress``."""
STEPS = 2_000_000
"""Steps of SQLite's virtual machine between two calls while a copy is checked."""
PARTIAL = ".partial"
_SETTLED_S = 10
"""Seconds for which a file that nobody has open may still be just begun."""
COMPANIONS = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A checked copy.

    Attributes:
        path: The file.
        size: Its size in bytes.
        rows: The number of rows by table, the same in the copy and in the copied state.
        version: ``PRAGMA user_version``.
    """

    path: Path
    size: int
    rows: Mapping[str, int]
    version: int


def no_progress(stage: Stage, done: int, total: int) -> None:
    """Report nothing.

    Args:
        stage: What is done.
        done: How many pages are done.
        total: How many there are.
    """


def write_snapshot(
    source: sqlite3.Connection, path: Path, *, replace: bool = False,
    progress: Progress = no_progress, wanted: Callable[[Snapshot], bool] = lambda made: True,
) -> Snapshot:
    """Write the present state of a database to a private file (0600), and return what was written.

    Args:
        source: An open database, in no transaction.
        path: The file; its folder must exist.
        replace: Whether to replace a regular file.
        progress: Reports how far it is.
        wanted: Takes the checked copy before it gets its name; False discards it.

    Raises:
        AlreadyThere: Something is at the path, and ``replace`` is False.
        Refused: Something that is no regular file is there, or it cannot be written.
        StoreError: The database is damaged, or the disk of the copy is full.
    """
    _refuse_other(path, replace=replace)
    partial = partial_beside(path)
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
        rows = _copy_pages(source, partial, progress)
        made = checked(partial, rows, progress)
        if wanted(made):
            _keep_on_disk(partial)
            _name(partial, path, replace=replace)
        return Snapshot(path, made.size, made.rows, made.version)
    except FileExistsError as error:
        raise AlreadyThere(f"{path} exists already") from error
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}") from error
    except sqlite3.Error as error:
        raise _explained(error, _path_of(source), path) from error
    finally:
        for ending in ("", *COMPANIONS):
            beside(partial, ending).unlink(missing_ok=True)


def partial_beside(path: Path) -> Path:
    """Return a new path beside a file, for what becomes that file when it is whole."""
    return path.with_name(f"{_start_of_partial(path)}{secrets.token_hex(4)}{PARTIAL}")


def left_partials(path: Path) -> list[Path]:
    """Return files of ``partial_beside`` that killed processes left, none that is being written."""
    ending = re.compile(rf"[0-9a-f]{{8}}{re.escape(PARTIAL)}({'|'.join(COMPANIONS)})?")
    start = _start_of_partial(path)
    try:
        names = os.listdir(path.parent)
    except OSError:
        return []
    found = [path.with_name(name) for name in names
             if name.startswith(start) and ending.fullmatch(name[len(start):])]
    settled = time.time() - _SETTLED_S
    return [one for one in found
            if not one.is_symlink() and _changed_at(one) < settled and not holders([one])]


def _changed_at(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return time.time()


def _start_of_partial(path: Path) -> str:
    return f".{path.name[:100]}."


def row_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the number of rows by table."""
    names = [name for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%'"
        " ESCAPE '\\' ORDER BY name"
    )]  # fmt: skip
    return {name: connection.execute(
        f"SELECT count(*) FROM {quoted(name)}").fetchone()[0] for name in names}


def checked(path: Path, rows: Mapping[str, int], progress: Progress) -> Snapshot:
    """Return a copy that was checked.

    Args:
        path: The copy.
        rows: The number of rows that each of its tables must have.
        progress: Reports that it is checked.

    Raises:
        StoreError: Its pages are damaged, or it has other rows.
    """
    place = path.absolute().as_uri()
    with contextlib.closing(sqlite3.connect(f"{place}?mode=ro", uri=True)) as copy:
        with told(copy, progress, "checking"):
            problems = integrity_of(copy, most=3)
            found = row_counts(copy)
        if problems:
            raise StoreError(
                f"the copy has damaged pages ({problems[0]}), as the store itself may have;"
                " run `backscroll doctor`")
        if found != dict(rows):
            odd = next(name for name in {**rows, **found} if rows.get(name) != found.get(name))
            raise StoreError(
                f"the copy has {found.get(odd)} rows of {odd}, the store {rows.get(odd)}; try again"
            )
        (version,) = copy.execute("PRAGMA user_version").fetchone()
    return Snapshot(path, size_of(path), found, version)


def integrity_of(connection: sqlite3.Connection, *, most: int) -> list[str]:
    """Return what ``PRAGMA integrity_check`` finds; empty if all is well.

    Args:
        connection: The database.
        most: The largest number of problems.
    """
    try:
        found = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({most})")]
    except sqlite3.DatabaseError as error:
        if primary_code(error) not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        return [str(error)]
    return [] if found == ["ok"] else found


@contextlib.contextmanager
def told(connection: sqlite3.Connection, progress: Progress, stage: Stage) -> Iterator[None]:
    """Call a progress function now and then while statements run.

    Args:
        connection: Runs the statements.
        progress: The function.
        stage: Its first argument.
    """
    def tell() -> int:
        progress(stage, 0, 0)
        return 0

    tell()
    connection.set_progress_handler(tell, STEPS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def _copy_pages(
    source: sqlite3.Connection, partial: Path, progress: Progress
) -> dict[str, int]:
    """Copy one state of a database to an empty file; return the rows of that state."""
    with contextlib.closing(sqlite3.connect(partial, isolation_level=None)) as copy:
        copy.execute("PRAGMA synchronous = OFF")  # It is written to disk at once, in the end.
        source.execute("BEGIN")
        try:
            rows = row_counts(source)
            source.backup(copy, pages=PAGES, sleep=0, progress=lambda _, left, total: progress(
                "copying", total - left, total))
        finally:
            source.execute("COMMIT")
        # A backup is one file; a database in WAL mode needs others to be read.
        copy.execute("PRAGMA journal_mode = DELETE").fetchall()
    return rows


def _keep_on_disk(path: Path) -> None:
    for name in (path, path.parent):
        number = os.open(name, os.O_RDONLY)
        try:
            os.fsync(number)
        except OSError:
            if name == path:
                raise  # Folders cannot be synced everywhere.
        finally:
            os.close(number)


def _refuse_other(path: Path, *, replace: bool) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise Refused(f"{path} cannot be written: {reason}") from error
    if stat.S_ISDIR(mode):
        raise Refused(f"{path} is a folder; name a file in it")
    if not replace:
        raise AlreadyThere(f"{path} exists already")
    if not stat.S_ISREG(mode):
        raise Refused(f"{path} is not a regular file; name another one")
    if any(beside(path, ending).exists() for ending in COMPANIONS):
        raise Refused(f"{path} is a database that is in use; name another file")


def _name(partial: Path, path: Path, *, replace: bool) -> None:
    if replace:
        partial.replace(path)
        return
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError:
        if path.exists():
            raise FileExistsError(path) from None
        partial.rename(path)  # A file system without links.


def _path_of(source: sqlite3.Connection) -> Path:
    return Path(source.execute("PRAGMA database_list").fetchone()[2] or "the store")


def _explained(error: sqlite3.Error, source: Path, path: Path) -> StoreError:
    """Return the error for the file that it is about: the full disk is that of the copy."""
    code = primary_code(error)
    of_copy = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) or (
        code == sqlite3.SQLITE_IOERR and (is_full(path) or not is_full(source)))
    return explained(error, path if of_copy else source)
