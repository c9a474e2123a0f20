"""What the doctor finds, and what it mends."""

from __future__ import annotations

import json
import sqlite3
import stat
from pathlib import Path

import pytest

from store.search.index.__main__ import main as build_index
from store.search.index.sidecar import INDEX
from store.stats.__main__ import main as count
from store.stats.tables import STATISTICS
from store.system.processes import this_process
from store.upkeep.doctor import CHECKS, Examined, examine_file
from tests.store.upkeep.conftest import Sql


def found_in(library: Path, *, fix: bool = False, quick: bool = False) -> list[str]:
    return [one.check for one in examine_file(library, fix=fix, quick=quick).findings
            if not one.is_note]


def mended(library: Path, check: str) -> Examined:
    """Check that a finding is there, is mended, and is gone then."""
    assert set(found_in(library)) == {check}
    done = examine_file(library, fix=True)
    assert done.is_well and all(one.mended for one in done.findings if not one.is_note)
    assert found_in(library) == []
    return done


@pytest.fixture
def small(library: Path, sql: Sql) -> Path:
    """The library with a single session, whose index is made at once."""
    connection = sqlite3.connect(library)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(
        "DELETE FROM chat_sessions WHERE id NOT IN (SELECT session_id FROM chat_messages"
        " GROUP BY session_id HAVING count(*) BETWEEN 2 AND 12 ORDER BY count(*) DESC LIMIT 1)")
    connection.execute("UPDATE chat_sessions SET parent_id = NULL, parent_message_id = NULL")
    connection.commit()
    connection.close()
    return library


def test_a_library_is_well(library: Path) -> None:
    done = examine_file(library)
    assert done.checks == list(CHECKS) and done.findings == []
    assert examine_file(library, quick=True).is_well


@pytest.mark.parametrize("damage", ["pages", "cut", "text", "missing"])
def test_damage_is_told_with_the_way_out(library: Path, damage: str) -> None:
    if damage == "missing":
        library.unlink()
    else:
        with library.open("r+b") as file:
            if damage == "pages":
                file.seek(40_000)
                file.write(b"\xff" * 30_000)
            elif damage == "cut":
                file.truncate(9000)
            else:
                file.write(b"just some text in a file, and no database at all".ljust(200, b"."))
    done = examine_file(library, fix=True)
    assert not done.is_well
    assert [one.check for one in done.findings] == ["integrity"]
    assert done.findings[0].way_out and not done.findings[0].mended


def test_rollups_are_counted_again(library: Path, sql: Sql) -> None:
    before = sql(library, "SELECT id, total_tokens, prompt_tokens FROM chat_sessions ORDER BY id")
    sql(library, "UPDATE chat_sessions SET prompt_tokens = prompt_tokens + 5 WHERE id IN"
        " (SELECT session_id FROM chat_messages WHERE role = 'assistant')")
    mended(library, "rollups")
    assert sql(library,
               "SELECT id, total_tokens, prompt_tokens FROM chat_sessions ORDER BY id") == before


def test_rows_that_belong_to_nothing(library: Path, sql: Sql) -> None:
    sql(library, "UPDATE chat_parts SET session_id = 'elsewhere' WHERE rowid % 5 = 0")
    mended(library, "orphans")
    sql(library, "INSERT INTO outlines VALUES ('ses_none', 'k', 'r', 'y')")
    mended(library, "orphans")
    parts = sql(library, "SELECT count(*) FROM chat_parts")
    sql(library, "DELETE FROM chat_messages WHERE rowid % 7 = 0 AND role = 'user'")
    done = examine_file(library, fix=True)
    keys = [one for one in done.findings if one.check == "foreign keys"]
    assert keys and not done.is_well and not any(one.mended for one in keys)
    assert sql(library, "SELECT count(*) FROM chat_parts") == parts


@pytest.mark.parametrize(("table", "column", "text"), [
    ("chat_sessions", "metadata_json", "[1]"), ("chat_sessions", "permissions_json", "{}"),
    ("chat_sessions", "model_json", "gpt"), ("chat_messages", "metadata_json", "{\"a\":"),
    ("chat_parts", "data_json", "3"), ("chat_messages", "metadata_json", ""),
])  # fmt: skip
@pytest.mark.one_in(3)
def test_json_of_another_type_is_told_and_stays(
    small: Path, sql: Sql, table: str, column: str, text: str
) -> None:
    (row_id,), = sql(small, f"SELECT min(id) FROM {table}")
    sql(small, f"UPDATE {table} SET {column} = '{text}' WHERE id = '{row_id}'")
    finding = next(one for one in examine_file(small, fix=True).findings if one.check == "json")
    assert f"{column} of 1 row of {table}" in finding.words and str(row_id) in finding.words
    assert "read as" in finding.way_out and not finding.mended and not finding.is_note
    assert sql(small, f"SELECT {column} FROM {table} WHERE id = '{row_id}'") == [(text,)]


def test_permissions_are_closed(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library.chmod(0o644)
    mended(library, "permissions")
    assert stat.S_IMODE(library.stat().st_mode) == 0o600
    library.parent.chmod(0o755)
    assert found_in(library, quick=True) == []  # A folder of the user's, with other files in it.
    monkeypatch.setattr("store.upkeep.doctor.data_dir", lambda: library.parent)
    mended(library, "permissions")
    assert stat.S_IMODE(library.parent.stat().st_mode) == 0o700


def test_files_beside_the_store_are_compared(small: Path, sql: Sql) -> None:
    build_index([str(small), "--once"])
    count([str(small), "--once"])
    done = examine_file(small)
    assert done.checks == list(CHECKS) and done.findings == []
    sql(INDEX.path(small), "DELETE FROM posting WHERE term = (SELECT max(term) FROM posting)")
    mended(small, "search index")
    sql(STATISTICS.path(small), "UPDATE spent SET input = input + 1")
    mended(small, "statistics")
    assert not INDEX.path(small).exists() and not STATISTICS.path(small).exists()
    INDEX.path(small).write_bytes(b"nothing")
    INDEX.path(small).chmod(0o600)
    assert found_in(small, quick=True) == ["search index"]
    mended(small, "search index")


def test_sessions_of_processes_that_have_ended(library: Path, sql: Sql) -> None:
    ((session,),) = sql(library, "SELECT min(id) FROM chat_sessions")
    gone = {"state": "running", "from": "stored", "since": 1} | this_process().as_json()
    gone["started"] = 1
    sql(library, "UPDATE chat_sessions SET metadata_json = json_set(metadata_json, '$.activity',"
        " json(?)) WHERE id = ?", json.dumps(gone), session)
    mended(library, "running sessions")
    gone |= this_process().as_json()
    sql(library, "UPDATE chat_sessions SET metadata_json = json_set(metadata_json, '$.activity',"
        " json(?)) WHERE id = ?", json.dumps(gone), session)
    assert found_in(library) == []  # This process lives.


def test_what_a_killed_backup_left(library: Path) -> None:
    for name in (".library.db.version-4.abcd.partial", ".library.db.version-4.abcd.partial-wal"):
        library.with_name(name).write_text("x")
    done = examine_file(library, fix=True)
    assert len(done.findings) == 2 and done.is_well
    assert [one.name for one in library.parent.iterdir() if one.name.startswith(".")] == []


def test_free_space(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("U", (), {"free": 1000}))
    assert found_in(library) == ["free space"]


def test_a_file_of_another_program_is_only_examined(library: Path, sql: Sql) -> None:
    sql(library, "PRAGMA application_id = 0")
    sql(library, "UPDATE chat_sessions SET prompt_tokens = 7 WHERE id IN"
        " (SELECT session_id FROM chat_messages WHERE role = 'assistant')")
    sql(library, "UPDATE chat_parts SET session_id = 'elsewhere' WHERE rowid % 5 = 0")
    library.chmod(0o644)
    before = sql(library, "SELECT * FROM chat_sessions ORDER BY id")
    done = examine_file(library, fix=True)
    assert [(one.check, one.is_note) for one in done.findings] == [
        ("orphans", False), ("rollups", True)]
    assert all("another program" in one.way_out and not one.mended for one in done.findings)
    assert sql(library, "SELECT * FROM chat_sessions ORDER BY id") == before
    assert stat.S_IMODE(library.stat().st_mode) == 0o644
