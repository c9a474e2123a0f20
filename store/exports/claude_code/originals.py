"""Extracts content blocks from the original records of a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Block = dict[str, Any]
_NEEDED = {"text": "text", "tool_use": "id", "tool_result": "tool_use_id"}
"""The string that a block of each type must have."""


def content_blocks(row: dict[str, Any]) -> Iterator[Block]:
    """Yield the content blocks of a user, assistant or queued_command record.

    Blocks without their required key are left out.
    """
    attachment = row.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        content = attachment.get("prompt")
    else:
        message = row.get("message")
        content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict) and _is_whole(block))


def _is_whole(block: Block) -> bool:
    needed = _NEEDED.get(kind) if isinstance(kind := block.get("type"), str) else None
    return isinstance(kind, str) and (needed is None or isinstance(block.get(needed), str))


def results(rows: list[dict[str, Any]]) -> dict[str, Block]:
    """Return the tool_result blocks of records by call id."""
    found: dict[str, Block] = {}
    for row in rows:
        for block in content_blocks(row):
            call_id = block.get("tool_use_id")
            if block.get("type") == "tool_result" and isinstance(call_id, str):
                found.setdefault(call_id, block)
    return found
