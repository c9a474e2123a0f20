"""Content blocks of droid's messages to AI SDK parts, and results to their calls.

Source: the droid format page, section 2.
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.content_blocks import blocks_of, text_of
from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import (
    call_part,
    data_part,
    reasoning_part,
    settle_call,
    text_part,
)
from store.sources.base.values import mapping, number, string

_EXIT_CODE = re.compile(r"Error: Command failed \(exit code: (\d{1,9})\)")
_DENIED = ("Tool execution cancelled by user", "Error: Exec ended early: insufficient permission")
"""Beginnings of what stands for a refusal. Escape during a tool says the first one too."""
_INTERRUPTED = "Error: Command terminated by signal"
_SHELL = "tool-Execute"
_HELPER = "tool-Task"
_CHILD = re.compile(r"^session_id: ([0-9A-Za-z-]{8,64})$", re.M)


def part_of(block: dict[str, Any], name: str, at: int, record: int) -> PartDraft:
    """Return the part of one block.

    Args:
        block: The block.
        name: The call's id where the block has none.
        at: When its message was written, epoch ms.
        record: The number of its record.
    """
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return text_part(text if isinstance(text, str) else "", at, record)
    if kind == "thinking":
        return _reasoning(block, at, record)
    if kind == "tool_use":
        call_id = string(block.get("id")) or name
        return call_part(block.get("name"), call_id, block.get("input"), at, record)
    file = _file(block)
    if file is not None:
        return PartDraft("file", file, at, at, records=(record,))
    return data_part("event", {"name": str(kind or "block"), "details": block}, at, record)


def _reasoning(block: dict[str, Any], at: int, record: int) -> PartDraft:
    kept = {key: block[key] for key in ("signature", "signatureProvider") if block.get(key)}
    took = number(block.get("durationMs"))
    if took > 0:
        kept["durationMs"] = took
    return reasoning_part(block.get("thinking"), at, record, "droid", kept)


def _file(block: dict[str, Any]) -> dict[str, Any] | None:
    """Return an image of Anthropic's form as a file part; None for other blocks."""
    source = mapping(block.get("source"))
    if block.get("type") != "image":
        return None
    if string(source.get("url")):
        return {"type": "file", "mediaType": "image/*", "url": source["url"]}
    data = string(source.get("data"))
    if data is None:
        return None
    media_type = string(source.get("media_type")) or "image/png"
    return {"type": "file", "mediaType": media_type, "url": f"data:{media_type};base64,{data}"}


def settle(part: PartDraft, block: dict[str, Any], at: int, record: int) -> None:
    """Put a ``tool_result`` block into the part of its call; a second one is left out.

    Args:
        part: The call's part.
        block: The result.
        at: When it was written, epoch ms.
        record: The number of its record.
    """
    text, failed = text_of(block.get("content")), block.get("is_error") is True
    status = _status(text) if failed else "ok"
    extra: dict[str, Any] = {"duration_ms": max(at - part.created_at, 0)}
    if part.type == _SHELL:
        code = _EXIT_CODE.match(text)
        if code or not failed:
            extra["exit_code"] = int(code[1]) if failed and code else 0
    child = _CHILD.search(text) if part.type == _HELPER else None
    if child:
        extra["child_session_source_id"] = child[1]
    output = _output(block.get("content"), text) if status == "ok" else text
    settle_call(part, status, output, at, record, extra)


def _status(text: str) -> str:
    if text.startswith(_DENIED):
        return "denied"
    return "interrupted" if text.startswith(_INTERRUPTED) else "error"


def _output(content: object, text: str) -> Any:
    """Return a result as a tool part's output: a text, or a list where files are in it."""
    blocks = blocks_of(content)
    if all(block.get("type") == "text" for block in blocks):
        return text
    return [_file(block) or block for block in blocks]
