from __future__ import annotations

import json

from store.engine.database import Database
from tests.exports.exporting import exported


def texts(messages: list[dict[str, object]]) -> str:
    return json.dumps(messages, ensure_ascii=False)


def test_is_an_array_of_ui_messages(demo: Database) -> None:
    messages = json.loads(exported(demo, "retry-loop", "ui-messages", "display"))
    assert [message["role"] for message in messages[:3]] == ["user", "assistant", "assistant"]
    assert all(set(message) <= {"id", "role", "metadata", "parts"} for message in messages)
    tool = messages[1]["parts"][2]
    assert tool["type"] == "tool-Grep" and tool["state"] == "output-available"
    assert "toolCallId" in tool


def test_display_leaves_out_hidden_and_queued_messages(demo: Database) -> None:
    display = texts(json.loads(exported(demo, "retry-loop", "ui-messages", "display")))
    hidden = texts(json.loads(exported(demo, "retry-loop", "ui-messages", "hidden")))
    assert "far too much" not in display and "far too much" in hidden
    assert "changelog" not in display and "changelog" not in hidden


def test_context_starts_with_the_summary_and_keeps_the_tail(demo: Database) -> None:
    messages = json.loads(exported(demo, "search-page", "ui-messages", "context"))
    assert messages[0]["parts"][0]["type"] == "data-compaction"
    assert messages[1]["parts"][0]["text"] == "Fine."
    assert "without the framework. No request" not in texts(messages[1:])
    whole = json.loads(exported(demo, "search-page", "ui-messages", "display"))
    assert len(whole) == 7 and len(messages) == 5


def test_a_message_of_a_stream_has_its_own_id(demo: Database, empty: Database) -> None:
    from store.exports.reading import MessageReading
    from store.exports.ui_messages import ui_message

    row = {"id": "msg_1", "role": "assistant", "metadata":
           {"backscroll": {"sdk_message_id": "abc"}}}
    assert ui_message(MessageReading(row, []))["id"] == "abc"
    assert ui_message(MessageReading({**row, "metadata": {}}, [])) == {
        "id": "msg_1", "role": "assistant", "parts": [],
    }
