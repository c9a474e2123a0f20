"""Backups of a store: one checked file each, by hand or each night."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from store.engine.companions import beside
from store.engine.database import Database, open_database
from store.engine.snapshots import (
    COMPANIONS,
    PARTIAL,
    Progress,
    Snapshot,
    left_partials,
    no_progress,
    write_snapshot,
)
from store.errors import Refused
from store.system.clock import Clock, system_clock
from store.system.files import AlreadyThere, made_folder, plain_name
from store.system.locations import PRIVATE_FILE
from store.system.paths import expanded, real_path

if TYPE_CHECKING:
    from store.config import BackupSettings

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock
    fcntl = None  # type: ignore[assignment]

NIGHT_HOUR = 3
"""The local hour from which the backup of a day is due."""


def back_up(
    database: Database, path: Path, *, replace: bool = False, progress: Progress = no_progress
) -> Snapshot:
    """Write an open store to a file, checked and private (0600); return what was written.

    Other programs may write to the store meanwhile; the backup is its state at the start.

    Args:
        database: The store.
        path: The backup; its folder must exist.
        replace: Whether to replace a file.
        progress: Reports how far it is.

    Raises:
        AlreadyThere: Something is at the path, and ``replace`` is False.
        Refused: The path is the store's own, or cannot be written.
        StoreError: The store is damaged, or the disk full.
    """
    refuse_own(database.path, path)
    for left in left_partials(path):
        left.unlink(missing_ok=True)
    return write_snapshot(database.file, path, replace=replace, progress=progress)


def refuse_own(store: Path, path: Path) -> None:
    """Refuse a path that is the store's own, or a file beside it that SQLite uses.

    Raises:
        Refused: It is one of them.
    """
    real, other = real_path(store), real_path(path)
    own = {real, *(beside(real, ending) for ending in COMPANIONS)}
    same = other in own
    with contextlib.suppress(OSError):
        same = same or os.path.samefile(real, other)
    if same:
        raise Refused(f"{path} is the store itself, or a file that belongs to it; name another")


def nightly_name(store: Path, day: str = "*") -> str:
    """Return the name of a nightly backup.

    Args:
        store: The store's file.
        day: The day as ISO 8601.
    """
    return f"{plain_name(store.stem, 'store')}-{day}.db"


def kept_backups(store: Path, folder: Path) -> list[Path]:
    """Return the nightly backups of a store, the oldest first."""
    wanted = re.compile(re.escape(nightly_name(store)).replace(r"\*", r"\d{4}-\d\d-\d\d"))
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [folder / name for name in names if wanted.fullmatch(name)]


def nightly(
    store: Path, settings: BackupSettings, *, clock: Clock = system_clock,
    progress: Progress = no_progress,
) -> Snapshot | None:
    """Make the backup of a day if it is due, and delete the oldest beyond those that are kept.

    A backup is due from three at night, local time, where there is none of that day. Backups
    with a later date, as from a clock that was wrong, are not deleted.

    Args:
        store: The store's file.
        settings: Where backups go, and how many are kept.
        clock: Gives the time.
        progress: Reports how far it is.

    Returns:
        What was written; None if none is due or wanted.

    Raises:
        BackscrollError: It cannot be made.
    """
    if settings.folder is None or not store.exists():
        return None
    folder = expanded(settings.folder)
    now = datetime.fromtimestamp(clock() / 1000)
    target = folder / nightly_name(store, now.date().isoformat())
    if now.hour < NIGHT_HOUR or target.exists():
        return None
    made_folder(folder)
    with _one_at_a_time(folder) as alone:
        if not alone:
            return None
        _sweep(store, folder)
        database = open_database(store, write=False)
        try:
            made = back_up(database, target, progress=progress)
        except AlreadyThere:
            return None
        finally:
            database.close()
        past = [one for one in kept_backups(store, folder) if one.name <= target.name]
        for old in past[: -settings.keep]:
            old.unlink(missing_ok=True)
        return made


def _sweep(store: Path, folder: Path) -> None:
    """Delete what nightly backups that were killed have left; the caller holds the lock."""
    start = f".{nightly_name(store, '')}".removesuffix(".db")
    for name in os.listdir(folder):
        if name.startswith(start) and PARTIAL in name:
            (folder / name).unlink(missing_ok=True)


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder of backups; yields False while another process holds it."""
    if fcntl is None:
        yield True
        return
    try:
        lock = os.open(folder / ".backup-lock", os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    except OSError as error:
        raise Refused(f"{folder} cannot be written: {error.strerror or error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    except OSError:
        yield True  # Some network file systems have no locks; the name is given once anyway.
    else:
        yield True
    finally:
        os.close(lock)
