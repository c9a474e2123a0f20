from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.demo import make_demo
from store.engine.database import open_database

NOW = 1_790_000_000_000


def made_at(path: Path, now: int) -> Path:
    return make_demo(path, lambda: now)


def dump(path: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as connection:
        tables = ("chat_sessions", "chat_messages", "chat_parts", "system_prompts")
        return [row for table in tables for row in connection.execute(f"SELECT * FROM {table}")]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = make_demo(tmp_path_factory.mktemp("demo") / "demo.db", lambda: NOW)
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


def values(demo: sqlite3.Connection, sql: str) -> list[object]:
    return [row[0] for row in demo.execute(sql)]


def test_is_deterministic_and_replaces_what_was_there(tmp_path: Path) -> None:
    first = make_demo(tmp_path / "a.db", lambda: NOW)
    second = make_demo(tmp_path / "b.db", lambda: NOW)
    assert dump(first) == dump(second)
    make_demo(first, lambda: NOW)
    assert dump(first) == dump(second)


def test_is_a_file_of_our_own_form(tmp_path: Path) -> None:
    database = open_database(make_demo(tmp_path / "a.db", lambda: NOW), write=False)
    assert database.form.name == "own"
    database.close()


def test_the_long_session_has_10000_parts(demo: sqlite3.Connection) -> None:
    counts = values(demo, "SELECT count(*) FROM chat_parts GROUP BY session_id ORDER BY 1 DESC")
    assert counts[0] == 10_000


def test_holds_every_kind_of_session(demo: sqlite3.Connection) -> None:
    states = values(demo, "SELECT json_extract(metadata_json, '$.activity.state') FROM "
                    "chat_sessions")
    assert {"idle", "running", "waiting-approval", "waiting-input", "error", "interrupted"} == set(
        states
    )
    lineages = values(demo, "SELECT DISTINCT json_extract(metadata_json, '$.lineage.kind') FROM "
                      "chat_sessions WHERE parent_id IS NOT NULL")
    assert set(lineages) == {"fork", "subagent"}
    assert len(set(values(demo, "SELECT agent FROM chat_sessions"))) == 8
    assert len(set(values(demo, "SELECT workspace_root FROM chat_sessions"))) == 4
    assert values(demo, "SELECT count(*) FROM chat_sessions WHERE archived_at IS NOT NULL") == [1]


def test_a_rewind_is_one_batch(demo: sqlite3.Connection) -> None:
    batches = values(demo, "SELECT json_extract(metadata_json, '$.hidden_at') FROM chat_messages "
                     "WHERE json_extract(metadata_json, '$.hidden_at') IS NOT NULL")
    assert len(batches) == 4 and len(set(batches)) == 1


def test_a_subagent_names_the_call_that_started_it(demo: sqlite3.Connection) -> None:
    (call,) = values(demo, "SELECT json_extract(metadata_json, '$.lineage.tool_call_id') FROM "
                     "chat_sessions WHERE json_extract(metadata_json, '$.lineage.kind') = "
                     "'subagent'")
    found = demo.execute("SELECT type FROM chat_parts WHERE tool_call_id = ?", (call,)).fetchall()
    assert found == [("tool-Agent",)]


def test_a_fork_copies_the_visible_prefix_with_its_times(demo: sqlite3.Connection) -> None:
    copies = demo.execute(
        "SELECT c.created_at, o.created_at, o.session_id, s.parent_id FROM chat_messages c "
        "JOIN chat_messages o ON o.id = json_extract(c.metadata_json, '$.inherited_from') "
        "JOIN chat_sessions s ON s.id = c.session_id"
    ).fetchall()
    assert len(copies) == 3
    assert all(row[0] == row[1] and row[2] == row[3] for row in copies)


def test_a_compaction_names_its_tail_within_the_session(demo: sqlite3.Connection) -> None:
    tails = demo.execute(
        "SELECT json_extract(p.data_json, '$.data.tail_start_id'), p.session_id FROM chat_parts p "
        "WHERE type = 'data-compaction' AND json_extract(data_json, '$.data.tail_start_id') "
        "IS NOT NULL"
    ).fetchall()
    for message_id, session_id in tails:
        sql = "SELECT session_id FROM chat_messages WHERE id = ?"
        assert demo.execute(sql, (message_id,)).fetchall() == [(session_id,)]
    assert len(tails) == 1


def test_ids_are_ids_of_the_contract_and_unique(demo: sqlite3.Connection) -> None:
    for table, prefix in (("sessions", "ses_"), ("messages", "msg_"), ("parts", "prt_")):
        ids = [str(value) for value in values(demo, f"SELECT id FROM chat_{table}")]
        assert all(len(value) == 30 and value.startswith(prefix) for value in ids)
        assert len(ids) == len(set(ids)) >= 17


def test_rollups_are_the_sums_over_the_assistant_messages(demo: sqlite3.Connection) -> None:
    keys = ("input", "output", "reasoning", "cache_read", "cache_write")
    assert demo.execute("SELECT sum(total_tokens) > 100000 FROM chat_sessions").fetchone() == (1,)
    for session_id, total, *sums in demo.execute(
        "SELECT id, total_tokens, prompt_tokens, completion_tokens, reasoning_tokens, cache_read, "
        "cache_write FROM chat_sessions"
    ).fetchall():
        usages = [
            json.loads(row[0])["usage"]
            for row in demo.execute("SELECT metadata_json FROM chat_messages WHERE session_id = ? "
                                    "AND role = 'assistant'", (session_id,))
        ]
        assert sums == [sum(usage[key] for usage in usages) for key in keys]
        assert total == sum(sums)


def test_nothing_lies_in_the_future(demo: sqlite3.Connection) -> None:
    for table in ("chat_sessions", "chat_messages", "chat_parts"):
        (latest,) = values(demo, f"SELECT max(updated_at) FROM {table}")
        assert isinstance(latest, int) and latest <= NOW + 100


def test_parts_of_claude_code_have_their_original_records(tmp_path: Path) -> None:
    from store.queries.originals import records_of_part

    database = open_database(make_demo(tmp_path / "a.db", lambda: NOW), write=False)
    (part_id,) = database.connection.execute(
        "SELECT id FROM chat_parts WHERE type = 'tool-Edit' ORDER BY created_at LIMIT 1"
    ).fetchone()
    call, result = (json.loads(text) for text in records_of_part(database, part_id))
    assert call["message"]["content"][0]["name"] == "Edit"
    (block,) = result["message"]["content"]
    assert block["tool_use_id"] == call["message"]["content"][0]["id"]
    database.close()


def test_ages_are_the_same_whenever_it_is_made(tmp_path: Path) -> None:
    ages = []
    for now in (NOW, NOW + 123_456_789):
        with sqlite3.connect(made_at(tmp_path / "a.db", now)) as connection:
            ages.append(connection.execute(
                "SELECT ? - created_at, ? - updated_at, ? - archived_at FROM chat_sessions",
                (now, now, now)).fetchall())
    assert ages[0] == ages[1]
