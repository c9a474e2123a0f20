"""Migrations, backups, vacuum and a nightly cut keep the log and the store alike."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path

import pytest

from store.engine import schema
from store.engine.database import in_transaction, open_database
from store.engine.event_log import TABLES, VERSION, FileEvents
from store.events.log import log_state, switch_on
from store.events.reading import events_of
from store.events.rebuilding import differing
from store.events.trimming import log_size
from store.system.clock import system_clock
from store.upkeep import __main__ as upkeep
from store.upkeep.backup import back_up
from store.upkeep.compacting import vacuum
from store.upkeep.restoring import restore_backup
from store.verbs.marks import rename


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library with a session and its log."""
    path = tmp_path / "library.db"
    with contextlib.closing(open_database(path, create=True)) as db:
        switch_on(db)
        db.connection.execute(
            "INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
            " VALUES ('ses_1', 'a', '{}', 1, 1)")
        for number in range(5):
            in_transaction(db, rename, "ses_1", f"title {number}", now=number)
    return path


def assert_well(path: Path, events: int) -> None:
    with contextlib.closing(open_database(path)) as db:
        assert differing(db) == [] and len(list(events_of(db, "ses_1"))) == events
        in_transaction(db, rename, "ses_1", "one more", now=99)
        assert differing(db) == [] and len(list(events_of(db, "ses_1"))) == events + 1


@pytest.mark.parametrize("version", [1, schema.CURRENT_VERSION - 1])
def test_an_older_library_migrates_with_its_log(tmp_path: Path, version: int) -> None:
    path = tmp_path / "library.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as older:
        for step in schema.MIGRATIONS[:version]:
            for statement in schema.statements(step):
                older.execute(statement)
        older.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        older.execute(f"PRAGMA user_version = {version}")
        for statement in schema.statements(TABLES):
            older.execute(statement)
        FileEvents(older).put()
        older.execute("INSERT INTO event_log VALUES (?, 1, 1, 1, NULL, 1, 0)", (VERSION,))
        older.execute("INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at)"
                      " VALUES ('ses_1', 'a', '{}', 1, 1)")
    path.chmod(0o600)
    assert_well(path, 1)


_OF_THE_TABLES = re.compile(
    r"\b(ALTER|DROP|CREATE)\s+TABLE\s+(IF\s+(NOT\s+)?EXISTS\s+)?"
    r"[\"'`\[]?chat_(sessions|messages|parts)\b", re.IGNORECASE)


@pytest.mark.parametrize("version", range(1, schema.CURRENT_VERSION))
def test_a_step_that_changes_the_three_tables_renews_the_triggers(version: int) -> None:
    step = schema.MIGRATIONS[version]
    assert not _OF_THE_TABLES.search(step) or "TRIGGER event_log_part_updated" in step, (
        "the triggers of the event log copy columns by name, and go with a table that is dropped:"
        " create them anew in this step, with a snapshot of each session")


def test_the_first_step_is_found_to_change_the_tables() -> None:
    assert len(_OF_THE_TABLES.findall(schema.MIGRATIONS[0])) == 3
    assert _OF_THE_TABLES.search('alter table "chat_parts" ADD COLUMN x')


def test_a_log_of_a_newer_version_is_left_alone(library: Path) -> None:
    with contextlib.closing(open_database(library)) as db:
        db.connection.execute("UPDATE event_log SET version = version + 1")
        with pytest.raises(Exception, match="newer version"):
            switch_on(db)
        state = log_state(db)
        assert state is not None and not state.tells_all


def test_backup_restore_and_vacuum(library: Path, tmp_path: Path) -> None:
    with contextlib.closing(open_database(library)) as db:
        back_up(db, tmp_path / "backup.db")
        vacuum(db)
    assert_well(library, 6)
    restore_backup(tmp_path / "backup.db", library)
    assert_well(library, 6)


def test_old_events_are_cut_in_the_background(
    library: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config" / "backscroll"
    config.mkdir(parents=True)
    config.joinpath("config.toml").write_text("[events]\nkeep_days = 1\n")
    with contextlib.closing(open_database(library)) as db:
        db.connection.execute("UPDATE events SET at = 1")
    assert upkeep.main([str(library), "--once"]) == 0
    with contextlib.closing(open_database(library)) as db:
        assert log_size(db)[0] == 1
        state = log_state(db)
        assert state is not None and abs(state.trimmed_at - system_clock()) < 3_600_000
        db.connection.execute("UPDATE events SET kind = 'session.created'")
    assert upkeep.main([str(library), "--once"]) == 0
    assert_well(library, 1)
