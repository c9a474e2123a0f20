"""Backups, and putting them in the place of a library."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from store.config import BackupSettings
from store.engine.database import open_database
from store.engine.snapshots import checked, no_progress, row_counts
from store.errors import Refused, StoreError
from store.search.index.sidecar import INDEX
from store.stats.tables import STATISTICS
from store.system.clock import Clock
from store.upkeep.backup import back_up, kept_backups, nightly
from store.upkeep.restoring import restore_backup
from tests.store.upkeep.conftest import NOW, Sql

DAY_MS = 86_400_000
COUNT = "SELECT count(*) FROM chat_sessions"


def backed_up(library: Path, name: str = "backup.db") -> Path:
    database = open_database(library, write=False)
    try:
        return back_up(database, library.parent / name).path
    finally:
        database.close()


def test_a_restore_brings_back_what_was_there(library: Path, sql: Sql) -> None:
    before = sql(library, "SELECT * FROM chat_parts ORDER BY id")
    backup = backed_up(library)
    sql(library, "DELETE FROM chat_parts")
    for sidecar in (INDEX, STATISTICS):
        sidecar.open_for_writing(sidecar.path(library)).close()
    done = restore_backup(backup, library, clock=lambda: NOW)
    assert sql(library, "SELECT * FROM chat_parts ORDER BY id") == before
    assert sql(library, "PRAGMA journal_mode") == [("wal",)]
    assert done.kept is not None and sql(done.kept, "SELECT count(*) FROM chat_parts") == [(0,)]
    assert stat.S_IMODE(done.kept.stat().st_mode) == 0o600
    assert not INDEX.path(library).exists() and not STATISTICS.path(library).exists()
    open_database(library).close()


def test_restores_of_one_second_keep_each_library(library: Path) -> None:
    backup = backed_up(library)
    first = restore_backup(backup, library, clock=lambda: NOW).kept
    assert first is not None
    damaged = first.with_name(first.name.replace("before-restore", "damaged"))
    damaged.write_bytes(b"kept")
    library.write_bytes(b"\0" * 300)
    second = restore_backup(backup, library, clock=lambda: NOW)
    third = restore_backup(backup, library, clock=lambda: NOW, dry_run=True).kept
    assert second.kept == damaged.with_name(f"{damaged.name}-2") and second.damaged
    assert third == first.with_name(f"{first.name}-2")
    assert second.kept.exists() and damaged.read_bytes() == b"kept"


def test_a_backup_deletes_what_a_killed_one_to_its_name_left(library: Path) -> None:
    start = library.with_name(".backup.db.0123abcd.partial")
    left = [start, Path(f"{start}-journal")]
    other = [library.with_name(".backup.db.notes.partial"), library.with_name(".x.partial")]
    new = library.with_name(".backup.db.01234567.partial")
    for file in (*left, *other, new):
        file.write_bytes(b"")
    for file in (*left, *other):
        os.utime(file, (0, 0))
    backed_up(library)
    assert not any(file.exists() for file in left)
    assert new.exists() and all(file.exists() for file in other)


def test_a_copy_is_checked_before_it_gets_its_name(library: Path, sql: Sql) -> None:
    ((parts,),) = sql(library, "SELECT count(*) FROM chat_parts")
    with contextlib.closing(sqlite3.connect(library)) as connection:
        rows = row_counts(connection)
    assert checked(library, rows, no_progress).rows["chat_parts"] == parts
    with pytest.raises(StoreError, match="rows of chat_parts"):
        checked(library, rows | {"chat_parts": parts + 1}, no_progress)
    damaged = bytearray(library.read_bytes())
    damaged[40_960:45_056] = bytes(4096)
    library.write_bytes(damaged)
    with pytest.raises(StoreError, match="damaged pages"):
        checked(library, rows, no_progress)


def test_a_dry_run_changes_nothing(library: Path, sql: Sql) -> None:
    backup = backed_up(library)
    sql(library, "DELETE FROM chat_parts")
    names = set(os.listdir(library.parent))
    restore_backup(backup, library, dry_run=True)
    assert sql(library, "SELECT count(*) FROM chat_parts") == [(0,)]
    assert set(os.listdir(library.parent)) == names


def test_a_process_that_has_it_open_is_named(library: Path) -> None:
    backup = backed_up(library)
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
        " c.execute('SELECT 1 FROM changes').fetchall(); print(flush=True); input()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(library)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()
    with pytest.raises(Refused, match=f"open in process {other.pid} "):
        restore_backup(backup, library)
    other.communicate(b"\n")
    restore_backup(backup, library)


@pytest.mark.parametrize("damage", ["header", "pages", "cut", "empty"])
@pytest.mark.one_in(2)
def test_a_damaged_library_is_kept_as_it_is(library: Path, sql: Sql, damage: str) -> None:
    sessions = sql(library, COUNT)
    backup = backed_up(library)
    with library.open("r+b") as file:
        if damage == "header":
            file.write(b"\0" * 200)
        elif damage == "pages":
            file.seek(4096)
            file.write(b"\xff" * 200_000)
        else:
            file.truncate(5000 if damage == "cut" else 0)
    was = library.read_bytes()
    done = restore_backup(backup, library)
    assert sql(library, COUNT) == sessions
    assert sql(library, "PRAGMA journal_mode") == [("wal",)]
    assert stat.S_IMODE(library.stat().st_mode) == 0o600
    if damage != "empty":
        assert done.damaged and done.kept is not None and done.kept.read_bytes() == was


def test_a_missing_library_is_made(library: Path, sql: Sql) -> None:
    backup = backed_up(library)
    sessions = sql(library, COUNT)
    library.unlink()
    assert restore_backup(backup, library).kept is None
    assert sql(library, COUNT) == sessions


def test_what_is_no_backup_is_refused(library: Path, tmp_path: Path, sql: Sql) -> None:
    backup = backed_up(library)
    other = tmp_path / "other.db"
    sql(other, "CREATE TABLE t (x)")
    with pytest.raises(StoreError, match="no backup of a library"):
        restore_backup(other, library)
    with pytest.raises(Refused, match="belongs to another program"):
        restore_backup(backup, other)
    with pytest.raises(Refused, match="the store itself"):
        restore_backup(library, library)
    with backup.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 50_000)
    with pytest.raises(StoreError, match="damaged"):
        restore_backup(backup, library)
    newer = backed_up(library, "newer.db")
    sql(newer, "PRAGMA user_version = 9999")
    with pytest.raises(Refused, match="newer Backscroll"):
        restore_backup(newer, library)
    assert not list(library.parent.glob("*.before-restore*"))


def at(noon: int, day: int) -> Clock:
    return lambda: noon + day * DAY_MS


def test_nights_are_kept_and_the_oldest_go(library: Path, tmp_path: Path) -> None:
    settings = BackupSettings(folder=str(tmp_path / "nights"), keep=2)
    noon = NOW - NOW % DAY_MS + DAY_MS // 2
    folder = tmp_path / "nights"
    for day in range(4):
        assert nightly(library, settings, clock=at(noon, day)) is not None
        assert nightly(library, settings, clock=at(noon, day)) is None
    kept = kept_backups(library, folder)
    assert len(kept) == 2 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    # A clock that was wrong for a while neither stops the backups nor costs right ones.
    assert nightly(library, settings, clock=lambda: noon + 900 * DAY_MS) is not None
    ahead = kept_backups(library, folder)[-1]
    left = folder / ".library-2026-01-01.db.abcd.partial-journal"
    left.write_text("x")
    for day in (4, 5):
        assert nightly(library, settings, clock=at(noon, day)) is not None
    assert len(kept_backups(library, folder)) == 3 and ahead.exists() and not left.exists()


def test_no_backup_without_a_folder(library: Path) -> None:
    assert nightly(library, BackupSettings()) is None


def test_the_upkeep_makes_the_backup_of_the_night(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes a second: a process of its own, as the browser starts it."""
    library.unlink()
    open_database(library, create=True).close()  # Without sessions, it is indexed at once.
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "backscroll" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'store = "{library}"\n[backup]\nfolder = "{tmp_path}/nights"\n')
    hour = datetime.now(UTC).hour
    monkeypatch.setenv("TZ", f"XXX{hour - 12:+d}")  # So that it is noon.
    command = [sys.executable, "-m", "store.upkeep", "--once", str(library)]
    subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)
    (made,) = kept_backups(library, tmp_path / "nights")
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
