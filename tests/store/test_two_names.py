"""Two names for one folder or file are one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.problems import problems
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources import claude_rows, codex_lines
from tests.sources.claude_rows import SESSION, File
from tests.sources.samples import SAMPLES, Sample, path_of

pytestmark = pytest.mark.long

MOST_NAMES = 12
"""Folders and files of one sample that get a second name, each at a time."""


def state(database: Database) -> tuple[list[Any], list[Any]]:
    rows = database.connection.execute(
        "SELECT s.id, json_extract(s.metadata_json, '$.source.path'), m.id, m.metadata_json"
        " FROM chat_sessions s LEFT JOIN chat_messages m ON m.session_id = s.id ORDER BY 1, 3"
    ).fetchall()
    return rows, [(one.path, one.reason) for one in problems(database)]


def synced(folder: Path, *targets: Target) -> tuple[list[Any], list[Any]]:
    folder.mkdir()
    database = open_database(folder / "library.db", create=True)
    Sync(database, Settings(helpers=0)).run(targets)
    found = state(database)
    database.close()
    shutil.rmtree(folder)
    return found


def link_beside(path: Path) -> Path:
    beside = path.with_name(f"{path.name}-link")
    beside.symlink_to(path.name, target_is_directory=True)
    return beside


def hard_link(path: Path) -> Path:
    beside = path.with_name(f"{path.stem} (1){path.suffix}")
    os.link(path, beside)
    return beside


def folders(root: Path) -> Iterator[Path]:
    return (path for path in sorted(root.rglob("*")) if path.is_dir())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_link_to_a_folder_beside_it(sample: Sample, tmp_path: Path) -> None:
    target = sample.copied(tmp_path)
    root = path_of(target)
    before = synced(tmp_path / "library", target)
    for path in [*folders(root)][:MOST_NAMES]:
        second = link_beside(path)
        assert synced(tmp_path / "library", target) == before, path
        second.unlink()


@pytest.mark.parametrize("name", ["claude-code/home/.claude/projects", "codex/home/sessions"])
@pytest.mark.parametrize("second_name", [hard_link, link_beside])
def test_a_second_name_of_a_file(
    name: str, second_name: Callable[[Path], Path], tmp_path: Path
) -> None:
    (sample,) = [one for one in SAMPLES if name.startswith(one.root)]
    target = sample.copied(tmp_path)
    before = synced(tmp_path / "library", target)
    for path in sorted((tmp_path / name).rglob("*.jsonl"))[:MOST_NAMES]:
        second = second_name(path)
        assert synced(tmp_path / "library", target) == before, path
        second.unlink()


def test_the_name_through_a_link_is_the_second_one(tmp_path: Path) -> None:
    projects = tmp_path / "claude" / "projects"
    File().write(projects / "-home-dev-moved")
    (projects / "-a-link").symlink_to("-home-dev-moved")
    rows, told = synced(tmp_path / "library", Target(source("claude-code"), tmp_path / "claude"))
    assert told == []
    assert {Path(row[1]).parent.name for row in rows} <= {"-home-dev-moved"}


def test_a_root_by_two_names(tmp_path: Path) -> None:
    file = File()
    file.user("hello")
    file.write(tmp_path / "claude" / "projects" / "-w")
    link = tmp_path / "link"
    link.symlink_to("claude")
    claude = source("claude-code")
    database = open_database(tmp_path / "library.db", create=True)
    by_name, by_link = Target(claude, tmp_path / "claude"), Target(claude, link)
    first = Sync(database, Settings(helpers=0)).run([by_name, by_link])
    assert (first.units, first.read, first.new) == (1, 1, 1)
    before = state(database)
    again = Sync(database, Settings(helpers=0)).run([by_link])
    assert (again.units, again.read) == (1, 0)
    assert state(database) == before
    assert before[0][0][1] == str(tmp_path / "claude" / "projects" / "-w" / f"{SESSION}.jsonl")
    database.close()


def test_a_copy_that_went_on_stays_one_session_when_its_folder_moves(tmp_path: Path) -> None:
    home = tmp_path / "claude"
    file, other = File(), File()
    for each, words in ((file, "one way"), (other, "another way")):
        each.user("hello", uuid="first")
        each.user(words)
    file.write(home / "projects" / "-w")
    other.write(home / "projects" / "-w", f"{SESSION} (conflicted copy 2026-11-28)")
    claude = source("claude-code")
    database = open_database(tmp_path / "library.db", create=True)
    Sync(database, Settings(helpers=0)).run([Target(claude, home)])
    before = state(database)[0]
    assert len({row[0] for row in before}) == 2
    for place in ("moved", "moved-again"):
        home = home.rename(tmp_path / place)
        moved = Sync(database, Settings(helpers=0)).run([Target(claude, home)])
        after = state(database)[0]
        assert moved.new == 0
        assert [(row[0], row[2]) for row in after] == [(row[0], row[2]) for row in before]
        assert all(Path(row[1]).is_relative_to(home) for row in after)
        again = Sync(database, Settings(helpers=0)).run([Target(claude, home)])
        assert (again.new, again.updated) == (0, 0)
        assert state(database)[0] == after
    database.close()


SPELLINGS = [
    " (1)", " - Copy", " - Copy (2)", " copy", " (copy)", " (conflicted copy 2026-01-01)",
    " (Mira's conflicted copy 2026-01-01)", ".sync-conflict-20260101-120000-ABCDEFG",
    "_conflict-20260101-120000", "-DESKTOP-AB12", ".bak", "~",
]  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("goes_on", [False, True])
def test_copies_by_all_names_that_programs_give(
    spelling: str, goes_on: bool, tmp_path: Path
) -> None:
    """One with nothing of its own is the same session; another is a copy of it."""
    for kind in ("claude-code", "codex"):
        root = tmp_path / kind
        for name, own in ((spelling, "other" if goes_on else None), ("", "own")):
            if kind == "codex":
                lines = codex_lines.Lines(codex_lines.thread_id(1))
                lines.turn("one", "re one", "r1")
                if own is not None:
                    lines.turn(own, f"re {own}", own)
                path = lines.write(root)
            else:
                file = claude_rows.File()
                file.user("one")
                file.assistant("re one", id="msg_1")
                if own is not None:
                    file.user(own)
                    file.assistant(f"re {own}", id=f"msg_{own}")
                path = file.write(root / "projects" / "-w")
            path.rename(path.with_name(f"{path.stem}{name}.jsonl"))
        db = open_database(tmp_path / f"{kind}.db", create=True)
        Sync(db, Settings(helpers=0)).run([Target(source(kind), root)])
        found = db.connection.execute(
            "SELECT json_extract(metadata_json, '$.source.id'),"
            " json_extract(metadata_json, '$.source.copy_of') IS NOT NULL FROM chat_sessions"
            " ORDER BY 2"
        ).fetchall()
        name = codex_lines.thread_id(1) if kind == "codex" else claude_rows.SESSION
        assert found == [(name, 0), (name, 1)][: 1 + goes_on]
        (path,) = db.connection.execute(
            "SELECT json_extract(metadata_json, '$.source.path') FROM chat_sessions"
            " WHERE json_extract(metadata_json, '$.source.copy_of') IS NULL"
        ).fetchone()
        assert Path(path).stem.endswith(name)
        db.close()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_copy_of_any_file_adds_nothing(sample: Sample, tmp_path: Path) -> None:
    root = path_of(sample.copied(tmp_path))
    whole = root if root.is_dir() else root.parent
    files = [path for path in sorted(whole.rglob("*.json*")) if path.is_file()]
    counts = "SELECT count(*), (SELECT count(*) FROM chat_messages) FROM chat_sessions"

    def counted(name: str) -> Any:
        db = open_database(tmp_path / name, create=True)
        Sync(db, Settings(helpers=0)).run([Target(source(sample.kind), root)])
        found = db.connection.execute(counts).fetchone()
        db.close()
        return found

    before = counted("before.db")
    for path in files[:: 1 + len(files) // 12]:
        shutil.copy2(path, path.with_name(f"{path.stem} (1){path.suffix}"))
    assert counted("after.db") == before


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_sessions_stay_the_same_when_all_moves(sample: Sample, tmp_path: Path) -> None:
    """A repository, a folder or a whole home: the sessions are known again, with new paths."""
    root = path_of(sample.copied(tmp_path / "before"))
    db = open_database(tmp_path / "store.db", create=True)
    seen = []
    for place in (root, tmp_path / "after" / root.relative_to(tmp_path / "before")):
        if place != root:
            (tmp_path / "before").rename(tmp_path / "after")
        Sync(db, Settings(helpers=0)).run([Target(source(sample.kind), place)])
        seen.append(db.connection.execute("SELECT id FROM chat_sessions ORDER BY id").fetchall())
    assert seen[0] == seen[1]
    (left,) = db.connection.execute(
        "SELECT count(*) FROM chat_sessions WHERE json_extract(metadata_json, '$.source.path')"
        " LIKE ?", [f"{tmp_path / 'before'}%"],
    ).fetchone()
    assert left == 0
    (gone,) = db.connection.execute(
        "SELECT count(*) FROM chat_messages WHERE json_extract(metadata_json, '$.source.gone')"
    ).fetchone()
    assert gone == 0
    db.close()
