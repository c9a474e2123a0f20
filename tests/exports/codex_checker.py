"""Checks a rollout against the recipe that Codex was seen to resume from.

Written from the format page, section 3.8: first line, envelopes, items, calls and outputs.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

META = {"id", "timestamp", "cwd", "originator", "cli_version", "source"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output",
         "local_shell_call": "function_call_output"}  # fmt: skip
CONTENT = {"user": {"input_text", "input_image"}, "developer": {"input_text"},
           "assistant": {"output_text"}}  # fmt: skip


def check(lines: list[str], session_id: str) -> list[dict[str, Any]]:
    """Assert that a file keeps the recipe; return its response items in order."""
    assert str(uuid.UUID(session_id)) == session_id
    decoded = [json.loads(line) for line in lines]
    for line in decoded:
        assert set(line) == {"timestamp", "type", "payload"}
        assert TIME.fullmatch(line["timestamp"])
    meta = decoded[0]
    assert meta["type"] == "session_meta"
    assert set(meta["payload"]) >= META and set(meta["payload"]) <= META | {"model_provider"}
    assert meta["payload"]["id"] == session_id and meta["payload"]["cwd"].startswith("/")
    kinds = {line["type"] for line in decoded[1:]}
    assert kinds <= {"response_item", "event_msg", "compacted"}
    items = [line["payload"] for line in decoded if line["type"] == "response_item"]
    _check_items(items)
    _check_calls(items)
    _check_events(decoded)
    for line in decoded:
        if line["type"] == "compacted":
            assert isinstance(line["payload"]["message"], str)
    return items


def _check_items(items: list[dict[str, Any]]) -> None:
    for item in items:
        if item["type"] == "message":
            assert {part["type"] for part in item["content"]} <= CONTENT[item["role"]]
            assert item["content"]
        elif item["type"] == "reasoning":
            assert isinstance(item["summary"], list) and item["encrypted_content"]
        elif item["type"] == "function_call":
            assert item["name"] and isinstance(json.loads(item["arguments"]), dict)
        elif item["type"] == "custom_tool_call":
            assert item["name"] and isinstance(item["input"], str)
        else:
            assert item["type"] in {*CALLS, *CALLS.values()}


def _check_calls(items: list[dict[str, Any]]) -> None:
    """Each call has its own id and is answered once, by an output of its kind."""
    waiting: dict[str, str] = {}
    known: set[str] = set()
    for item in items:
        if item["type"] in CALLS:
            assert CALL_ID.fullmatch(item["call_id"]) and item["call_id"] not in known
            known.add(item["call_id"])
            waiting[item["call_id"]] = CALLS[item["type"]]
        elif item["type"].endswith("_output"):
            assert waiting.pop(item["call_id"]) == item["type"]
            assert isinstance(item["output"], (str, list))
        elif item["type"] == "message" and item["role"] == "user":
            assert not waiting
    assert not waiting


def _check_events(lines: list[dict[str, Any]]) -> None:
    """What a person typed and the agent said stands once more, right behind it."""
    for before, line in zip(lines, lines[1:], strict=False):
        if line["type"] == "event_msg":
            kind, item = line["payload"]["type"], before["payload"]
            assert item["role"] == {"user_message": "user", "agent_message": "assistant"}[kind]
            texts = (each["text"] for each in item["content"] if "text" in each)
            first = next((text for text in texts if not text.startswith(("<image", "</image"))), "")
            assert line["payload"]["message"].startswith(first)
