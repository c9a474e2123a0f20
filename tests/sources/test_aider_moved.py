"""A repository that is moved keeps its sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.sources.aider import AiderSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.store.sync_fakes import TABLES, dump

HISTORY = ".aider.chat.history.md"
FIRST = "# aider chat started at 2026-11-27 10:00:00\n\n#### one\n\nAnswer one.\n\n"
SECOND = (
    "# aider chat started at 2026-11-27 11:00:00\n\n> Restored previous conversation history.  \n\n"
    "#### two\n\nAnswer two.\n\n"
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "store.db", create=True)
    yield opened
    opened.close()


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / HISTORY
    path.write_text(text)
    return path


def sync(database: Database, *paths: Path) -> None:
    Sync(database, Settings(helpers=0)).run([Target(AiderSource(), path) for path in paths])


def sessions(database: Database) -> dict[str, dict[str, Any]]:
    rows = database.connection.execute(
        "SELECT s.id, s.metadata_json, s.workspace_root, s.parent_id FROM chat_sessions s "
        "ORDER BY s.created_at"
    )
    return {
        row[0]: {"metadata": json.loads(row[1]), "workspace": row[2], "parent": row[3]}
        for row in rows
    }


def test_a_moved_repository_keeps_its_sessions(database: Database, tmp_path: Path) -> None:
    old, new = tmp_path / "old" / "repo", tmp_path / "new" / "place"
    path = write(old, FIRST + SECOND)
    sync(database, path)
    before = sessions(database)
    first, second = before
    assert before[second]["parent"] == first
    database.connection.execute(
        "UPDATE chat_sessions SET metadata_json = json_set(metadata_json, '$.user.star', 1) "
        "WHERE id = ?", (second,),
    )  # fmt: skip
    new.parent.mkdir()
    old.rename(new)
    third = "# aider chat started at 2026-11-28 09:00:00\n\n#### three\n\nAnswer three.\n"
    moved = write(new, FIRST + SECOND + "#### more\n\nAnswer more.\n\n" + third)
    for _ in range(2):
        sync(database, moved)
        after = sessions(database)
        assert list(after)[:2] == [first, second] and len(after) == 3
        assert [one["workspace"] for one in after.values()] == [str(new)] * 3
        assert {one["metadata"]["source"]["path"] for one in after.values()} == {str(moved)}
        assert after[second]["metadata"]["user"] == {"star": 1}
        assert after[second]["parent"] == first
        assert database.connection.execute(
            "SELECT count(*) FROM chat_parts WHERE session_id = ? AND "
            "instr(data_json, 'Answer more.')", (second,),
        ).fetchone() == (1,)  # fmt: skip
        assert not any("gone_messages" in one["metadata"]["source"] for one in after.values())
    rows = dump(database, TABLES)
    new.rename(old)
    sync(database, path)
    back = sessions(database)
    assert list(back) == list(after)
    assert {one["metadata"]["source"]["path"] for one in back.values()} == {str(path)}
    old.rename(new)
    sync(database, moved)
    assert dump(database, TABLES) == rows


def test_two_repositories_that_began_at_once_are_two(database: Database, tmp_path: Path) -> None:
    one = write(tmp_path / "one", FIRST)
    two = write(tmp_path / "two", FIRST.replace("Answer one", "Another answer"))
    sync(database, one)
    sync(database, two)
    assert len(sessions(database)) == 2
    # The same words, and both are there: a copy.
    sync(database, write(tmp_path / "three", FIRST))
    assert len(sessions(database)) == 3
    # One of them goes, and another says something else.
    one.unlink()
    sync(database, write(tmp_path / "four", FIRST.replace("#### one", "#### other")))
    assert len(sessions(database)) == 4
