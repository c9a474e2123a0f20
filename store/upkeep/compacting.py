"""Gives back space that a library's file and its write-ahead log no longer need."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import dataclass
from typing import Literal

from store.engine.companions import beside, size_of
from store.engine.database import Database
from store.engine.snapshots import Progress, no_progress, told
from store.engine.transactions import explained, is_busy
from store.errors import StoreError
from store.system.paths import real_path
from store.upkeep.sizes import size_on_disk

Mode = Literal["truncate", "restart", "full", "passive"]


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """What a checkpoint did.

    Attributes:
        busy: Whether another program kept it from finishing.
        frames: Frames in the write-ahead log.
        copied: Those of them that are in the store's file now.
        before: Bytes of the log before.
        after: Bytes of the log now.
    """

    busy: bool
    frames: int
    copied: int
    before: int
    after: int


def checkpoint(database: Database, mode: Mode = "truncate") -> Checkpointed:
    """Copy the write-ahead log into the library's file and return what was done.

    Args:
        database: The library, open for writing.
        mode: As in SQLite; ``truncate`` empties the log's file too.

    Raises:
        StoreError: The file cannot be written.
    """
    log = beside(real_path(database.path), "-wal")
    before = max(0, size_of(log))
    try:
        busy, frames, copied = database.connection.execute(
            f"PRAGMA wal_checkpoint({mode})").fetchone()
    except sqlite3.Error as error:
        raise explained(error, database.path) from error
    return Checkpointed(
        bool(busy), max(0, frames), max(0, copied), before, max(0, size_of(log)))


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What a vacuum did.

    Attributes:
        before: Bytes of the file and its log before.
        after: The same now.
        busy: Whether another program reads an earlier state: the log shrinks when it ends.
    """

    before: int
    after: int
    busy: bool


def vacuum(database: Database, progress: Progress = no_progress) -> Vacuumed:
    """Write a library's file anew without empty pages, and return how large it was and is.

    Readers go on meanwhile; writers wait. A killed process changes nothing.

    Args:
        database: The library, open for writing.
        progress: Told while it runs.

    Raises:
        StoreError: Another program writes, or the disk has no room for a second copy.
    """
    before = size_on_disk(database.path)
    room, free = 2 * before, shutil.disk_usage(real_path(database.path).parent).free
    if free < room:
        raise StoreError(
            f"a vacuum of {database.path} may need {room:,} bytes on its disk, and"
            f" {free:,} are free; free some space and try again")
    connection = database.file
    try:
        with told(connection, progress, "copying"):
            connection.execute("VACUUM")
        done = checkpoint(database)
    except sqlite3.Error as error:
        if is_busy(error):
            raise StoreError(
                f"{database.path} is being written by another program; try again when it is done"
            ) from error
        raise explained(error, database.path) from error
    return Vacuumed(before, size_on_disk(database.path), done.busy)
