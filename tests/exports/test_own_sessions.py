"""Sessions of agents that resume their own alone: their command, else Claude Code."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.errors import Refused
from store.ids import IdMinter
from store.queries.sessions import get
from store.resume.planning import ResumePlan, with_prompt
from store.resume.provenance import source_of
from store.resume.registry import plan
from store.rows import SessionRow
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from store.system.clock import system_clock
from store.verbs.fork import fork
from tests.sources.samples import DATA

CRUSH = DATA / "crush/home/mira/code/api/.crush"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with the stores of three agents, each in its usual place."""
    made = tmp_path / "home"
    shutil.copytree(CRUSH, made / "code/api/.crush")
    shutil.copytree(DATA / "kilo", made / ".local/share/kilo")
    shutil.copytree(DATA / "droid/sessions", made / ".factory/sessions")
    shutil.copytree(DATA / "cursor/home/.cursor/chats", made / ".cursor/chats")
    shutil.copytree(DATA / "cline/sdk", made / ".cline/data")
    shutil.copytree(DATA / "cline/legacy", made / "older/data")
    shutil.copytree(DATA / "goose/sessions", made / ".local/share/goose/sessions")
    shutil.copytree(DATA / "kiro/home/.kiro/sessions/cli", made / ".kiro/sessions/cli")
    shutil.copytree(DATA / "vibe/session/unified", made / ".vibe/logs/session/unified")
    shutil.copytree(DATA / "gptme/logs", made / ".local/share/gptme/logs")
    shutil.copytree(DATA / "llm", made / ".config/io.datasette.llm")
    return made


def library(tmp_path: Path, kind: str, root: Path, folder: Path) -> Database:
    """Return a library of one store whose sessions are of one folder."""
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database, Settings(helpers=0)).run([Target(source(kind), root)])
    folder.mkdir(parents=True, exist_ok=True)
    with database.file:
        database.connection.execute("UPDATE chat_sessions SET workspace_root = ?", (str(folder),))
    return database


def roots(db: Database) -> list[SessionRow]:
    """Return the sessions with answers that no other session started, by id."""
    ids = db.connection.execute(
        "SELECT id FROM chat_sessions s WHERE parent_id IS NULL AND EXISTS"
        " (SELECT 1 FROM chat_messages WHERE session_id = s.id AND role = 'assistant') ORDER BY id"
    ).fetchall()
    found = [get(db, each) for (each,) in ids]
    return [row for row in found if row is not None]


def planned(db: Database, row: SessionRow, home: Path, **variables: str) -> ResumePlan:
    return plan(db, row, {"PATH": str(home), **variables}, home)


@pytest.mark.parametrize(
    ("kind", "root", "folder", "words"),
    [
        ("crush", "code/api/.crush/crush.db", "code/api", ("crush", "--session")),
        ("crush", "code/api/.crush/crush.db", "code/api/inner/deep", ("crush", "--session")),
        ("kilo", ".local/share/kilo", "code/api", ("kilo", "--session")),
        ("llm", ".config/io.datasette.llm", "code", ("llm", "chat", "--cid")),
        ("droid", ".factory/sessions", "code", ("droid", "--resume")),
        ("vibe", ".vibe/logs/session", "code", ("vibe", "--resume")),
        ("gptme", ".local/share/gptme/logs", "code", ("gptme", "--name")),
        ("cursor", ".cursor", "code", ("agent", "--resume")),
        ("kiro", ".kiro/sessions", "code", ("kiro-cli", "--resume-id")),
        ("cline", ".cline/data", "code", ("cline", "-i", "--id")),
        ("goose", ".local/share/goose/sessions/sessions.db", "code",
         ("goose", "session", "--resume", "--session-id")),
    ],
)
@pytest.mark.one_in(3)
def test_an_unchanged_session_is_resumed_by_its_id(
    home: Path, tmp_path: Path, kind: str, root: str, folder: str, words: tuple[str, ...]
) -> None:
    db = library(tmp_path, kind, home / root, home / folder)
    rows = roots(db)
    assert rows
    for row in rows:
        made = planned(db, row, home)
        own = db.connection.execute(
            f"SELECT {db.form.fact('s', 'source.id')} FROM chat_sessions s WHERE id = ?", (row.id,)
        ).fetchone()[0]
        assert tuple(made.command) == (*words, own)
        assert (made.kind, made.file, made.before, made.cwd) == (
            kind, None, None, str(home / folder))
        said = with_prompt(made, "and then?")
        assert tuple(said.command) == (*words, own)
        assert said.withheld is not None and "takes no prompt" in said.withheld
    db.close()


@pytest.mark.parametrize(("kind", "root", "folder"), [
    ("crush", "code/api/.crush/crush.db", "elsewhere"),
    ("kilo", "backup/kilo", "code/api"),
    ("llm", "backup/llm", "code"),
    ("droid", "backup/droid", "code"),
    ("cursor", "backup/cursor", "code"),
    ("kiro", "backup/kiro-sessions", "code"),
    ("gptme", "backup/gptme-logs", "code"),
    ("vibe", "backup/vibe-sessions", "code"),
    ("goose", "backup/goose/sessions.db", "code"),
])
@pytest.mark.one_in(3)
def test_a_store_that_the_agent_would_not_find_is_handed_to_another(
    home: Path, tmp_path: Path, kind: str, root: str, folder: str
) -> None:
    (home / "backup").mkdir()
    shutil.copytree(home / ".local/share/kilo", home / "backup/kilo")
    shutil.copytree(home / ".config/io.datasette.llm", home / "backup/llm")
    shutil.copytree(home / ".local/share/goose/sessions", home / "backup/goose")
    shutil.copytree(home / ".factory/sessions", home / "backup/droid")
    shutil.copytree(home / ".vibe/logs/session", home / "backup/vibe-sessions")
    shutil.copytree(home / ".local/share/gptme/logs", home / "backup/gptme-logs")
    shutil.copytree(home / ".cursor", home / "backup/cursor")
    shutil.copytree(home / ".kiro/sessions", home / "backup/kiro-sessions")
    db = library(tmp_path, kind, home / root, home / folder)
    made = planned(db, roots(db)[0], home)
    assert (made.kind, made.command.program) == ("claude-code", "claude")
    assert made.file is not None
    db.close()


@pytest.mark.parametrize(("name", "program"), [("kiro-cli", "kiro-cli"), ("amazon-q", "q")])
def test_a_conversation_of_a_folder_is_resumed_without_an_id(
    home: Path, tmp_path: Path, name: str, program: str
) -> None:
    root = home / ".local/share" / name
    shutil.copytree(DATA / "kiro/home/.local/share" / name, root)
    folder = home / "code"
    with closing(sqlite3.connect(root / "data.sqlite3", isolation_level=None)) as connection:
        table = "conversations_v2" if name == "kiro-cli" else "conversations"
        connection.execute(f"UPDATE {table} SET key = ? WHERE key = '/home/mira/code/api'",
                           (str(folder),))  # fmt: skip
    db = library(tmp_path, "kiro", root, folder)
    made = [planned(db, row, home) for row in roots(db)]
    own = [one for one in made if one.kind == "kiro"]
    assert [tuple(one.command) for one in own] == [(program, "chat", "--resume")]
    assert len(made) > 1
    db.close()


def test_a_task_of_an_older_cline_is_resumed_by_its_own_option(home: Path, tmp_path: Path) -> None:
    db = library(tmp_path, "cline", home / "older/data", home / "code")
    for row in roots(db):
        own = source_of(row)["id"]
        made = planned(db, row, home, CLINE_DIR=str(home / "older"))
        assert tuple(made.command) == ("cline", "-T", own)
    db.close()


def test_a_nearer_project_of_crush_hides_a_farther_one(home: Path, tmp_path: Path) -> None:
    inner = home / "code/api/inner"
    db = library(tmp_path, "crush", home / "code/api/.crush/crush.db", inner)
    assert planned(db, roots(db)[0], home).kind == "crush"
    (inner / ".crush").mkdir()
    assert planned(db, roots(db)[0], home).kind == "claude-code"
    db.close()


def test_a_fork_that_was_made_here_is_handed_to_another_agent(home: Path, tmp_path: Path) -> None:
    db = library(tmp_path, "kilo", home / ".local/share/kilo", home / "code")
    row = roots(db)[0]
    (message,) = db.connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ? AND role = 'assistant' LIMIT 1",
        (row.id,)).fetchone()
    made = fork(db, row.id, message, ids=IdMinter(), now=system_clock())
    forked = get(db, made.session_id)
    assert forked is not None
    assert planned(db, forked, home).kind == "claude-code"
    with pytest.raises(Refused, match="no agent named 'kilo'"):
        plan(db, row, dict(os.environ), home, "kilo")
    db.close()


def test_a_hostile_id_is_no_argument(home: Path, tmp_path: Path) -> None:
    db = library(tmp_path, "llm", home / ".config/io.datasette.llm", home)
    row = roots(db)[0]
    with db.file:
        db.connection.execute(
            "UPDATE chat_sessions SET metadata_json ="
            " json_set(metadata_json, '$.source.id', '--system=obey') WHERE id = ?", (row.id,))
    changed = get(db, row.id)
    assert changed is not None
    assert planned(db, changed, home).kind == "claude-code"
    db.close()
