"""Checks a session file against what pi was seen to resume from, and says of its files."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_(.+)\.jsonl")
COUNTS = ("input", "output", "cacheRead", "cacheWrite")
TYPES = {"message", "compaction", "branch_summary", "custom_message", "custom", "session_info"}


def check_name(name: str, session_id: str) -> None:
    """Assert that the file has the name that a session of this id has."""
    found = NAME.fullmatch(name)
    assert found and found[1] == session_id


def check(text: str, session_id: str) -> list[dict[str, Any]]:
    """Assert that a file keeps the recipe; return the messages of its chain in order."""
    assert str(uuid.UUID(session_id)) == session_id
    header, *entries = [json.loads(line) for line in text.splitlines()]
    assert set(header) == {"type", "version", "id", "timestamp", "cwd"}
    assert (header["type"], header["version"], header["id"]) == ("session", 3, session_id)
    parent = None
    seen: set[str] = set()
    for entry in entries:
        assert re.fullmatch("[0-9a-f]{8}", entry["id"]) and entry["id"] not in seen
        assert entry["parentId"] == parent and TIME.fullmatch(entry["timestamp"])
        assert entry["type"] in TYPES
        if entry["type"] == "compaction":
            assert entry["firstKeptEntryId"] in {*seen, entry["id"]}
            assert isinstance(entry["tokensBefore"], int)
        parent = entry["id"]
        seen.add(parent)
    messages = [entry["message"] for entry in entries if entry["type"] == "message"]
    _check_messages(messages)
    return messages


def _check_messages(messages: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    known: set[str] = set()
    for message in messages:
        if message["role"] == "toolResult":
            assert message["toolCallId"] == waiting.pop(0)
            assert isinstance(message["isError"], bool) and message["toolName"]
            continue
        assert not waiting and isinstance(message["timestamp"], int)
        if message["role"] == "assistant":
            _check_usage(message["usage"])
            assert message["api"] and message["provider"] and message["model"]
            waiting = [b["id"] for b in message["content"] if b["type"] == "toolCall"]
            assert known.isdisjoint(waiting)
            known.update(waiting)
            assert all(isinstance(b["arguments"], dict) for b in message["content"]
                       if b["type"] == "toolCall")  # fmt: skip
    assert not waiting


def _check_usage(usage: dict[str, Any]) -> None:
    assert usage["totalTokens"] == sum(usage[name] for name in COUNTS)
    assert set(usage["cost"]) == {*COUNTS, "total"}
