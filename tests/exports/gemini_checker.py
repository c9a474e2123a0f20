"""Checks a session file against the recipe that Gemini CLI was seen to resume from.

Written from the format page, sections 4.2 and 4.5.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
NAME = re.compile(r"session-\d{4}-\d\d-\d\dT\d\d-\d\d-([0-9a-f]{8})\.jsonl")
STATES = {"success", "error", "cancelled"}


def check_name(name: str, session_id: str) -> None:
    """Assert that the program finds a session of this id in a file of this name."""
    found = NAME.fullmatch(name)
    assert found and found[1] == session_id[:8]


def check(text: str, session_id: str) -> list[dict[str, Any]]:
    """Assert that a file keeps the recipe; return its records in order."""
    assert str(uuid.UUID(session_id)) == session_id
    lines = [json.loads(line) for line in text.splitlines()]
    header, *records = lines
    assert header["sessionId"] == session_id and header["kind"] == "main"
    assert re.fullmatch("[0-9a-f]{64}", header["projectHash"])
    assert TIME.fullmatch(header["startTime"]) and TIME.fullmatch(header["lastUpdated"])
    if records and "$set" in records[-1]:
        assert set(records.pop()["$set"]) == {"summary"}
    ids = [record["id"] for record in records]
    assert len(ids) == len(set(ids))
    calls: set[str] = set()
    for record in records:
        assert TIME.fullmatch(record["timestamp"]) and record["type"] in ("user", "gemini")
        if record["type"] == "user":
            _check_prompt(record)
        else:
            _check_answer(record, calls)
    return records


def _check_prompt(record: dict[str, Any]) -> None:
    assert set(record) <= {"id", "timestamp", "type", "content", "displayContent"}
    assert isinstance(record["content"], list) and record["content"]
    for part in record["content"]:
        # A functionResponse here would send the result a second time.
        assert set(part) in ({"text"}, {"inlineData"}, {"fileData"})


def _check_answer(record: dict[str, Any], calls: set[str]) -> None:
    assert isinstance(record["content"], str | list) and record["model"]
    if record.get("tokens"):
        tokens = record["tokens"]
        summed = sum(tokens[key] for key in ("input", "output", "thoughts", "tool"))
        assert tokens["total"] == summed and tokens["cached"] <= tokens["input"]
    for call in record.get("toolCalls", []):
        assert call["id"] not in calls and call["name"] and isinstance(call["args"], dict)
        calls.add(call["id"])
        assert call["status"] in STATES and TIME.fullmatch(call["timestamp"])
        response = call["result"][0]["functionResponse"]
        assert response["id"] and response["name"] == call["name"]
        assert len(response["response"]) == 1
