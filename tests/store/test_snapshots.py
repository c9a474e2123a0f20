"""Copies of a database that others write, and the backup before a migration."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from store.engine import schema
from store.engine.database import migration_backup, open_database
from store.engine.snapshots import Snapshot, write_snapshot
from store.errors import Refused, StoreError


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.db"
    open_database(path, create=True).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for number in range(300):
            connection.execute(
                "INSERT INTO system_prompts VALUES (?, ?)", (str(number), "x" * 2000))
        connection.commit()
    return path


def copied(library: Path, target: Path, **options: object) -> Snapshot:
    with contextlib.closing(sqlite3.connect(library, isolation_level=None)) as source:
        return write_snapshot(source, target, **options)  # type: ignore[arg-type]


def names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_a_copy_is_one_private_file_with_all_rows(library: Path, tmp_path: Path) -> None:
    target = tmp_path / "copies" / "one.db"
    target.parent.mkdir()
    made = copied(library, target)
    assert names(target.parent) == {"one.db"}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert made.rows["system_prompts"] == 300 and made.size == target.stat().st_size
    assert made.version == schema.CURRENT_VERSION


def test_what_is_written_meanwhile_is_not_in_the_copy(library: Path, tmp_path: Path) -> None:
    other = sqlite3.connect(library, isolation_level=None)
    written: list[int] = []

    def write(stage: str, done: int, total: int) -> None:
        if stage == "copying" and len(written) < 5:
            other.execute("INSERT INTO system_prompts VALUES (?, 'y')", (f"new {len(written)}",))
            written.append(done)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("store.engine.snapshots.PAGES", 8)
        made = copied(library, tmp_path / "copy.db", progress=write)
    assert len(written) == 5 and made.rows["system_prompts"] == 300
    assert other.execute("SELECT count(*) FROM system_prompts").fetchone() == (305,)
    other.close()


def test_nothing_is_replaced_unless_asked_for(library: Path, tmp_path: Path) -> None:
    target = tmp_path / "notes.txt"
    target.write_text("mine")
    with pytest.raises(Refused, match="exists already"):
        copied(library, target)
    assert target.read_text() == "mine"
    copied(library, target, replace=True)
    assert target.read_bytes().startswith(b"SQLite")
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(Refused, match="not a regular file"):
        copied(library, link, replace=True)
    with pytest.raises(Refused, match="folder"):
        copied(library, tmp_path, replace=True)


def test_a_database_in_use_is_not_replaced(library: Path) -> None:
    other = sqlite3.connect(library, isolation_level=None)
    other.execute("SELECT 1 FROM changes").fetchall()
    with pytest.raises(Refused, match="in use"):
        copied(library, library, replace=True)
    other.close()


def test_a_damaged_store_gives_no_copy(library: Path, tmp_path: Path) -> None:
    with library.open("r+b") as file:
        file.seek(-3000, os.SEEK_END)
        file.write(b"\xff" * 3000)
    target = tmp_path / "copies" / "one.db"
    target.parent.mkdir()
    with pytest.raises(StoreError, match="damaged"):
        copied(library, target)
    assert names(target.parent) == set()


def _older(path: Path, version: int) -> None:
    """Make a library of an older version, with a session."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        for step in schema.MIGRATIONS[:version]:
            for statement in schema.statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(
            "INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
            " VALUES ('ses_1', 'me', '{}', 1, 1)")


def _version(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


@pytest.mark.parametrize("version", range(1, schema.CURRENT_VERSION))
def test_a_migration_keeps_what_was_there(tmp_path: Path, version: int) -> None:
    path = tmp_path / "library.db"
    _older(path, version)
    database = open_database(path, write=False)
    assert database.form.version == schema.CURRENT_VERSION
    database.close()
    kept = migration_backup(path, version)
    assert _version(kept) == version and stat.S_IMODE(kept.stat().st_mode) == 0o600
    with contextlib.closing(sqlite3.connect(kept)) as connection:
        assert connection.execute("SELECT id FROM chat_sessions").fetchall() == [("ses_1",)]


def test_a_killed_migration_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "library.db"
    _older(path, 3)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:4], "NONSENSE;"))
    monkeypatch.setattr(schema, "CURRENT_VERSION", 5)
    with pytest.raises(StoreError):
        open_database(path)
    monkeypatch.undo()
    assert _version(path) == 4 and _version(migration_backup(path, 3)) == 3
    open_database(path).close()
    assert _version(path) == schema.CURRENT_VERSION
    assert _version(migration_backup(path, 3)) == 3 and _version(migration_backup(path, 4)) == 4


def test_without_room_for_the_backup_nothing_is_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "library.db"
    _older(path, 3)

    def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr("store.engine.snapshots.write_snapshot", full)
    with pytest.raises(StoreError, match="not migrated, as no backup"):
        open_database(path)
    assert _version(path) == 3
