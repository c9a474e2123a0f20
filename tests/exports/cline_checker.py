"""Checks a session's files against what Cline was seen to resume from.

Written from the format page, sections 2.1 to 2.3 and 2.7.
"""

from __future__ import annotations

import json
import re
from typing import Any

SESSION = re.compile(r"\d{13}_[0-9A-Za-z]{5}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
MANIFEST = {
    "version", "session_id", "source", "pid", "started_at", "ended_at", "exit_code", "status",
    "interactive", "provider", "model", "cwd", "workspace_root", "enable_tools", "enable_spawn",
    "enable_teams", "metadata", "messages_path",
}  # fmt: skip
BLOCKS = {
    "text": {"text"}, "image": {"data", "mediaType"}, "thinking": {"thinking", "signature"},
    "tool_use": {"id", "name", "input"},
}  # fmt: skip


def check(text: str, export_id: str) -> list[dict[str, Any]]:
    """Assert that a file of messages keeps the form; return its messages."""
    document = json.loads(text)
    assert document.keys() == {"version", "updated_at", "agent", "sessionId", "origin", "messages"}
    assert (document["version"], document["agent"]) == (1, "lead")
    assert SESSION.fullmatch(document["sessionId"])
    assert document["sessionId"].endswith(export_id[:5]) and TIME.fullmatch(document["updated_at"])
    assert document["origin"]["sessionId"] == document["sessionId"]
    messages: list[dict[str, Any]] = document["messages"]
    ids = [message["id"] for message in messages]
    assert len(ids) == len(set(ids)) and all(ids)
    waiting: list[tuple[str, str]] = []
    for message in messages:
        assert message.keys() <= {"id", "role", "content", "ts", "modelInfo", "metadata"}
        assert type(message["ts"]) is int and message["content"]
        first = message["content"][0]
        if first["type"] == "tool_result":
            # Each result is a message of its own, which has nothing else.
            assert len(message["content"]) == 1 and message["role"] == "user"
            assert waiting.pop(0) == (first["tool_use_id"], first["name"])
            content = first["content"]
            assert isinstance(content, str) or [each["query"] for each in content]
            continue
        assert not waiting, "a call without its result"
        for block in message["content"]:
            assert block.keys() - {"type"} == BLOCKS[block["type"]]
        if message["role"] == "user":
            assert {block["type"] for block in message["content"]} <= {"text", "image"}
            assert message.get("metadata", {}).get("userRunSpan", 0) == 0
            continue
        assert message["role"] == "assistant" and message["modelInfo"].keys() == {"id", "provider"}
        waiting = [(block["id"], block["name"]) for block in message["content"]
                   if block["type"] == "tool_use"]  # fmt: skip
        assert all(isinstance(block["input"], dict) for block in message["content"]
                   if block["type"] == "tool_use")  # fmt: skip
    assert not waiting
    return messages


def check_manifest(text: str, session_id: str) -> dict[str, Any]:
    """Assert that a manifest is whole; return it."""
    manifest: dict[str, Any] = json.loads(text)
    assert manifest.keys() == MANIFEST
    assert (manifest["version"], manifest["session_id"]) == (1, session_id)
    assert TIME.fullmatch(manifest["started_at"]) and TIME.fullmatch(manifest["ended_at"])
    assert manifest["messages_path"].endswith(f"{session_id}/{session_id}.messages.json")
    assert manifest["cwd"] and manifest["provider"] and manifest["model"]
    return manifest
