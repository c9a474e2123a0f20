"""Puts a backup in the place of a library."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path

from store.engine import schema
from store.engine.access import connect, read_header
from store.engine.companions import beside
from store.engine.database import detect_form
from store.engine.sidecars import Sidecar, remove_files
from store.engine.snapshots import (
    COMPANIONS,
    PAGES,
    Progress,
    Snapshot,
    checked,
    integrity_of,
    no_progress,
    row_counts,
    told,
    write_snapshot,
)
from store.engine.transactions import explained, is_busy, primary_code
from store.errors import Refused, StoreError
from store.search.index.sidecar import INDEX
from store.stats.tables import STATISTICS
from store.system.clock import Clock, system_clock
from store.system.holders import holders
from store.system.locations import PRIVATE_FILE, private_folder
from store.system.paths import real_path
from store.system.stopping import Stop
from store.upkeep.backup import refuse_own

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did, or would do.

    Attributes:
        backup: The backup, with its rows.
        kept: Where the library that was there is kept; None if there was none.
        damaged: Whether that one was damaged, so that its files were kept as they were.
    """

    backup: Snapshot
    kept: Path | None
    damaged: bool = False


def check_backup(path: Path, progress: Progress = no_progress) -> Snapshot:
    """Return a backup that was checked and can be restored.

    Args:
        path: The backup.
        progress: Told while it is checked.

    Raises:
        StoreError: It is missing, damaged, or something else than a library.
        Refused: It is of a newer version.
    """
    header = read_header(path)
    if header.application_id != schema.APPLICATION_ID:
        raise StoreError(f"{path} is no backup of a library; `backscroll backup` makes one")
    if any(beside(path, ending).exists() for ending in ("-wal", "-journal")):
        raise Refused(f"{path} is in use, so it is no backup; `backscroll backup` makes one of it")
    try:
        with contextlib.closing(connect(real_path(path), "mode=ro&immutable=1")) as copy:
            form = detect_form(copy, path)
            if form.is_newer:
                raise Refused(
                    f"{path} was written by a newer Backscroll (version {form.version}); update"
                    " Backscroll to restore it")
            with told(copy, progress, "checking"):
                problems = integrity_of(copy, most=3)
                rows = row_counts(copy) if not problems else {}
    except sqlite3.Error as error:
        raise explained(error, path) from error
    if problems:
        raise StoreError(f"{path} is a damaged backup ({problems[0]}); restore another one")
    return Snapshot(path, path.stat().st_size, rows, form.version)


def restore_backup(
    backup: Path, store: Path, *, clock: Clock = system_clock, dry_run: bool = False,
    progress: Progress = no_progress,
) -> Restored:
    """Put a backup in the place of a library, which is backed up first.

    A killed process leaves the library as it was, or restored. The search index and the
    statistics are deleted and made again from what is there then.

    Args:
        backup: The backup, as ``back_up`` writes it.
        store: The library; may be missing or damaged.
        clock: Names the backup of what was there.
        dry_run: Only check everything.
        progress: Reports how far it is.

    Raises:
        Refused: Another process has the library open, or it belongs to another program.
        StoreError: The backup cannot be used, or a file cannot be written.
    """
    refuse_own(store, backup)
    real = real_path(store)
    there = real.exists() and real.stat().st_size > 0
    if there:
        _refuse_others(real)
        _refuse_foreign(real)
    made = check_backup(backup, progress)
    stamp = datetime.fromtimestamp(clock() / 1000).strftime("%Y-%m-%d-%H%M%S")
    kept = _free_name(real, f".before-restore-{stamp}") if there else None
    _refuse_unwritable(real)
    if dry_run:
        return Restored(made, kept)
    private_folder(real.parent)
    with _sidecars_gone(real):
        if kept is None:
            _put_file(made, real, progress)
            return Restored(made, None)
        try:
            _keep(real, kept, progress)
            _copy_over(backup, real, progress)
        except (StoreError, sqlite3.Error) as error:
            if not _is_damage(error):
                if isinstance(error, sqlite3.Error):
                    raise explained(error, real) from error
                raise
            kept = _free_name(real, f".damaged-{stamp}")
            _keep_as_is(real, kept)
            _put_file(made, real, progress)
            return Restored(made, kept, damaged=True)
        return Restored(made, kept)


def _free_name(real: Path, ending: str) -> Path:
    """Return a path beside the library that no file has; the ending is numbered if one has it."""
    names = (beside(real, ending if number == 1 else f"{ending}-{number}") for number in count(1))
    return next(path for path in names
                if not any(os.path.lexists(beside(path, each)) for each in ("", *COMPANIONS)))


def _refuse_unwritable(real: Path) -> None:
    """Refuse where the library, or what is kept of it beside it, could not be written."""
    for path in (real.parent, real):
        if path.exists() and not os.access(path, os.W_OK):
            raise Refused(f"{path} is not writable; make it so, or restore to a store elsewhere"
                          " (--store)")


def _refuse_others(real: Path) -> None:
    """Refuse while another process has the library open."""
    found = holders(beside(real, ending) for ending in ("", *COMPANIONS))
    if found:
        others = ", ".join(map(str, found[:5])) + (" and others" if len(found) > 5 else "")
        raise Refused(f"{real} is open in {others}; end it, then restore")


def _refuse_foreign(real: Path) -> None:
    """Refuse to replace a database of another program."""
    try:
        header = read_header(real)
    except StoreError:
        return  # It is damaged, and kept aside.
    if header.application_id != schema.APPLICATION_ID:
        raise Refused(f"{real} belongs to another program; name a library with --store")


@contextlib.contextmanager
def _sidecars_gone(real: Path) -> Iterator[None]:
    """Delete search index and statistics, and have nobody make them again within the block."""
    places = [(sidecar, beside(real, sidecar.suffix)) for sidecar in (INDEX, STATISTICS)]
    with contextlib.ExitStack() as locks:
        for sidecar, path in places:
            locks.enter_context(_locked(sidecar, path))
        for _, path in places:
            remove_files(path)
        try:
            yield
        finally:
            for _, path in places:
                remove_files(path)


def _locked(sidecar: Sidecar, path: Path) -> contextlib.AbstractContextManager[bool]:
    def busy() -> None:
        raise Refused(f"another process keeps the {sidecar.what} {path}; end it, then restore")

    return sidecar.lock(path, Stop(), busy)


def _keep(real: Path, kept: Path, progress: Progress) -> None:
    with contextlib.closing(connect(real, "mode=rw")) as present:
        write_snapshot(present, kept, progress=progress)


def _copy_over(backup: Path, real: Path, progress: Progress) -> None:
    """Write all pages of a backup over a library, in one transaction."""
    with contextlib.closing(connect(real, "mode=rw")) as target, contextlib.closing(
        connect(real_path(backup), "mode=ro&immutable=1")
    ) as source:
        target.execute("PRAGMA synchronous = FULL")
        # No other connection is let in from the first access on, of whatever user.
        target.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        try:
            target.execute("BEGIN IMMEDIATE")
            target.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if is_busy(error):
                raise Refused(f"{real} is open in another program; end it, then restore") from error
            raise
        source.backup(target, pages=PAGES, sleep=0, progress=lambda _, left, total: progress(
            "restoring", total - left, total))
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _keep_as_is(real: Path, kept: Path) -> None:
    """Copy the files of a damaged library."""
    for ending in ("", "-wal", "-journal"):
        if beside(real, ending).exists():
            shutil.copyfile(beside(real, ending), beside(kept, ending))
            beside(kept, ending).chmod(PRIVATE_FILE)


def _put_file(made: Snapshot, real: Path, progress: Progress) -> None:
    """Put a copy of a backup where no library is, or a damaged one that is kept elsewhere."""
    partial = real.with_name(f".{real.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        shutil.copyfile(made.path, partial)
        partial.chmod(PRIVATE_FILE)
        checked(partial, made.rows, progress)
        with contextlib.closing(sqlite3.connect(partial)) as copy:
            copy.execute("PRAGMA journal_mode = WAL").fetchall()
        for ending in COMPANIONS:
            beside(real, ending).unlink(missing_ok=True)
        partial.replace(real)
    except OSError as error:
        raise StoreError(f"{real} cannot be written: {error.strerror or error}") from error
    finally:
        for ending in ("", *COMPANIONS):
            beside(partial, ending).unlink(missing_ok=True)


def _is_damage(error: BaseException) -> bool:
    cause = error if isinstance(error, sqlite3.Error) else error.__cause__
    return (cause is not None and primary_code(cause) in _DAMAGE) or "damaged" in str(error)

