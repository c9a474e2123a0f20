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
from store.sources.base.growing import Changed, GrowingFile
from store.sources.registry import source
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources.claude_rows import File
from tests.sources.samples import FIRST, SAMPLES, Sample, path_of
from tests.store.sync_fakes import dump

SESSION = "c" * 8
NAMES = ("", " (1)", " - Copy", " (mira's conflicted copy 2026-11-20)")


def made(chance: random.Random) -> list[tuple[File, str]]:
    """Files that begin alike, and take any of three ways at each turn; each with its name."""
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
        files.append((file, SESSION + chance.choice(NAMES)))
    return files


def placed(files: list[tuple[File, str]], home: Path, chance: random.Random) -> None:
    """Write the files, each into a folder of its own, as if changed in any order."""
    for number, (file, name) in enumerate(files):
        folder = home / "projects" / f"-{chance.randrange(1000)}-{number}"
        file.write(folder, name)
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
    for number, (file, name) in enumerate(files):
        file.write(tmp_path / "other" / "projects" / f"-{number}", name)
        synced(tmp_path / "two.db", tmp_path / "other").close()
    with closing(synced(tmp_path / "two.db", tmp_path / "other")) as database:
        assert said(database) == before


DOUBLED = [
    sample for sample in SAMPLES
    if sample.kind in ("pi", "y-agent", "claude-code", "codex", "kimi", "copilot", "gptme",
                       "gemini", "kiro", "droid", "vibe", "goose")
]  # fmt: skip


@pytest.mark.parametrize("sample", DOUBLED, ids=lambda sample: sample.name)
def test_a_file_that_holds_its_content_twice_says_it_once(sample: Sample, tmp_path: Path) -> None:
    root = path_of(sample.copied(tmp_path))
    reader = sample.target().source
    files = [root] if root.is_file() else root.rglob("*.jsonl")

    def shown() -> dict[str, Any]:
        drafts = [d for unit in reader.units(root, []) for d in reader.read(root, unit).sessions]
        return {draft.source_id: [(one.source_id, one.metadata.get("usage"), len(one.parts),
                                   one.metadata.get("hidden_at")) for one in draft.messages]
                for draft in drafts}  # fmt: skip

    before = shown()
    largest = sorted(files, key=lambda path: path.stat().st_size)[-2:]
    for path in largest:
        body = path.read_bytes()
        path.write_bytes(body * 2)
        assert shown() == before
        path.write_bytes(body * 3)
        assert shown() == before
        path.write_bytes(body)


def test_a_header_of_pi_that_is_repeated_hides_nothing(tmp_path: Path) -> None:
    root = path_of(FIRST["pi"].copied(tmp_path))
    reader = FIRST["pi"].target().source

    def visible() -> list[str]:
        return [each.source_id for unit in reader.units(root, [])
                for draft in reader.read(root, unit).sessions for each in draft.messages
                if "hidden_at" not in each.metadata]  # fmt: skip

    before = visible()
    for path in root.rglob("*.jsonl"):
        body = path.read_bytes()
        path.write_bytes(body + body.splitlines(keepends=True)[0])
    assert visible() == before


def _said(*words: str) -> list[bytes]:
    return [b'{"time": 1, "text": "%s"}\n' % word.encode() for word in words]


def _taken(path: Path, *pieces: str) -> list[str]:
    """Return the words of a file that grows by pieces of one letter a record."""
    path.write_bytes(b"")
    file = GrowingFile(str(path))
    for piece in pieces:
        with path.open("ab") as growing:
            growing.write(b"".join(_said(*piece)))
        try:
            file.read([])
        except Changed:
            file = GrowingFile(str(path))
            file.read([])
    return [record.data["text"] for record in file.lines]


@pytest.mark.parametrize(("written", "taken"), [
    ("abcabc", "abc"), ("abcabcabc", "abc"), ("abcabcd", "abcd"), ("abcab", "abc"),
    ("abca", "abca"), ("abcabd", "abcabd"), ("aab", "aab"), ("aa", "aa"), ("abba", "abba"),
    ("abcabcdabcabcd", "abcd"), ("abcdcd", "abcdcd"), ("abcaabc", "abca"),
])  # fmt: skip
def test_only_a_doubled_beginning_is_a_copy(written: str, taken: str, tmp_path: Path) -> None:
    """However the file grew to what it is."""
    path = tmp_path / "one.jsonl"
    for cut in range(len(written) + 1):
        assert "".join(_taken(path, written[:cut], written[cut:])) == taken
    assert "".join(_taken(path, *written)) == taken


def test_words_without_id_and_time_may_be_said_twice(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"text": "go"}\n{"text": "ok"}\n' * 2)
    file = GrowingFile(str(path))
    file.read([])
    assert len(file.lines) == 4
