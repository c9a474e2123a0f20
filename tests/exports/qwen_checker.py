"""Checks a session file against the recipe that Qwen Code was seen to resume from.

Written from the format page, sections 2, 3 and 7.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
FIELDS = {"uuid", "parentUuid", "sessionId", "timestamp", "cwd", "version", "type", "message"}
MORE = {
    "user": {"subtype", "provenance", "systemPayload", "backscroll"},
    "assistant": {"provenance", "model", "usageMetadata", "contextWindowSize", "backscroll"},
    "tool_result": {"provenance", "toolCallResult"},
}


def check(text: str, session_id: str) -> list[dict[str, Any]]:
    """Assert that a file keeps the recipe; return its records in order."""
    assert str(uuid.UUID(session_id)) == session_id
    records = [json.loads(line) for line in text.splitlines()]
    parent, open_calls, calls = None, list[tuple[str, str]](), set[str]()
    for record in records:
        assert record["parentUuid"] == parent and record["sessionId"] == session_id
        parent = record["uuid"]
        assert TIME.fullmatch(record["timestamp"]) and record["cwd"] and record["version"]
    ids = [record["uuid"] for record in records]
    assert len(ids) == len(set(ids))
    if records[-1]["type"] == "system":
        title = records.pop()
        assert title["subtype"] == "custom_title" and title["systemPayload"]["customTitle"]
    for record in records:
        kind = record["type"]
        assert record.keys() >= FIELDS and record.keys() - FIELDS <= MORE[kind]
        parts = record["message"]["parts"]
        assert parts and record["message"]["role"] == ("model" if kind == "assistant" else "user")
        if kind == "tool_result":
            response = parts[0]["functionResponse"]
            assert open_calls.pop(0) == (response["id"], response["name"])
            assert len(response["response"]) == 1
            assert record["toolCallResult"]["callId"] == response["id"]
            continue
        assert not open_calls, "a call without its result"
        if kind == "assistant":
            used = record["usageMetadata"]
            assert used["cachedContentTokenCount"] <= used["promptTokenCount"] and record["model"]
            made = [part["functionCall"] for part in parts if "functionCall" in part]
            assert all(isinstance(call["args"], dict) for call in made)
            open_calls = [(call["id"], call["name"]) for call in made]
            assert not calls & {call["id"] for call in made}
            calls |= {call["id"] for call in made}
        else:
            assert all(part.keys() & {"text", "inlineData", "fileData"} for part in parts)
    assert not open_calls
    return records
