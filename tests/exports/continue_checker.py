"""Checks a session file against the recipe that Continue was seen to resume from.

Written from the format page, sections 3 to 5 and 8.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

FIELDS = {"sessionId", "title", "workspaceDirectory", "history"}
ITEM = {"message", "contextItems", "backscroll"}
MORE = {
    "user": {"editorState"},
    "assistant": {"toolCallStates", "reasoning", "conversationSummary", "promptLogs"},
}
MESSAGE = {"user": {"role", "content", "id"},
           "assistant": {"role", "content", "id", "toolCalls", "usage"}}  # fmt: skip


def check(text: str, session_id: str) -> list[dict[str, Any]]:
    """Assert that a file keeps the recipe; return its history."""
    assert str(uuid.UUID(session_id)) == session_id
    data = json.loads(text)
    assert data.keys() == FIELDS and data["sessionId"] == session_id
    assert data["title"] and data["workspaceDirectory"]
    calls: list[str] = []
    for item in data["history"]:
        message = item["message"]
        role = message["role"]
        assert ITEM <= item.keys() <= ITEM | MORE[role] | {"modifiers", "appliedRules"}
        assert {"role", "content"} <= message.keys() <= MESSAGE[role]
        content = message["content"]
        blocks = [content] if isinstance(content, str) else content
        for block in blocks:
            if isinstance(block, str):
                assert block.strip() or message.get("toolCalls") or "reasoning" in item
            elif block["type"] == "text":
                assert block["text"]
            else:
                assert block["type"] == "imageUrl" and block["imageUrl"]["url"]
        if "conversationSummary" in item:
            assert content == item["conversationSummary"]
        states = item.get("toolCallStates", [])
        made = message.get("toolCalls", [])
        assert [call["id"] for call in made] == [state["toolCallId"] for state in states]
        for call, state in zip(made, states, strict=True):
            assert call["type"] == "function" and call["function"]["name"]
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            # Without an output the model is told that the call was cancelled.
            assert state["status"] in ("done", "errored", "canceled") and state["output"]
            assert all(isinstance(one["content"], str) for one in state["output"])
            calls.append(call["id"])
        if "usage" in message:
            used = message["usage"]
            assert min(used["prompt_tokens"], used["completion_tokens"]) >= 0 and used["model"]
    assert len(calls) == len(set(calls))
    history: list[dict[str, Any]] = data["history"]
    return history
