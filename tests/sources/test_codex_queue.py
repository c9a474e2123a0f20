"""Prompts that wait for their turn, in the queue's database."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.sources.codex import CodexSource
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources.codex_lines import START, Lines, read, thread_id

A, B = thread_id(1), thread_id(2)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for thread in (A, B):
        lines = Lines(thread)
        lines.turn("one", "re one", f"r-{thread}")
        lines.write(tmp_path)
    connection = sqlite3.connect(tmp_path / "queue_1.sqlite")
    connection.execute(
        "CREATE TABLE queued_items (id TEXT PRIMARY KEY NOT NULL, thread_id TEXT NOT NULL,"
        " payload_json TEXT NOT NULL, queue_order INTEGER NOT NULL,"
        " created_at_ms INTEGER NOT NULL, updated_at_ms INTEGER NOT NULL)"
    )
    connection.commit()
    connection.close()
    return tmp_path


def put(home: Path, name: str, order: int, *content: dict[str, Any]) -> None:
    payload = json.dumps({"UserInput": {"content": content, "client_id": "c"}})
    connection = sqlite3.connect(home / "queue_1.sqlite")
    row = (name, A, payload, order, START + 60_000, START + 60_000)
    connection.execute("INSERT INTO queued_items VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()


def test_prompts_that_wait_are_queued_messages_in_their_order(home: Path) -> None:
    put(home, "q2", 1, {"type": "text", "text": "then this"})
    picture = {"type": "image", "url": "data:image/gif;base64,AA=="}
    put(home, "q1", 0, {"type": "text", "text": "first this"}, picture)
    drafts, problems = read(home)
    assert problems == []
    *_, first, second = drafts[A].messages
    assert [m.source_id for m in (first, second)] == ["q1", "q2"]
    assert [m.metadata["queued_at"] for m in (first, second)] == [START + 60_000] * 2
    assert first.parts[0].data["text"] == "first this"
    assert first.parts[1].data == {"type": "file", "mediaType": "image/gif", "url": picture["url"]}
    (record,) = second.parts[0].records
    assert json.loads(drafts[A].records[record])["id"] == "q2"
    assert not any("queued_at" in m.metadata for m in drafts[B].messages)


def test_half_of_a_surrogate_pair_costs_only_itself(home: Path) -> None:
    put(home, "q1", 0, {"type": "text", "text": "cut \ud83d here"})
    drafts, problems = read(home)
    assert problems == []
    assert drafts[A].messages[-1].parts[0].data["text"].startswith("cut ")


def test_a_prompt_that_is_put_there_makes_its_thread_move(home: Path) -> None:
    source = CodexSource()
    before = {unit.key: unit for unit in source.units(home, [])}
    queue = home / "queue_1.sqlite"
    assert queue in list(source.watch_paths(home))
    put(home, "q1", 0, {"type": "text", "text": "wait"})
    found = source.units_at(home, [str(queue)])
    assert found is not None
    assert [unit.key for unit in found if unit != before[unit.key]] == [A]


def test_a_prompt_that_was_sent_waits_no_more(home: Path) -> None:
    put(home, "q1", 0, {"type": "text", "text": "wait"})
    source = CodexSource()
    assert len(read(home, source)[0][A].messages) == 3
    connection = sqlite3.connect(home / "queue_1.sqlite")
    connection.execute("DELETE FROM queued_items")
    connection.commit()
    connection.close()
    assert len(read(home, source)[0][A].messages) == 2


@pytest.mark.parametrize("payload", ["no JSON", "[]", '{"UserInput": {"content": 5}}', "{}"])
def test_odd_payloads_cost_nothing_else(home: Path, payload: str) -> None:
    put(home, "q1", 0)
    connection = sqlite3.connect(home / "queue_1.sqlite")
    connection.execute("UPDATE queued_items SET payload_json = ?", (payload,))
    connection.commit()
    connection.close()
    drafts, problems = read(home)
    assert problems == []
    assert drafts[A].messages[-1].source_id == "q1"


def test_a_damaged_queue_is_told_of(home: Path) -> None:
    (home / "queue_1.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    drafts, problems = read(home)
    assert len(drafts[A].messages) == 2
    assert [Path(problem.path).name for problem in problems] == ["queue_1.sqlite"]


@pytest.mark.parametrize("keep_originals", [True, False])
def test_a_prompt_that_was_synced_while_it_waited_stands_once(
    home: Path, keep_originals: bool
) -> None:
    """Its row goes when it is sent; one that was taken back is kept as what was typed."""
    put(home, "q1", 0, {"type": "text", "text": "wait"})
    put(home, "q2", 1, {"type": "text", "text": "never mind"})
    database = open_database(home / "store.db", create=True)
    options = Settings(helpers=0, keep_originals=keep_originals)

    def users() -> list[tuple[str, bool, bool]]:
        Sync(database, options).run([Target(CodexSource(), home)])
        return [
            (text, bool(queued), bool(gone))
            for text, queued, gone in database.connection.execute(
                "SELECT json_extract(p.data_json, '$.text'),"
                " json_extract(m.metadata_json, '$.queued_at'),"
                " json_extract(m.metadata_json, '$.source.gone')"
                " FROM chat_messages m JOIN chat_parts p ON p.message_id = m.id"
                " JOIN chat_sessions s ON s.id = m.session_id WHERE m.role = 'user'"
                " AND json_extract(s.metadata_json, '$.source.id') = ?"
                " ORDER BY m.created_at, m.id", (A,)
            )
        ]  # fmt: skip

    assert users() == [("one", False, False), ("wait", True, False), ("never mind", True, False)]
    connection = sqlite3.connect(home / "queue_1.sqlite")
    connection.execute("DELETE FROM queued_items")
    connection.commit()
    connection.close()
    lines = Lines(A)
    lines.turn("one", "re one", f"r-{A}")
    lines.at += 120_000
    lines.turn("wait", "re wait", "r2")
    lines.write(home)
    for _ in range(2):
        assert sorted(users()) == [
            ("never mind", True, True), ("one", False, False), ("wait", False, False),
        ]  # fmt: skip
    database.close()
