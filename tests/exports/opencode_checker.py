"""Checks a file against what ``opencode import`` was seen to take.

Written from the format page, sections 2.3 to 2.5 and 2.10: every id, every link.
"""

from __future__ import annotations

import json
import re
from typing import Any

ID = re.compile(r"(ses|msg|prt)_([0-9a-f]{12})[0-9A-Za-z]{14}")
INFO_KEYS = {"id", "slug", "projectID", "directory", "title", "version", "time"}
ASSISTANT_KEYS = {
    "parentID", "mode", "agent", "path", "cost", "tokens", "modelID", "providerID", "time",
}  # fmt: skip
PART_TYPES = {
    "text", "reasoning", "tool", "step-start", "step-finish", "patch", "file", "agent", "subtask",
    "compaction", "snapshot", "retry",
}  # fmt: skip


def check(text: str) -> dict[str, Any]:
    """Assert that a document keeps the recipe; return it."""
    document: dict[str, Any] = json.loads(text)
    assert set(document) == {"info", "messages"}
    info = document["info"]
    assert set(info) == INFO_KEYS
    assert all(info[key] for key in INFO_KEYS) and info["directory"].startswith("/")
    assert info["time"]["created"] <= info["time"]["updated"]
    stamps = _check_ids(document)
    assert stamps == sorted(stamps)
    _check_session_id(info["id"], stamps)
    prompts: set[str] = set()
    seen: list[str] = []
    for message in document["messages"]:
        _check_message(message, info, prompts, seen)
        seen.append(message["info"]["id"])
    times = [message["info"]["time"]["created"] for message in document["messages"]]
    assert times == sorted(times) and all(time <= info["time"]["created"] for time in times)
    return document


def _check_ids(document: dict[str, Any]) -> list[int]:
    """All ids are new, of the right kind, and in the order of the document."""
    found, seen = [], set()
    for message in document["messages"]:
        for row, prefix in ((message["info"], "msg"), *((p, "prt") for p in message["parts"])):
            match = ID.fullmatch(row["id"])
            assert match is not None and match[1] == prefix
            assert row["id"] not in seen
            seen.add(row["id"])
            assert row["sessionID"] == document["info"]["id"]
            if prefix == "prt":
                assert row["messageID"] == message["info"]["id"]
            found.append(int(match[2], 16))
    return found


def _check_session_id(session_id: str, stamps: list[int]) -> None:
    """A session's stamp is the bitwise opposite of its time: newer ones sort first."""
    match = ID.fullmatch(session_id)
    assert match is not None and match[1] == "ses"
    moment = ~int(match[2], 16) & ((1 << 48) - 1)
    assert all(moment < stamp for stamp in stamps)


def _check_message(
    message: dict[str, Any], info: dict[str, Any], prompts: set[str], seen: list[str]
) -> None:
    row, parts = message["info"], message["parts"]
    assert parts and {part["type"] for part in parts} <= PART_TYPES
    if row["role"] == "user":
        assert isinstance(row["agent"], str) and row["agent"]
        assert row["model"]["providerID"] and row["model"]["modelID"]
        prompts.add(row["id"])
    else:
        assert row["role"] == "assistant" and set(row) >= ASSISTANT_KEYS
        assert row["parentID"] in prompts or not prompts
        assert row["path"]["cwd"] and row["path"]["root"]
        tokens = row["tokens"]
        numbers = [tokens[key] for key in ("input", "output", "reasoning")]
        numbers += [tokens["cache"]["read"], tokens["cache"]["write"], row["cost"]]
        assert all(isinstance(number, int | float) for number in numbers)
    for part in parts:
        _check_part(part, seen)


def _check_part(part: dict[str, Any], seen: list[str]) -> None:
    if part["type"] in ("text", "reasoning"):
        assert isinstance(part["text"], str)
    if part["type"] == "reasoning":
        assert isinstance(part["time"]["start"], int)
    if part["type"] == "file":
        assert part["mime"] and isinstance(part["url"], str)
    if part["type"] == "compaction" and "tail_start_id" in part:
        assert part["tail_start_id"] in seen
    if part["type"] == "step-finish":
        assert part["reason"]
    if part["type"] == "tool":
        _check_call(part)


def _check_call(part: dict[str, Any]) -> None:
    state = part["state"]
    assert part["tool"] and part["callID"] and isinstance(state["input"], dict)
    assert state["status"] in ("completed", "error")
    assert state["time"]["start"] <= state["time"]["end"]
    if state["status"] == "completed":
        assert isinstance(state["output"], str) and isinstance(state["title"], str)
        assert isinstance(state["metadata"], dict)
    else:
        assert isinstance(state["error"], str) and state["error"]
    for file in state.get("attachments", ()):
        assert file["type"] == "file" and file["mime"] and ID.fullmatch(file["id"])
