"""Files that claim to be one session, and parted: what they say decides what is a copy.

Which file is the session, and what ids the copies have, is the same in any order of arrival
and at any paths, so that stars and tags stay where they are.
"""

from __future__ import annotations

import os
import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources.claude_rows import File
from tests.sources.samples import FIRST, path_of
from tests.store.sync_fakes import dump

SESSION = "c" * 8
NAMES = ("", " (1)", " - Copy", " (mira's conflicted copy 2026-11-20)")


def made(chance: random.Random) -> list[File]:
    """Files that begin alike, and take any of three ways at each turn."""
    files = []
    for _ in range(chance.randrange(4, 9)):
        file, way = File(session=SESSION), ""
        file.user("first", uuid="first")
        file.assistant("yes", id="msg_first", uuid="yes")
        start = file.at
        for turn in range(chance.randrange(5)):
            way += str(chance.randrange(3))
            file.at = start + 10_000 * (turn + 1) + 1000 * int(way[-1])
            file.user(f"way {way}", uuid=f"q{way}")
            file.assistant(f"answer {way}", id=f"msg_{way}", uuid=f"a{way}")
        files.append(file)
    return files


def placed(files: list[File], home: Path, chance: random.Random) -> None:
    """Write the files, each into a folder of its own, as if changed in any order."""
    for number, file in enumerate(files):
        folder = home / "projects" / f"-{chance.randrange(1000)}-{number}"
        file.write(folder, SESSION + chance.choice(NAMES))
        os.utime(next(folder.iterdir()), (1_000_000_000 + chance.randrange(1000),) * 2)


def synced(path: Path, home: Path) -> Database:
    database = open_database(path, create=True)
    database.connection.execute("PRAGMA synchronous = OFF")
    Sync(database, Settings(helpers=0)).run([Target(source("claude-code"), home)])
    return database


def said(database: Database) -> dict[str, Any]:
    """Each session's messages, with what marks them, and its totals."""
    rows: dict[str, Any] = dump(database, ("chat_messages", "chat_parts"))
    rows["chat_sessions"] = database.connection.execute(
        "SELECT id, total_tokens, json_extract(metadata_json, '$.title'), parent_id,"
        " parent_message_id FROM chat_sessions ORDER BY id"
    ).fetchall()
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_copies_are_the_same_in_another_home_and_in_any_order(seed: int, tmp_path: Path) -> None:
    chance = random.Random(f"copies {seed}")
    files = made(chance)
    placed(files, tmp_path / "home", chance)
    with closing(synced(tmp_path / "one.db", tmp_path / "home")) as database:
        before = said(database)
    shutil.rmtree(tmp_path / "home")
    placed(files, tmp_path / "moved", chance)
    with closing(synced(tmp_path / "one.db", tmp_path / "moved")) as database:
        assert said(database) == before
    chance.shuffle(files)
    for number, file in enumerate(files):
        file.write(tmp_path / "other" / "projects" / f"-{number}", SESSION + chance.choice(NAMES))
        synced(tmp_path / "two.db", tmp_path / "other").close()
    with closing(synced(tmp_path / "two.db", tmp_path / "other")) as database:
        assert said(database) == before


@pytest.mark.parametrize(("kind", "names"), [
    ("pi", "*.jsonl"), ("y-agent", "*.display.jsonl"), ("claude-code", "*.jsonl"),
])  # fmt: skip
def test_a_copy_that_is_appended_to_its_file_counts_nothing(
    kind: str, names: str, tmp_path: Path
) -> None:
    root = path_of(FIRST[kind].copied(tmp_path))
    reader = FIRST[kind].target().source

    def counted() -> dict[str, Any]:
        drafts = [d for unit in reader.units(root, []) for d in reader.read(root, unit).sessions]
        return {draft.source_id: [(message.source_id, message.metadata.get("usage"))
                                  for message in draft.messages if message.role == "assistant"]
                for draft in drafts}  # fmt: skip

    before = counted()
    path = max(root.rglob(names), key=lambda path: path.stat().st_size)
    path.write_bytes(path.read_bytes() * 2)
    assert counted() == before
