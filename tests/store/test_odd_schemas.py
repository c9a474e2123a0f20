"""A host's file with views, tables without rowids or a damaged schema opens for reading."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.engine.schema import CONTRACT_INDEXES, CONTRACT_TABLES, REQUIRED_COLUMNS
from store.errors import StoreError
from store.queries import listing
from tests.store.making import add_message, add_part, add_session, contract, ids
from tests.store.making import listing as files

TABLES = tuple(REQUIRED_COLUMNS)
Make = Callable[[Path], None]


def filled(path: Path, tables: str = CONTRACT_TABLES + CONTRACT_INDEXES) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(tables)
    for number in range(3):
        add_session(connection, f"ses_{number}", number, metadata={"title": f"T{number}"})
        add_message(connection, f"ses_{number}", f"m{number}", number)
        add_part(connection, f"ses_{number}", f"m{number}", f"p{number}", 0)
    return connection


def without_rowid(path: Path) -> None:
    tables = re.sub(r"\n\);", "\n) WITHOUT ROWID;", CONTRACT_TABLES)
    assert tables.count("WITHOUT ROWID") == 3
    filled(path, tables + CONTRACT_INDEXES).close()


def as_views(path: Path) -> None:
    connection = filled(path)
    for table in TABLES:
        connection.execute(f"ALTER TABLE {table} RENAME TO real_{table}")
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM real_{table}")
    connection.close()


def damage(path: Path, kind: str, name: str, sql: str) -> None:
    connection = filled(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, 0, ?)",
        (kind, name, "chat_parts", sql),
    )
    connection.close()


def bad_table(path: Path) -> None:
    damage(path, "table", "x\x1b]0;EVIL\x07", "create tab le")


def bad_trigger(path: Path) -> None:
    damage(path, "trigger", "t", "create trigger t after insert on none begin select 1; end")


@pytest.mark.parametrize("make", [without_rowid, as_views, bad_table, bad_trigger])
def test_it_is_read_and_nothing_is_written(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "host" / "host.db"
    path.parent.mkdir()
    make(path)
    before, content = files(path.parent), path.read_bytes()
    database = open_database(path)
    assert database.file_read_only is not None
    assert "read only" in database.file_read_only
    assert ids(database) == ["ses_2", "ses_1", "ses_0"]
    found = listing.rowids_of(database, ["ses_0", "ses_1", "ses_2"])
    assert sorted(listing.rows_of(database, list(found.values()))) == sorted(found.values())
    assert [row[0] for row in database.connection.execute(
        "SELECT id FROM chat_parts ORDER BY id")] == ["p0", "p1", "p2"]
    database.close()
    assert files(path.parent) == before
    assert path.read_bytes() == content


@pytest.mark.parametrize("make", [without_rowid, as_views])
def test_what_is_written_later_is_seen(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "host.db"
    make(path)
    database = open_database(path, write=False)
    assert not database.moved()
    host = sqlite3.connect(path)
    name = "real_chat_sessions" if make is as_views else "chat_sessions"
    host.execute(f"INSERT INTO {name} SELECT 'ses_9', agent, workspace_root, model_json, parent_id,"
                 " parent_message_id, permissions_json, metadata_json, 0, 0, 0, 0, 0, 0, 0, 9, 9,"
                 f" NULL FROM {name} LIMIT 1")
    host.commit()
    host.close()
    assert database.moved()
    database.close()
    database = open_database(path, write=False)
    assert ids(database)[0] == "ses_9"
    database.close()


def test_a_view_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.engine.rebuilt._LARGEST_GROWTH", 0)
    monkeypatch.setattr("store.engine.rebuilt._ROOM", 1 << 20)
    monkeypatch.setattr("store.engine.rebuilt._LONGEST_S", 0.1)
    path = tmp_path / "host.db"
    connection = filled(path)
    connection.execute("ALTER TABLE chat_parts RENAME TO real_chat_parts")
    connection.execute(
        "CREATE VIEW chat_parts AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
        " SELECT p.* FROM n JOIN real_chat_parts p")
    connection.close()
    with pytest.raises(StoreError, match="too many rows to read"):
        open_database(path)


def test_an_ordinary_file_is_opened_for_writing(tmp_path: Path) -> None:
    database = open_database(contract(tmp_path / "host.db"))
    assert database.file_read_only is None and database.read_only is None
    database.close()
