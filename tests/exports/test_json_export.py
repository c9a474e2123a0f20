from __future__ import annotations

import json

from store.engine.database import Database
from tests.exports.exporting import exported, session_id


def test_holds_every_row_by_column_name(demo: Database) -> None:
    document = json.loads(exported(demo, "retry-loop", "json"))
    assert list(document) == ["session", "messages"]
    assert set(document["session"]) == {
        "id", "agent", "workspace_root", "model", "parent_id", "parent_message_id", "permissions",
        "metadata", "prompt_tokens", "completion_tokens", "reasoning_tokens", "cache_read",
        "cache_write", "total_tokens", "cost_usd", "created_at", "updated_at", "archived_at",
    }
    assert document["session"]["model"]["model_id"] == "claude-sonnet-4-5"
    sid = session_id(demo, "retry-loop")
    for table, count in (
        ("chat_messages", len(document["messages"])),
        ("chat_parts", sum(len(item["parts"]) for item in document["messages"])),
    ):
        sql = f"SELECT count(*) FROM {table} WHERE session_id = ?"
        assert demo.connection.execute(sql, (sid,)).fetchone() == (count,)
    message = document["messages"][0]
    assert set(message["message"]) == {
        "id", "session_id", "role", "metadata", "created_at", "updated_at",
    }
    assert set(message["parts"][0]) == {
        "id", "message_id", "session_id", "index", "type", "data", "tool_call_id", "tool_state",
        "created_at", "updated_at",
    }
    assert message["parts"][0]["data"]["type"] == "text"


def test_messages_and_parts_stand_in_display_order(demo: Database) -> None:
    document = json.loads(exported(demo, "port-tests", "json"))
    keys = [(item["message"]["created_at"], item["message"]["id"]) for item in
            document["messages"]]
    assert keys == sorted(keys)
    for item in document["messages"]:
        assert [part["index"] for part in item["parts"]] == list(range(len(item["parts"])))
    assert sum(len(item["parts"]) for item in document["messages"]) == 10_000


def test_a_session_without_messages_is_a_document_too(empty: Database) -> None:
    from store.exports.reading import read_session
    from store.exports.registry import writer

    empty.connection.execute(
        "INSERT INTO chat_sessions(id, agent, model_json, created_at, updated_at) "
        "VALUES ('ses_1', 'a', '{}', 1, 1)"
    )
    document = json.loads("".join(writer("json")(read_session(empty, "ses_1"))))
    assert document["messages"] == []
