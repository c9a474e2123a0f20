"""What every source must stand whose sessions are rows of another program's database."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.sources.base.database_source import DatabaseSource
from store.sources.base.protocol import Problem, Unit
from store.sync.engine import Sync
from store.sync.targets import Target
from tests.sources import grown

Change = Callable[[sqlite3.Connection], Any]


def copied(file: Path, folder: Path) -> Path:
    """Return a copy that can be written."""
    copy = folder / file.name
    shutil.copyfile(file, copy)
    return copy


def written(path: Path, change: Change) -> None:
    """Change a database and close it again."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        change(connection)
    finally:
        connection.close()


def without_shm(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if not name.endswith("-shm")}


def check_untouched(source: DatabaseSource, file: Path, store: Path) -> None:
    """Assert that nothing of a database that nobody has open changes by reading it."""
    before = grown.snapshot(file.parent)
    database = grown.synced(source, file.parent, store)
    assert list(source.watch_paths(file.parent))
    assert source.units_at(file.parent, [str(file)]) is not None
    database.connection.close()
    assert grown.snapshot(file.parent) == before


def check_live(source: DatabaseSource, file: Path, change: Change) -> list[Unit]:
    """Assert that what a writer wrote is seen, that it is left alone, and that it can end.

    Returns:
        The sessions that moved by the change.
    """
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE IF NOT EXISTS left_behind(x)")
    assert source.units_at(file, [str(file)])
    assert source.units_at(file, [str(file) + "-wal"]) == []
    change(writer)
    before = without_shm(grown.snapshot(file.parent))
    moved = source.units_at(file, [str(file) + "-wal"])
    assert moved
    for unit in moved:
        assert source.read(file, unit).problems == []
    assert without_shm(grown.snapshot(file.parent)) == before
    writer.close()
    assert not file.with_name(file.name + "-wal").exists()
    return moved


def check_killed(make: Callable[[], DatabaseSource], file: Path, change: Change) -> None:
    """Assert that what a killed writer left in its ``-wal`` is read, and all is left there."""
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    change(writer)
    left = {end: file.with_name(file.name + end).read_bytes() for end in ("", "-wal")}
    writer.close()
    for ending, body in left.items():
        file.with_name(file.name + ending).write_bytes(body)
    source = make()
    assert source.units_at(file, [str(file)])
    before = grown.snapshot(file.parent)
    (unit,) = check_units(make(), file, source)
    reading = source.read(file, unit)
    assert any("more" in str(draft.messages[-1:]) for draft in reading.sessions)
    assert grown.snapshot(file.parent) == before


def check_units(source: DatabaseSource, file: Path, other: DatabaseSource) -> list[Unit]:
    """Return the session that differs from how the file is without its ``-wal``."""
    wal = file.with_name(file.name + "-wal")
    body, stamp = wal.read_bytes(), wal.stat()
    folder = (file.parent.stat().st_atime_ns, file.parent.stat().st_mtime_ns)
    wal.unlink()
    old = {unit.key: unit.stamps[0].inode for unit in source.units(file, [])}
    wal.write_bytes(body)
    os.utime(wal, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    os.utime(file.parent, ns=folder)
    units = list(other.units(file, []))
    return [unit for unit in units if old.get(unit.key) != unit.stamps[0].inode]


def check_locked(
    make: Callable[[], DatabaseSource], file: Path, store: Path, patch: pytest.MonkeyPatch
) -> None:
    """Assert that a lock is told of, and that the sessions are read once it is gone."""
    patch.setattr("store.sources.base.databases.BUSY_MS", 1)
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("PRAGMA journal_mode = DELETE")
    writer.execute("BEGIN EXCLUSIVE")
    problems: list[Problem] = []
    assert list(make().units(file, problems)) == []
    assert [problem.path for problem in problems] == [str(file)]
    assert "locked" in problems[0].reason
    writer.execute("COMMIT")
    writer.close()
    database = grown.synced(make(), file, store)
    assert database.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()[0]


def check_damaged(make: Callable[[], DatabaseSource], file: Path) -> None:
    """Assert that a torn, an empty and a missing database are told of and end nothing."""
    whole = file.read_bytes()
    for body in (whole[: len(whole) // 2], b"", b"no database at all", whole[:50]):
        file.write_bytes(body)
        problems: list[Problem] = []
        assert list(make().units(file, problems)) == []
        assert [problem.path for problem in problems] == [str(file)]
        assert make().recognise(file) is None
    file.unlink()
    problems = []
    assert list(make().units(file, problems)) == []
    assert len(problems) == 1


def check_disappears(make: Callable[[], DatabaseSource], file: Path, store: Path) -> None:
    """Assert that a database that goes away between listing and reading costs only itself."""
    source = make()
    units = list(source.units(file, []))
    database = grown.synced(make(), file, store)
    kept = database.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()
    file.unlink()
    with pytest.raises(Exception, match="does not exist"):
        source.read(file, units[0])
    Sync(database).run([Target(make(), file)])
    assert database.connection.execute("SELECT count(*) FROM chat_sessions").fetchone() == kept
