from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from store.engine import schema
from store.engine.database import open_database
from store.errors import StoreError
from tests.store.making import own

CONTRACT = {
    "chat_sessions": {
        "id": ("TEXT", 0, None, 1),
        "agent": ("TEXT", 1, None, 0),
        "workspace_root": ("TEXT", 0, None, 0),
        "model_json": ("TEXT", 1, None, 0),
        "parent_id": ("TEXT", 0, None, 0),
        "parent_message_id": ("TEXT", 0, None, 0),
        "permissions_json": ("TEXT", 1, "'[]'", 0),
        "metadata_json": ("TEXT", 1, "'{}'", 0),
        "prompt_tokens": ("INTEGER", 1, "0", 0),
        "completion_tokens": ("INTEGER", 1, "0", 0),
        "reasoning_tokens": ("INTEGER", 1, "0", 0),
        "cache_read": ("INTEGER", 1, "0", 0),
        "cache_write": ("INTEGER", 1, "0", 0),
        "total_tokens": ("INTEGER", 1, "0", 0),
        "cost_usd": ("REAL", 1, "0", 0),
        "created_at": ("INTEGER", 1, None, 0),
        "updated_at": ("INTEGER", 1, None, 0),
        "archived_at": ("INTEGER", 0, None, 0),
    },
    "chat_messages": {
        "id": ("TEXT", 0, None, 1),
        "session_id": ("TEXT", 1, None, 0),
        "role": ("TEXT", 1, None, 0),
        "metadata_json": ("TEXT", 1, "'{}'", 0),
        "created_at": ("INTEGER", 1, None, 0),
        "updated_at": ("INTEGER", 1, None, 0),
    },
    "chat_parts": {
        "id": ("TEXT", 0, None, 1),
        "message_id": ("TEXT", 1, None, 0),
        "session_id": ("TEXT", 1, None, 0),
        "index": ("INTEGER", 1, None, 0),
        "type": ("TEXT", 1, None, 0),
        "data_json": ("TEXT", 1, None, 0),
        "tool_call_id": ("TEXT", 0, None, 0),
        "tool_state": ("TEXT", 0, None, 0),
        "created_at": ("INTEGER", 1, None, 0),
        "updated_at": ("INTEGER", 1, None, 0),
    },
}
REQUIRED_INDEXES = {
    ("chat_sessions", ("agent", "updated_at")),
    ("chat_sessions", ("workspace_root", "updated_at")),
    ("chat_sessions", ("parent_id",)),
    ("chat_sessions", ("archived_at",)),
    ("chat_messages", ("session_id", "created_at")),
    ("chat_parts", ("message_id", "index")),
    ("chat_parts", ("session_id",)),
    ("chat_parts", ("tool_call_id",)),
}


def test_the_three_tables_are_exactly_the_contracts(tmp_path: Path) -> None:
    connection = sqlite3.connect(own(tmp_path / "s.db"))
    for table, columns in CONTRACT.items():
        found = {row[1]: row[2:] for row in connection.execute(f"PRAGMA table_info({table})")}
        assert found == columns
        assert tuple(found) == schema.REQUIRED_COLUMNS[table]


def test_every_required_index_is_there(tmp_path: Path) -> None:
    connection = sqlite3.connect(own(tmp_path / "s.db"))
    found = set()
    for table in CONTRACT:
        for _, name, *_rest in connection.execute(f"PRAGMA index_list({table})").fetchall():
            columns = connection.execute(f"PRAGMA index_info({name})").fetchall()
            found.add((table, tuple(row[2] for row in columns)))
    assert found >= REQUIRED_INDEXES


def test_deleting_a_session_takes_its_messages_and_parts(tmp_path: Path) -> None:
    database = open_database(own(tmp_path / "s.db"))
    connection = database.connection
    connection.execute(
        "INSERT INTO chat_sessions (id, agent, model_json, created_at, updated_at)"
        " VALUES ('s', 'a', '{}', 0, 0)"
    )
    connection.execute(
        "INSERT INTO chat_messages (id, session_id, role, created_at, updated_at)"
        " VALUES ('m', 's', 'user', 0, 0)"
    )
    connection.execute(
        'INSERT INTO chat_parts (id, message_id, session_id, "index", type, data_json,'
        " created_at, updated_at) VALUES ('p', 'm', 's', 0, 'text', '{}', 0, 0)"
    )
    connection.execute("DELETE FROM chat_sessions")
    for table in ("chat_messages", "chat_parts"):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(
            "INSERT INTO chat_messages (id, session_id, role, created_at, updated_at)"
            " VALUES ('m', 'nobody', 'user', 0, 0)"
        )
    database.close()


@pytest.mark.parametrize("write", [False, True])
def test_each_connection_has_the_pragmas(tmp_path: Path, write: bool) -> None:
    database = open_database(own(tmp_path / "s.db"), write=write)
    for pragma, value in {
        "journal_mode": "wal", "synchronous": 1, "busy_timeout": 5000, "foreign_keys": 1,
        "user_version": schema.CURRENT_VERSION, "application_id": schema.APPLICATION_ID,
    }.items():  # fmt: skip
        assert database.connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)
    database.close()


def test_migrations_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own(tmp_path / "s.db")
    step = (
        "CREATE TABLE later (id);\n"
        "CREATE TRIGGER on_later AFTER INSERT ON later BEGIN\n"
        "  DELETE FROM later WHERE id IS NULL;\n"
        "END;\n"
    )
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, step, "CREATE TABLE last (id)"))
    monkeypatch.setattr(schema, "CURRENT_VERSION", len(schema.MIGRATIONS))
    database = open_database(path, write=False)
    assert database.form.version == len(schema.MIGRATIONS)
    names = {row[0] for row in database.connection.execute("SELECT name FROM sqlite_master")}
    assert {"later", "on_later", "last"} <= names
    database.close()


def test_a_step_that_fails_leaves_the_version_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own(tmp_path / "s.db")
    steps = (*schema.MIGRATIONS, "CREATE TABLE good (id);\n", "CREATE TABLE half (id);\nNONSENSE;")
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    monkeypatch.setattr(schema, "CURRENT_VERSION", len(steps))
    with pytest.raises(StoreError):
        open_database(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(steps) - 1,)
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    assert "good" in names
    assert "half" not in names


def test_many_who_make_one_store_at_once_make_one(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    errors: list[BaseException] = []
    start = threading.Barrier(6)

    def make() -> None:
        start.wait()
        try:
            open_database(path, create=True).close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert open_database(path, write=False).form.name == "own"


def test_an_own_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "s.db"
    database = open_database(path, create=True)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    database.connection.execute("INSERT INTO system_prompts VALUES ('a', 'b')")
    for ending in ("-wal", "-shm"):
        assert path.with_name(path.name + ending).stat().st_mode & 0o777 == 0o600
    database.close()
