"""Clauses of the contract that no other test shows; docs/contract.md names the test of each."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from backscroll import Session, Store
from store.engine.database import open_database
from store.engine.opening import open_target
from store.recorder.policy import SavePolicy
from tests.store.making import add_message, add_part, add_session, contract, own

DELTA = {"type": "text-delta", "id": "t", "delta": "word "}
TEXT = [{"type": "text-start", "id": "t"}, DELTA]


def rows(location: str | Path, sql: str) -> list[Any]:
    """Read as another client does."""
    with contextlib.closing(open_target(location)) as db:
        return db.connection.execute(sql).fetchall()


def written(location: str, sql: str) -> None:
    """Write as another client does."""
    with contextlib.closing(open_target(location, write=True)) as db:
        db.connection.execute(sql)


async def started(store: Store, **given: Any) -> Session:
    return await store.create_session("build", "acme/parrot-1", **given)


async def test_another_agent_of_a_turn_is_the_messages_own(location: str) -> None:
    async with Store.open(location) as store:
        session = await started(store)
        async with store.recorder(session) as recorder:
            noted = {"agent": "plan", "snapshot_id": "snap-1"}
            await recorder.user_message("Plan it", metadata=noted)
            await recorder.feed({"type": "start", "messageMetadata": {"agent": "plan"}})
            for chunk in (*TEXT, {"type": "text-end", "id": "t"}, {"type": "finish"}):
                await recorder.feed(chunk)
        assert rows(location, "SELECT agent FROM chat_sessions") == [("build",)]
        messages = [json.loads(row[0]) for row in rows(
            location, "SELECT metadata_json FROM chat_messages ORDER BY created_at, id")]
        assert [one["agent"] for one in messages] == ["plan", "plan"]
        assert messages[0]["snapshot_id"] == "snap-1"


async def test_a_session_may_have_no_folder(location: str) -> None:
    async with Store.open(location) as store:
        made = await started(store)
        assert rows(location, "SELECT workspace_root FROM chat_sessions") == [(None,)]
        with contextlib.closing(open_target(location, write=True)) as db:
            add_session(db.connection, "ses_empty", 1, workspace_root="")
        assert {one.id for one in await store.sessions()} == {made.id, "ses_empty"}


async def test_a_step_counts_when_it_ends_and_a_cost_is_never_computed(location: str) -> None:
    async with Store.open(location) as store:
        session = await started(store)
        async with store.recorder(session) as recorder:
            await recorder.user_message("Go")
            chunks: list[dict[str, Any]] = [
                {"type": "start"}, {"type": "start-step"}, *TEXT,
                {"type": "message-metadata",
                 "messageMetadata": {"usage": {"inputTokens": 1000, "outputTokens": 500}}},
                {"type": "finish-step"},
            ]
            for chunk in chunks[:-1]:
                await recorder.feed(chunk)
            await recorder.flush()
            written(location, "UPDATE chat_sessions SET updated_at = 1")
            await recorder.feed(chunks[-1])
            # A step that has ended counts, whatever comes of the turn.
            spent = "SELECT prompt_tokens, completion_tokens, total_tokens, cost_usd"
            assert rows(location, f"{spent} FROM chat_sessions") == [(1000, 500, 1500, 0.0)]
            assert rows(location, "SELECT updated_at > 1 FROM chat_sessions") == [(1,)]
            await recorder.feed({"type": "finish"})


async def test_each_role_comes_back_as_it_was(location: str) -> None:
    roles = ["system", "user", "assistant"]
    async with Store.open(location) as store:
        session = await started(store)
        async with store.recorder(session) as recorder:
            for role in roles:
                await recorder.add_message(
                    {"role": role, "parts": [{"type": "text", "text": role}]})
        assert [row[0] for row in rows(
            location, "SELECT role FROM chat_messages ORDER BY created_at, id")] == roles
        assert [one["role"] for one in await store.messages(session)] == roles


async def test_what_set_off_a_turn_is_kept_as_it_is(location: str) -> None:
    trigger = {"source": "webhook", "fired_at": 7, "delivery_id": "d", "headers": {"x": "y"},
               "auth_subject": "sub", "schedule_id": "s"}
    async with Store.open(location) as store:
        session = await started(store)
        async with store.recorder(session) as recorder:
            await recorder.user_message("Nightly", metadata={"trigger": trigger})
        ((metadata,),) = rows(location, "SELECT metadata_json FROM chat_messages")
        assert json.loads(metadata)["trigger"] == trigger


async def test_a_second_client_reads_each_chunk_and_parts_change_in_place(location: str) -> None:
    async with Store.open(location) as store:
        session = await started(store)
        async with store.recorder(session, policy=SavePolicy(save_buffer_ms=0)) as recorder:
            await recorder.user_message("Go")
            # The prompt is there before anything of the answer is.
            assert rows(location, "SELECT role FROM chat_messages") == [("user",)]
            await recorder.feed({"type": "start"})
            call = {"toolCallId": "c", "toolName": "sh"}
            seen = []
            chunks: list[dict[str, Any]] = [
                *TEXT, DELTA, {"type": "text-end", "id": "t"},
                {"type": "tool-input-start", **call},
                {"type": "tool-input-available", **call, "input": {"cmd": "ls"}},
                {"type": "tool-output-available", "toolCallId": "c", "output": "ok"},
            ]
            for chunk in chunks:
                await recorder.feed(chunk)
                seen.append(rows(
                    location, "SELECT p.id, p.type, p.tool_call_id, p.tool_state FROM chat_parts"
                    " p JOIN chat_messages m ON m.id = p.message_id WHERE m.role = 'assistant'"
                    ' ORDER BY p."index"'))
            assert [len(each) for each in seen] == [1, 1, 1, 1, 2, 2, 2]
            assert len({each[0][0] for each in seen}) == 1
            assert len({each[1][0] for each in seen[4:]}) == 1
            assert [each[1][1:] for each in seen[4:]] == [
                ("tool-sh", "c", state) for state in (
                    "input-streaming", "input-available", "output-available")]
            ((data,),) = rows(location, "SELECT p.data_json FROM"
                              " chat_parts p JOIN chat_messages m ON m.id = p.message_id"
                              " WHERE m.role = 'assistant' AND p.type = 'text'")
            assert json.loads(data)["text"] == "word word "


@pytest.mark.parametrize(("policy", "counts"), [
    (SavePolicy("step"), [0, 0, 2, 2, 3]), (SavePolicy("turn"), [0, 0, 0, 0, 3]),
    (SavePolicy(save_buffer_ms=0), [1, 2, 2, 3, 3]),
])
async def test_when_parts_are_saved(
    policy: SavePolicy, counts: list[int], location: str
) -> None:
    async with Store.open(location) as store:
        session = await started(store)
        async with store.recorder(session, policy=policy) as recorder:
            await recorder.feed({"type": "start"})
            found = []
            for chunk in ({"type": "start-step"}, TEXT[0], {"type": "finish-step"},
                          {"type": "text-start", "id": "u"}, {"type": "finish"}):
                await recorder.feed(chunk)
                found += rows(location, "SELECT count(*) FROM chat_parts")
            assert [count for (count,) in found] == counts


async def test_bytes_that_wait_are_saved_when_they_are_too_many(location: str) -> None:
    policy = SavePolicy(save_buffer_size=100, save_buffer_ms=3_600_000)
    async with Store.open(location) as store:
        session = await started(store)
        async with store.recorder(session, policy=policy) as recorder:
            for chunk in ({"type": "start"}, TEXT[0], {**DELTA, "delta": "x" * 60}):
                await recorder.feed(chunk)
            assert not [data for (data,) in rows(location, "SELECT data_json FROM chat_parts")
                        if "xx" in data]
            await recorder.feed({**DELTA, "delta": "x" * 60})
            ((data,),) = rows(location, "SELECT data_json FROM chat_parts")
            assert len(json.loads(data)["text"]) == 120


async def test_more_columns_and_tables_of_a_host_stay(tmp_path: Path) -> None:
    path = contract(tmp_path / "s.db")
    with sqlite3.connect(path) as connection:
        for table in ("chat_sessions", "chat_messages", "chat_parts"):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN later TEXT")
        connection.execute("CREATE TABLE blobs (id TEXT, body BLOB)")
        add_session(connection, "ses_a", 1, later="s")
        add_message(connection, "ses_a", "msg_a", at=2, later="m")
        add_part(connection, "ses_a", "msg_a", "prt_a", 0, later="p")
    connection.close()
    schema = "SELECT name, sql FROM sqlite_master ORDER BY name"
    before = rows(path, schema)
    async with Store.open(path) as store:
        forked = await store.fork("ses_a", (await store.messages("ses_a"))[0]["id"])
        await store.archive("ses_a")
        await store.rename(forked, "Copy")
        for table in ("chat_sessions", "chat_messages", "chat_parts"):
            assert [row[0] for row in rows(path, f"SELECT later FROM {table}")] == [
                table.removeprefix("chat_")[0]] * 2
    assert rows(path, schema) == before


def test_types_that_nobody_knows_yet_need_no_migration(tmp_path: Path) -> None:
    path = own(tmp_path / "s.db")
    with sqlite3.connect(path) as connection:
        add_session(connection, "ses_a", 1)
        add_message(connection, "ses_a", "msg_a", at=2)
        add_part(connection, "ses_a", "msg_a", "prt_a", 0, type="media-video",
                 data_json='{"type": "media-video", "frames": [1]}')
    connection.close()
    database = open_database(path, write=False)
    found = database.connection.execute(
        "SELECT type, json_extract(data_json, '$.frames[0]') FROM chat_parts").fetchall()
    database.close()
    assert found == [("media-video", 1)]
