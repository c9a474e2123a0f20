"""Checks a session file against the recipe that Claude Code was seen to resume from.

Written from the format page, section 6: every line, every link.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

LINE_KEYS = {
    "parentUuid", "isSidechain", "userType", "cwd", "sessionId", "version", "type", "message",
    "uuid", "timestamp",
}  # fmt: skip
OPTIONAL_KEYS = {"gitBranch", "isMeta", "isCompactSummary", "forkedFrom", "origin"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
USER_BLOCKS = {"text", "image", "document", "tool_result"}
ASSISTANT_BLOCKS = {"text", "thinking", "redacted_thinking", "tool_use"}


def blocks(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a line's content as blocks."""
    content = line["message"]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def check(text: str, session_id: str) -> list[dict[str, Any]]:
    """Assert that a file keeps the recipe; return its messages in order."""
    assert str(uuid.UUID(session_id)) == session_id
    lines = [json.loads(line) for line in text.splitlines()]
    titles = [line for line in lines if line["type"] == "custom-title"]
    assert len(titles) <= 1 and (not titles or lines[-1] == titles[0])
    assert all(title["sessionId"] == session_id and title["customTitle"] for title in titles)
    chain = [line for line in lines if line["type"] != "custom-title"]
    _check_links(chain, session_id)
    _check_calls(chain)
    for line in chain:
        _check_message(line)
    return chain


def _check_links(chain: list[dict[str, Any]], session_id: str) -> None:
    parent = None
    seen: set[str] = set()
    for line in chain:
        assert set(line) >= LINE_KEYS and set(line) <= LINE_KEYS | OPTIONAL_KEYS
        assert line["parentUuid"] == parent
        parent = line["uuid"]
        assert str(uuid.UUID(parent)) == parent and parent not in seen
        seen.add(parent)
        assert line["sessionId"] == session_id
        assert line["isSidechain"] is False and line["userType"] == "external"
        assert TIME.fullmatch(line["timestamp"]) and line["cwd"].startswith("/")


def _check_message(line: dict[str, Any]) -> None:
    message = line["message"]
    assert message["role"] == line["type"]
    found = {block["type"] for block in blocks(line)}
    assert found and found <= (USER_BLOCKS if line["type"] == "user" else ASSISTANT_BLOCKS)
    for block in blocks(line):
        if block["type"] == "thinking":
            assert block["signature"]
        if block["type"] == "text" and line["type"] == "assistant":
            assert block["text"].strip()
    if line["type"] == "assistant":
        assert message["type"] == "message" and message["id"] and message["model"]
        assert isinstance(message["usage"]["input_tokens"], int)
        assert isinstance(message["usage"]["output_tokens"], int)


def _check_calls(chain: list[dict[str, Any]]) -> None:
    """Each call is answered by the very next line, once, and nothing else is answered."""
    known: set[str] = set()
    waiting: list[str] = []
    for line in chain:
        answered = [b["tool_use_id"] for b in blocks(line) if b["type"] == "tool_result"]
        assert answered == waiting
        waiting = [b["id"] for b in blocks(line) if b["type"] == "tool_use"]
        for call_id in waiting:
            assert CALL_ID.fullmatch(call_id) and call_id not in known
            known.add(call_id)
        for block in blocks(line):
            if block["type"] == "tool_use":
                assert isinstance(block["input"], dict) and block["name"]
    assert not waiting
