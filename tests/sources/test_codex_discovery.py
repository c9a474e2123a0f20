"""Where Codex's sessions are looked for, what is recognised, and that nothing is touched."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.queries.originals import records_of_part
from store.sources.base.protocol import Problem
from store.sources.codex import CodexSource
from store.sources.registry import all_sources
from store.sync.engine import Sync
from store.sync.targets import Target, classify
from tests.sources.codex_lines import DATA, Lines, read, thread_id

A, B = thread_id(1), thread_id(2)
HOME = DATA / "home"
FORK, NAMED, REVERTED = "01a21f24-5b3f", "01a21f24-5a3a", "01a21f24-5c14"


def sample(name: str) -> Path:
    (path,) = [p for p in HOME.rglob(f"*{name}*.jsonl") if "_" not in p.stem]
    return path


def test_the_usual_places(tmp_path: Path) -> None:
    source = CodexSource()
    assert source.default_roots({}, tmp_path) == [tmp_path / ".codex"]
    named = {"CODEX_HOME": str(tmp_path / "other")}
    assert source.default_roots(named, tmp_path) == [tmp_path / "other", tmp_path / ".codex"]


def test_the_state_database_may_lie_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Lines(A)
    lines.turn("one", "re", "r")
    lines.write(tmp_path / "home")
    elsewhere = tmp_path / "databases"
    elsewhere.mkdir()
    with sqlite3.connect(elsewhere / "state_5.sqlite") as database:
        database.execute("CREATE TABLE threads (id TEXT, name TEXT)")
        database.execute("INSERT INTO threads VALUES (?, 'far')", (A,))
    database.close()
    source = CodexSource()
    environment = {"CODEX_HOME": str(tmp_path / "home"), "CODEX_SQLITE_HOME": str(elsewhere)}
    root = source.default_roots(environment, tmp_path)[0]
    assert read(root, source)[0][A].title == "far"
    # Helpers of a sync, and a home that is named by its path, know nothing but the environment.
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert read(root, CodexSource())[0][A].title == "far"
    other = tmp_path / "other"
    shutil.copytree(root, other)
    assert read(other, CodexSource())[0][A].title == "one"


@pytest.mark.parametrize("place", ["../far", "{far}"])
def test_the_databases_folder_is_taken_from_the_settings(tmp_path: Path, place: str) -> None:
    home, far = tmp_path / "home", tmp_path / "far"
    far.mkdir()
    lines = Lines(A)
    lines.user("hi")
    lines.write(home)
    with sqlite3.connect(far / "state_5.sqlite") as database:
        database.execute("CREATE TABLE threads (id TEXT, name TEXT)")
        database.execute("INSERT INTO threads VALUES (?, 'far')", (A,))
    database.close()
    named = place.format(far=far)
    (home / "config.toml").write_text(f'model = "gpt"\nsqlite_home = "{named}"\n')
    assert read(home)[0][A].title == "far"
    (home / "config.toml").write_text("sqlite_home = torn")
    assert read(home)[0][A].title == "hi"


@pytest.mark.parametrize("below", [".", "sessions", "archived_sessions", "sessions/2026/11/27"])
def test_folders_are_recognised(below: str) -> None:
    folder = HOME / below
    assert CodexSource().recognise(folder) == folder
    target = classify(folder, all_sources())
    assert isinstance(target, Target) and target.source.kind == "codex"


def test_one_file_is_its_whole_thread() -> None:
    drafts, problems = read(sample(REVERTED))
    assert problems == [] and len(drafts) == 1
    (draft,) = drafts.values()
    assert draft.path.endswith("01a21f24-5ccd-7d51-b7be-5c6cf683a808.jsonl")


def test_one_files_names_and_bases_are_found_in_its_home() -> None:
    (draft,) = read(sample(FORK))[0].values()
    assert draft.title == "Make new.py"
    assert sum(m.inherited_from is not None for m in draft.messages) == 4


def test_a_file_away_from_home_is_read_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "saved.jsonl"
    shutil.copyfile(sample(NAMED), path)
    assert CodexSource().recognise(path) == path
    drafts, problems = read(path)
    assert problems == [] and list(drafts) == ["01a21f24-5a3a-7710-8f9a-5753d6318e23"]


@pytest.mark.parametrize("name", ["notes.jsonl", "rollout-x.jsonl", "empty.jsonl", "x.txt"])
def test_other_files_are_not_recognised(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("" if name == "empty.jsonl" else '{"type":"user","uuid":"x"}\n')
    assert CodexSource().recognise(path) is None
    assert CodexSource().recognise(tmp_path) is None


def test_claudes_files_are_claudes_and_codexs_are_codexs() -> None:
    claude = DATA.parent / "claude-code" / "home" / ".claude"
    assert CodexSource().recognise(claude) is None
    kinds = {s.kind for s in all_sources() if s.recognise(HOME) is not None}
    assert kinds == {"codex"}


def test_a_segment_in_two_places_is_a_thread_and_a_copy(tmp_path: Path) -> None:
    lines = Lines(A)
    lines.turn("one", "re one", "r1")
    archived = lines.write(tmp_path, folder="archived_sessions")
    lines.turn("two", "re two", "r2")
    path = lines.write(tmp_path)
    named = path.with_stem(f"{path.stem} (1)")
    shutil.copy(path, named)
    codex, problems = CodexSource(), list[Problem]()
    units = list(codex.units(tmp_path, problems))
    assert problems == []
    assert [unit.key for unit in units] == [A, f"{A}#{named}", f"{A}#{archived}"]
    drafts = [draft for unit in units for draft in codex.read(tmp_path, unit).sessions]
    assert [draft.source_id for draft in drafts] == [A] * 3
    assert [draft.path for draft in drafts] == [str(path), str(named), str(archived)]
    at = codex.units_at(tmp_path, [str(named)])
    assert at is not None and [unit.key for unit in at] == [unit.key for unit in units]


def seen(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }  # fmt: skip


OPENED: list[str] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], (str, os.PathLike)):
        OPENED.append(os.fspath(arguments[0]))


sys.addaudithook(_note)
SECRETS = ("auth.json", ".credentials.json", "config.toml")


@pytest.mark.parametrize("wal", ["none", "writer", "left"])
def test_nothing_is_touched_and_no_secret_opened(tmp_path: Path, wal: str) -> None:
    home = tmp_path / "home"
    shutil.copytree(HOME, home)
    for name in SECRETS:
        (home / name).write_text("secret")
    state = home / "state_5.sqlite"
    writer = sqlite3.connect(state)
    if wal != "none":
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("UPDATE threads SET name = 'from the wal' WHERE name IS NULL")
        writer.commit()
    if wal == "left":
        for ending in ("", "-wal"):
            shutil.copyfile(f"{state}{ending}", tmp_path / f"left{ending}")
        writer.close()
        for ending in ("", "-wal"):
            shutil.move(tmp_path / f"left{ending}", f"{state}{ending}")
    before = seen(home)
    OPENED.clear()
    library = open_database(tmp_path / "library.db", create=True)
    for _ in range(2):
        summary = Sync(library).run([Target(CodexSource(), home)])
    opened = {os.path.basename(path) for path in OPENED}
    after = seen(home)
    if wal == "writer":
        before.pop("state_5.sqlite-shm")
        after.pop("state_5.sqlite-shm")
    assert after == before
    assert (summary.units, summary.read) == (9, 0)
    titles = {row[0] for row in library.connection.execute(
        "SELECT json_extract(metadata_json, '$.title') FROM chat_sessions")}  # fmt: skip
    assert ("from the wal" in titles) == (wal != "none") and "Make new.py" in titles
    assert "session_index.jsonl" in opened and not opened & set(SECRETS)
    library.close()
    writer.close()


def test_sync_links_forks_subagents_and_archive(tmp_path: Path) -> None:
    library = open_database(tmp_path / "library.db", create=True)
    Sync(library).run([Target(CodexSource(), HOME)])

    def rows(sql: str) -> list[tuple[object, ...]]:
        return library.connection.execute(sql).fetchall()

    kinds = rows("SELECT json_extract(metadata_json, '$.lineage.kind'), count(*), "
                 "count(parent_id), count(parent_message_id) FROM chat_sessions "
                 "WHERE parent_id IS NOT NULL GROUP BY 1 ORDER BY 1")  # fmt: skip
    assert kinds == [("fork", 1, 1, 1), ("subagent", 2, 2, 2)]
    assert rows("SELECT count(*) FROM chat_sessions WHERE archived_at IS NOT NULL") == [(1,)]
    copies = rows("SELECT count(*) FROM chat_messages "
                  "WHERE json_extract(metadata_json, '$.inherited_from') IS NOT NULL")  # fmt: skip
    assert copies == [(4,)]
    assert rows("SELECT sum(total_tokens) FROM chat_sessions") == [(38700 + 735 + 1230,)]
    library.close()


def test_inherited_parts_show_the_lines_of_their_originals(tmp_path: Path) -> None:
    library = open_database(tmp_path / "library.db", create=True)
    Sync(library).run([Target(CodexSource(), HOME)])
    copied, text = library.connection.execute(
        "SELECT p.id, p.data_json FROM chat_parts p JOIN chat_messages m ON m.id = p.message_id "
        "WHERE json_extract(m.metadata_json, '$.inherited_from') IS NOT NULL "
        "AND p.type = 'reasoning'"
    ).fetchone()
    (record,) = records_of_part(library, copied)
    line = json.loads(record)
    assert line["payload"]["summary"][0]["text"] == json.loads(text)["text"]
    library.close()
