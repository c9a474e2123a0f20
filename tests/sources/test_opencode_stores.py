"""Where opencode's stores lie, damage in them, being watched, and being left as they are."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.sources.base.protocol import Problem
from store.sources.opencode import OpencodeSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target, classify
from tests.sources.opencode_rows import SAMPLE, Rows, read_store, text, texts

DATA = SAMPLE.parent
SESSION, LEGACY = "ses_one", "ses_de0dbc716ffeRm1fH2ozt1LJdy"
SECRET = "s3cr3t-value"


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    folder = tmp_path / "opencode"
    folder.mkdir()
    made = Rows(folder / "opencode.db")
    made.session(SESSION)
    made.message(SESSION, "user", text("one"))
    return made


@pytest.fixture
def library(tmp_path: Path) -> Database:
    return open_database(tmp_path / "library.db", create=True)


@pytest.fixture
def legacy(tmp_path: Path) -> Path:
    root = tmp_path / "opencode"
    shutil.copytree(DATA / "legacy", root)
    return root


def synced(library: Database, root: Path) -> tuple[int, int]:
    """Sync a root; return how many units were read and how many things were complained of."""
    summary = Sync(library, Settings(helpers=0)).run([Target(OpencodeSource(), root)])
    return summary.read, summary.problems


def snapshot(folder: Path) -> dict[str, tuple[bytes, int] | None]:
    """Return content and time of everything below a folder but a live ``-shm``."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith("-shm")
    } | {str(path): None for path in folder.rglob("*-shm")}


def test_usual_places_follow_the_programs_variables(tmp_path: Path) -> None:
    roots = OpencodeSource().default_roots
    usual = tmp_path / ".local" / "share" / "opencode"
    assert roots({}, tmp_path) == [usual]
    assert roots({"XDG_DATA_HOME": "/data"}, tmp_path) == [Path("/data/opencode")]
    assert roots({"OPENCODE_DB": ":memory:"}, tmp_path) == [usual]
    assert roots({"OPENCODE_DB": "/else/my.db"}, tmp_path) == [usual, Path("/else/my.db")]
    assert roots({"OPENCODE_DB": "my.db"}, tmp_path) == [usual, usual / "my.db"]
    assert roots({"OPENCODE_DB": "opencode-next.db"}, tmp_path) == [usual]


def test_files_and_folders_are_known_by_their_content(tmp_path: Path, rows: Rows) -> None:
    source = OpencodeSource()
    folder, other = rows.path.parent, tmp_path / "x.sqlite"
    shutil.copyfile(SAMPLE, other)
    for path in (folder, rows.path, other, DATA / "legacy", DATA / "legacy" / "storage",
                 DATA / "exports" / "export-main.json"):  # fmt: skip
        assert source.recognise(path) == path
        assert classify(path, [source]) == Target(source, path)
    (tmp_path / "plain.json").write_text('{"info": {"id": "ses_x"}}')
    (tmp_path / "empty").mkdir()
    sqlite3.connect(tmp_path / "strange.db").execute("CREATE TABLE session(id)").connection.close()
    for name in ("plain.json", "empty", "strange.db", "library.db", "missing"):
        assert source.recognise(tmp_path / name) is None
    assert source.recognise(DATA / "storage") is None


def test_a_channels_database_is_read_beside_the_usual_one(rows: Rows) -> None:
    shutil.copyfile(SAMPLE, rows.path.with_name("opencode-stable.db"))
    drafts, problems = read_store(rows.path.parent)
    assert len(drafts) == 7 and problems == []


def test_the_newest_session_in_a_wal_without_its_shm_is_read(tmp_path: Path, rows: Rows) -> None:
    rows.connection.execute("PRAGMA journal_mode = WAL")
    rows.session("ses_two")
    rows.message("ses_two", "user", text("newest"))
    folder = tmp_path / "killed"
    folder.mkdir()
    for ending in ("", "-wal"):
        shutil.copyfile(f"{rows.path}{ending}", folder / f"opencode.db{ending}")
    before = snapshot(folder)
    drafts, problems = read_store(folder)
    assert texts(drafts["ses_two"]) == ["newest"] and problems == []
    assert snapshot(folder) == before


@pytest.mark.parametrize("writer", ["open", "closed"])
def test_a_store_stays_as_it_is_also_with_its_writers_wal(
    library: Database, rows: Rows, writer: str
) -> None:
    rows.connection.execute("PRAGMA journal_mode = WAL")
    rows.message(SESSION, "assistant", text("two"))
    folder = rows.path.parent
    if writer == "closed":
        rows.connection.close()
    (folder / "auth.json").write_text(SECRET)
    before = snapshot(folder)
    assert synced(library, folder) == (1, 0)
    assert synced(library, folder) == (0, 0)
    source = OpencodeSource()
    assert source.units_at(folder, [str(rows.path)])
    list(source.watch_paths(folder))
    assert snapshot(folder) == before


def test_the_json_store_and_an_export_stay_as_they_are(library: Database, legacy: Path) -> None:
    before = snapshot(legacy)
    assert synced(library, legacy) == (3, 0)
    assert synced(library, legacy) == (0, 0)
    assert snapshot(legacy) == before


def test_secrets_are_never_read(library: Database, rows: Rows) -> None:
    rows.insert("session_share", session_id=SESSION, id="x", secret=SECRET, url="u",
                time_created=1, time_updated=1)  # fmt: skip
    read: set[str] = set()

    def notice(action: int, table: str | None, *rest: object) -> int:
        if action == sqlite3.SQLITE_READ and table:
            read.add(table)
        return sqlite3.SQLITE_OK

    source = OpencodeSource()
    with source._databases.reading(rows.path) as connection:
        connection.set_authorizer(notice)
        from store.sources.opencode.database import read_session
        from store.sources.opencode.kept_rows import KeptRows
        from store.sources.opencode.listing import list_sessions

        list(list_sessions(connection, rows.path, "", []))
        stored = read_session(connection, SESSION, str(rows.path), KeptRows())
        connection.set_authorizer(None)
    assert stored is not None and SECRET.encode() not in b"".join(stored.records)
    assert {"session", "message", "part"} <= read
    assert read.isdisjoint({"session_share", "account", "account_state", "credential",
                            "control_account"})  # fmt: skip


def test_of_500_sessions_just_the_one_that_grew_is_read(library: Database, rows: Rows) -> None:
    rows.connection.execute("BEGIN")
    for number in range(499):
        rows.session(f"ses_{number:03}")
        rows.message(f"ses_{number:03}", "user", text("hi"))
    rows.connection.execute("COMMIT")
    source, root = OpencodeSource(), rows.path.parent
    assert synced(library, root) == (500, 0)
    assert len(source.units_at(root, [str(rows.path)]) or ()) == 500
    rows.message("ses_123", "assistant", text("more"))
    (moved,) = source.units_at(root, [f"{rows.path}-wal"]) or []
    assert moved.key == "opencode.db/ses_123"
    assert synced(library, root) == (1, 0)
    assert source.units_at(root, [str(rows.path)]) == []


@pytest.mark.parametrize("events", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE part SET data = json_object('type', 'text', 'text', 'more'),"
        " time_updated = time_updated + 5 WHERE session_id = 'ses_one'",
        "UPDATE message SET time_updated = time_updated + 5 WHERE session_id = 'ses_one'",
        "UPDATE session SET title = 'Renamed' WHERE id = 'ses_one'",
        "UPDATE session SET time_archived = 5 WHERE id = 'ses_one'",
        "UPDATE session SET revert = '{}' WHERE id = 'ses_one'",
        "DELETE FROM part WHERE session_id = 'ses_one'",
    ],
)
def test_each_kind_of_change_moves_just_its_session(
    rows: Rows, events: bool, change: str
) -> None:
    rows.events = events
    rows.session("ses_two")
    rows.message("ses_two", "user", text("hi"))
    if not events:
        rows.connection.execute("DELETE FROM event_sequence")
    source = OpencodeSource()
    before = {unit.key: unit for unit in source.units(rows.path, [])}
    rows.connection.execute(change)
    moved = [unit.key for unit in source.units(rows.path, []) if before[unit.key] != unit]
    assert moved == ["opencode.db/ses_one"]


def test_a_row_of_the_second_engine_moves_its_session(rows: Rows) -> None:
    row = rows.second(SESSION, "assistant", {"content": []})
    source = OpencodeSource()
    (before,) = source.units(rows.path, [])
    rows.connection.execute(
        "UPDATE session_message SET time_updated = time_updated + 1 WHERE id = ?", (row,)
    )
    (after,) = source.units(rows.path, [])
    assert before.stamps != after.stamps


def test_a_session_that_grew_while_it_was_read_is_read_again(
    library: Database, rows: Rows
) -> None:
    rows.connection.execute("PRAGMA journal_mode = WAL")
    source, root = OpencodeSource(), rows.path.parent
    (unit,) = source.units(root, [])
    rows.message(SESSION, "assistant", text("two"))
    reading = source.read(root, unit)
    assert texts(reading.sessions[0]) == ["one", "two"]
    (now,) = source.units(root, [])
    assert now.stamps != reading.stamps


def test_a_session_that_is_deleted_before_it_is_read_costs_nothing(rows: Rows) -> None:
    source = OpencodeSource()
    (unit,) = source.units(rows.path, [])
    rows.connection.execute("DELETE FROM session")
    reading = source.read(rows.path, unit)
    assert (reading.sessions, reading.problems) == ([], [])


def test_a_locked_database_is_named_and_read_later(
    library: Database, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.sources.base.databases.BUSY_MS", 1)
    rows.connection.execute("BEGIN EXCLUSIVE")
    problems: list[Problem] = []
    assert list(OpencodeSource().units(rows.path, problems)) == []
    assert problems[0].path == str(rows.path) and "locked" in problems[0].reason
    rows.connection.execute("COMMIT")
    assert synced(library, rows.path) == (1, 0)


def test_orphans_are_told_of_and_what_they_say_is_kept(rows: Rows) -> None:
    rows.connection.execute("PRAGMA foreign_keys = OFF")
    rows.part(SESSION, "msg_missing", text("left"))
    rows.message("ses_missing", "user", text("lost"))
    rows.session("ses_child", parent_id="ses_missing")
    drafts, problems = read_store(rows.path)
    assert texts(drafts[SESSION]) == ["one", "left"]
    assert drafts[SESSION].messages[1].metadata["backscroll"]["orphan"] is True
    assert drafts["ses_child"].lineage is not None
    reasons = sorted(problem.reason for problem in problems)
    assert len(reasons) == 2
    assert reasons[0].startswith("1 messages of session ses_missing")
    assert "msg_missing, which is missing" in reasons[1]


def test_rows_that_hold_no_json_cost_only_themselves(library: Database, rows: Rows) -> None:
    message = rows.message(SESSION, "assistant", text("two"))
    rows.part(SESSION, message, '{"type": "text", "te')
    rows.message(SESSION, "user", text("three"))
    rows.connection.execute("UPDATE message SET data = '[1' WHERE id = ?", (message,))
    drafts, problems = read_store(rows.path)
    assert texts(drafts[SESSION]) == ["one", "two", "three"]
    assert [part.type for part in drafts[SESSION].messages[1].parts] == [
        "data-event", "text", "data-event",
    ]  # fmt: skip
    assert len(problems) == 2
    assert synced(library, rows.path)[0] == 1


def test_odd_values_are_taken_as_they_come(library: Database, rows: Rows) -> None:
    odd: list[dict[str, Any]] = [
           {"type": 7}, {"type": "tool"}, {"type": "text", "text": None},
           {"type": "reasoning", "time": 3, "metadata": []}, {"type": "file"},
           {"type": "step-finish", "tokens": "many", "cost": "free"},
           {"type": "retry", "error": "no"}, {"type": "tool", "state": {"input": [1], "time": []}},
           {"type": "text", "text": "\ud800"}]  # fmt: skip
    rows.message(SESSION, "assistant", *odd, tokens=[], time=None, error="broke", path=1)
    rows.message(SESSION, "robot", text("beep"), model=5, summary=True)
    rows.connection.execute("UPDATE session SET model = '[]', revert = '3', permission = 'x'")
    assert synced(library, rows.path) == (1, 0)
    drafts, problems = read_store(rows.path)
    assert problems == [] and len(drafts[SESSION].messages) == 3
    assert drafts[SESSION].messages[2].role == "system"
    assert drafts[SESSION].messages[2].metadata["backscroll"]["role"] == "robot"


def test_an_older_database_with_fewer_columns_and_tables_is_read(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT,"
            " directory TEXT, title TEXT, version TEXT, time_created INTEGER,"
            " time_updated INTEGER);"
            "CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,"
            " time_updated INTEGER, data TEXT);"
            "CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,"
            " time_created INTEGER, time_updated INTEGER, data TEXT);"
            "INSERT INTO session VALUES ('ses_old', 'p', NULL, 's', '/home/mira', 'Old', '1.2.0',"
            " 5, 9);"
            "INSERT INTO message VALUES ('msg_1', 'ses_old', 6, 6, '{\"role\": \"user\"}');"
            "INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_old', 6, 6,"
            ' \'{"type": "text", "text": "hi"}\');'
        )
    connection.close()
    drafts, problems = read_store(path)
    assert texts(drafts["ses_old"]) == ["hi"] and problems == []
    assert (drafts["ses_old"].title, drafts["ses_old"].updated_at) == ("Old", 9)


def test_a_damaged_database_is_a_problem_and_no_more(library: Database, tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    body = bytearray(SAMPLE.read_bytes())
    body[4096 * 2 : 4096 * 40] = b"\xff" * (4096 * 38)
    path.write_bytes(body)
    read, problems = synced(library, path)
    assert problems > 0


def test_the_original_rows_are_kept(rows: Rows) -> None:
    rows.message(SESSION, "assistant", text("two"))
    drafts, _ = read_store(rows.path)
    draft = drafts[SESSION]
    kept = [json.loads(record) for record in draft.records]
    assert [row["table"] for row in kept] == ["session", "message", "part", "message", "part"]
    assert kept[4]["data"] == {"type": "text", "text": "two"}
    assert kept[4]["message_id"] == draft.messages[1].source_id
    assert draft.messages[1].parts[0].records == (4,) and draft.messages[1].records == (3,)


def test_torn_and_missing_files_of_the_json_store(legacy: Path) -> None:
    parts = sorted((legacy / "storage" / "part").rglob("*.json"))
    torn = next(path for path in parts if "I will list" in path.read_text())
    torn.write_text(torn.read_text()[:40])
    shutil.rmtree(torn.parent.parent / "msg_21f243bcb001TK3r2U5oEYzRe1")
    drafts, problems = read_store(legacy)
    assert [problem.path for problem in problems] == [str(torn)]
    assert texts(drafts[LEGACY])[-1] == "Done: `a.txt` now says ALPHA."
    assert drafts[LEGACY].messages[2].parts == []


def test_a_file_that_went_away_after_the_listing(legacy: Path, library: Database) -> None:
    source = OpencodeSource()
    unit = next(unit for unit in source.units(legacy, []) if LEGACY in unit.key)
    os.remove(unit.stamps[0].path)
    with pytest.raises(FileNotFoundError):
        source.read(legacy, unit)
    assert synced(library, legacy) == (2, 0)


def test_a_json_store_that_moves_is_read_again(legacy: Path, library: Database) -> None:
    assert synced(library, legacy) == (3, 0)
    messages = legacy / "storage" / "message" / LEGACY
    (path,) = messages.glob("msg_21f243e04*")
    folder = legacy / "storage" / "part" / path.stem
    (part,) = (found for found in folder.iterdir() if "Done" in found.read_text())
    part.write_text(part.read_text().replace("ALPHA", "alpha again"))
    os.utime(part, ns=(1, 1))
    assert synced(library, legacy) == (1, 0)


def test_a_session_in_both_stores_is_read_from_the_database(legacy: Path) -> None:
    rows = Rows(legacy / "opencode.db")
    rows.session(LEGACY, title="Moved")
    drafts, problems = read_store(legacy)
    assert (len(drafts), drafts[LEGACY].title, problems) == (3, "Moved", [])


def test_what_is_watched(rows: Rows, tmp_path: Path) -> None:
    source = OpencodeSource()
    assert list(source.watch_paths(rows.path.parent)) == [
        rows.path, rows.path.with_name("opencode.db-wal"),
    ]  # fmt: skip
    storage = DATA / "legacy" / "storage"
    assert list(source.watch_paths(DATA / "legacy")) == [
        storage / "session", storage / "message", storage / "part",
    ]  # fmt: skip
    assert source.units_at(rows.path.parent, [str(tmp_path / "else")]) is None


def test_a_session_that_is_followed_is_what_it_is_when_read_once(
    library: Database, rows: Rows, tmp_path: Path
) -> None:
    root = rows.path.parent
    assert synced(library, root) == (1, 0)
    message = rows.message(SESSION, "assistant", {"type": "step-start"})
    assert synced(library, root) == (1, 0)
    part = rows.part(SESSION, message, text(""))
    assert synced(library, root) == (1, 0)
    rows.connection.execute(
        "UPDATE part SET data = json_object('type', 'text', 'text', 'filled') WHERE id = ?", (part,)
    )
    rows.tell(SESSION)
    assert synced(library, root) == (1, 0)
    once = open_database(tmp_path / "once.db", create=True)
    synced(once, root)
    for table in ("chat_sessions", "chat_messages", "chat_parts"):
        query = f"SELECT * FROM {table} ORDER BY id"
        followed = library.connection.execute(query).fetchall()
        assert followed == once.connection.execute(query).fetchall()
