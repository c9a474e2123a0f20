"""Checks a session's files against the recipe that Kimi Code was seen to resume from.

Written from the format page, sections A.2, A.3 and A.7.
"""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

from tests.sources.samples import DATA

ORIGINS = {"user", "injection", "compaction_summary"}
USAGE = {"inputOther", "output", "inputCacheRead", "inputCacheCreation"}


def have_used_kimi(home: Path) -> None:
    """Put one of Kimi Code's own sessions into a home folder: a written one needs its profile."""
    name = "wd_web_3c88d07c71f3"
    shutil.copytree(DATA / "kimi/kimi-code/sessions" / name, home / ".kimi-code/sessions" / name)


def check(text: str, export_id: str) -> list[dict[str, Any]]:
    """Assert that a conversation keeps the recipe; return its records after the head."""
    assert str(uuid.UUID(export_id)) == export_id
    head, *records = [json.loads(line) for line in text.splitlines()]
    assert head.keys() == {"type", "protocol_version", "created_at"}
    assert (head["type"], head["protocol_version"]) == ("metadata", "1.5")
    if records[0]["type"] == "profile.bind":
        # As Kimi Code wrote it: one of four fields was refused.
        profile = records.pop(0)
        assert profile.keys() >= {"modelAlias", "profileName", "systemPrompt", "thinkingEffort",
                                  "disallowedTools", "time"}  # fmt: skip
    messages, ids = set[str](), set[str]()
    step: str | None = None
    calls: dict[str, str] = {}
    for record in records:
        assert record.keys() <= {"type", "agentId", "time", "message", "event"}
        assert record["agentId"] == "main" and type(record["time"]) is int
        if record["type"] == "context.append_message":
            assert step is None
            message = record["message"]
            assert message.keys() == {"role", "content", "id", "toolCalls", "origin"}
            assert (message["role"], message["toolCalls"]) == ("user", [])
            assert message["content"] and all(map(_is_part, message["content"]))
            assert message["origin"]["kind"] in ORIGINS and message["id"] not in messages
            messages.add(message["id"])
            continue
        assert record["type"] == "context.append_loop_event"
        event = record["event"]
        kind = event["type"]
        if kind == "step.begin":
            assert step is None and event["turnId"].isdecimal() and event["step"] > 0
            step = event["uuid"]
        elif kind == "content.part":
            part = event["part"]
            assert event["stepUuid"] == step and not calls
            assert _is_part(part) or (part["type"] == "think" and part["think"].strip())
        elif kind == "tool.call":
            assert event["stepUuid"] == step and isinstance(event["args"], dict) and event["name"]
            assert event["toolCallId"] not in ids
            calls[event["toolCallId"]] = event["uuid"]
            ids.add(event["toolCallId"])
        elif kind == "tool.result":
            assert calls.pop(event["toolCallId"]) == event["parentUuid"]
            output = event["result"]["output"]
            assert isinstance(output, str) or all(map(_is_part, output))
            assert event["result"].get("isError") in (None, True)
        else:
            assert kind == "step.end" and event["uuid"] == step and not calls
            assert event["usage"].keys() == USAGE
            step = None
    assert step is None
    return records


def check_state(text: str, session_id: str) -> dict[str, Any]:
    """Assert that a state is one of version 2; return it."""
    state: dict[str, Any] = json.loads(text)
    assert (state["id"], state["version"], state["archived"]) == (session_id, 2, False)
    assert state["cwd"] and type(state["createdAt"]) is int and type(state["updatedAt"]) is int
    assert state["agents"]["main"]["type"] == "main" and state["custom"] == {}
    return state


def _is_part(part: dict[str, Any]) -> bool:
    if part["type"] == "text":
        return isinstance(part["text"], str)
    return part["type"] == "image_url" and str(part["imageUrl"]["url"]).startswith("data:image/")
