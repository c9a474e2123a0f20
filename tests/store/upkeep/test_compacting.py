"""Checkpoints and vacuums."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from store.engine.companions import beside, size_of
from store.engine.database import open_database
from store.errors import StoreError
from store.upkeep.compacting import checkpoint, vacuum
from store.upkeep.sizes import sizes
from tests.store.upkeep.conftest import Sql

ROWIDS = "SELECT rowid, id FROM chat_messages ORDER BY id"


def test_a_vacuum_gives_space_back_and_keeps_rowids(library: Path, sql: Sql) -> None:
    sql(library, "DELETE FROM chat_messages WHERE rowid % 3 = 0")
    sql(library, "CREATE TABLE filler AS SELECT randomblob(2000000) AS body")
    sql(library, "DROP TABLE filler")
    rowids = sql(library, ROWIDS)
    database = open_database(library)
    free = sizes(database).free_in_file
    done = vacuum(database)
    assert free > 1_500_000 and done.before - done.after >= 1_500_000 and not done.busy
    assert sizes(database).free_in_file == 0
    database.close()
    assert sql(library, ROWIDS) == rowids


def test_a_vacuum_waits_for_nobody_for_ever(library: Path) -> None:
    database = open_database(library)
    database.connection.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(library, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="written by another program"):
        vacuum(database)
    other.close()
    database.close()


def test_a_vacuum_needs_room(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = os.statvfs(library.parent)
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("U", (), {"free": usage.f_bavail * 0}))
    database = open_database(library)
    with pytest.raises(StoreError, match="free some space"):
        vacuum(database)
    database.close()


def test_a_checkpoint_empties_the_log(library: Path, sql: Sql) -> None:
    database = open_database(library)
    database.connection.execute("UPDATE chat_sessions SET agent = agent")
    log = beside(library, "-wal")
    assert size_of(log) > 0
    done = checkpoint(database)
    assert done.before > 0 and done.after == 0 and not done.busy and size_of(log) == 0
    database.close()


def test_a_reader_keeps_the_log(library: Path) -> None:
    database = open_database(library)
    database.connection.execute("PRAGMA busy_timeout = 10")
    database.connection.execute("UPDATE chat_sessions SET agent = agent")
    other = sqlite3.connect(library, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT 1 FROM chat_sessions").fetchall()
    database.connection.execute("UPDATE chat_sessions SET agent = agent")
    assert checkpoint(database).busy
    assert not checkpoint(database, "passive").busy
    other.close()
    database.close()


def test_all_files_are_listed(library: Path) -> None:
    beside(library, ".search").write_text("x")
    beside(library, ".version-3").write_text("x")
    database = open_database(library, write=False)
    found = sizes(database)
    what = {file.path.name: file.what for file in found.files}
    assert what["library.db"] == "the store" and what["library.db.search"] == "its search index"
    assert "migration" in what["library.db.version-3"]
    assert found.total == sum(file.size for file in found.files)
    assert found.rows["chat_sessions"] > 5 and found.pragmas["journal_mode"] == "wal"
    database.close()
