"""What a store takes on the disk, and how SQLite is set up for it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from store.engine.companions import beside, size_of
from store.engine.database import Database
from store.engine.snapshots import Progress, no_progress, row_counts, told
from store.events.log import has_events
from store.events.trimming import log_size
from store.search.index.sidecar import INDEX
from store.stats.tables import STATISTICS
from store.system.paths import real_path

PRAGMAS = (
    "application_id", "user_version", "journal_mode", "wal_autocheckpoint", "busy_timeout",
    "synchronous", "foreign_keys", "auto_vacuum", "page_size", "page_count", "freelist_count",
    "cache_size", "encoding",
)  # fmt: skip
_WHAT = {
    "": "the store", "-wal": "its write-ahead log", "-shm": "the log's index in memory",
    "-journal": "its rollback journal", INDEX.suffix: "its search index",
    STATISTICS.suffix: "its statistics",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file of a store.

    Attributes:
        what: What it is, such as "its search index".
        size: Bytes.
        mode: Its permissions.
    """

    path: Path
    what: str
    size: int
    mode: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a store takes on the disk.

    Attributes:
        files: The store itself first, then the files beside it.
        free_in_file: Bytes of pages without content, which ``vacuum`` gives back.
        free_on_disk: Bytes.
        rows: The number of rows by table.
        pragmas: Values by name.
        events: How many events the log has, and about how many bytes they take; None without one.
    """

    files: list[StoreFile]
    free_in_file: int
    free_on_disk: int
    rows: Mapping[str, int]
    pragmas: Mapping[str, int | str]
    events: tuple[int, int] | None = None

    @property
    def total(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def store_files(path: Path) -> list[StoreFile]:
    """Return the store's file and all files beside it that belong to it.

    Args:
        path: The store's file.
    """
    real = real_path(path)
    found = [_file_of(one, one.name.removeprefix(real.name)) for one in _names(real)]
    for sidecar in (INDEX, STATISTICS):
        elsewhere = sidecar.path(real)
        if elsewhere.parent != real.parent:
            found += [_file_of(beside(elsewhere, ending), sidecar.suffix + ending)
                      for ending in ("", "-wal", "-shm")]
    return [file for file in found if file is not None]


def _names(real: Path) -> Iterator[Path]:
    yield real
    try:
        names = sorted(os.listdir(real.parent))
    except OSError:
        return
    for name in names:
        if name.startswith((f"{real.name}-", f"{real.name}.")):
            yield real.with_name(name)


def _file_of(path: Path, ending: str) -> StoreFile | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return StoreFile(path, _what(ending), status.st_size, status.st_mode & 0o777)


def _what(ending: str) -> str:
    if ending in _WHAT:
        return _WHAT[ending]
    for suffix in (INDEX.suffix, STATISTICS.suffix):
        if ending.startswith(f"{suffix}-"):
            return f"beside {_WHAT[suffix]}"
    if ending.startswith(".version-"):
        return f"a backup from before the migration from version {ending.rpartition('-')[2]}"
    if ending.startswith(".before-restore"):
        return "a backup from before a restore"
    return "a lock" if "lock" in ending else "beside it"


def sizes(database: Database, progress: Progress = no_progress) -> Sizes:
    """Return what an open store takes on the disk.

    Args:
        database: The store.
        progress: Told while rows are counted.
    """
    connection = database.file
    pragmas = {name: value for name in PRAGMAS for value in _pragma(connection, name)}
    with told(connection, progress, "checking"):
        rows = row_counts(connection)
    real = real_path(database.path)
    page, free = pragmas.get("page_size", 0), pragmas.get("freelist_count", 0)
    on_disk = shutil.disk_usage(real.parent).free
    events = log_size(database) if has_events(database) else None
    return Sizes(store_files(real), int(page) * int(free), on_disk, rows, pragmas, events)


def _pragma(connection: sqlite3.Connection, name: str) -> Iterator[int | str]:
    row = connection.execute(f"PRAGMA {name}").fetchone()
    if row is not None:
        yield row[0]


def size_on_disk(path: Path) -> int:
    """Return the bytes of a store's file and its write-ahead log."""
    real = real_path(path)
    return sum(max(0, size_of(beside(real, ending))) for ending in ("", "-wal"))
