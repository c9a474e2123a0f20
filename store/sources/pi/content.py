"""Content of pi's messages to AI SDK parts, and results to their calls.

Source: the pi section of the format page; shapes as in pi's own description of its files.
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.content_blocks import blocks_of, text_of
from store.sources.base.diffs import hunks_of
from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import call_part, data_part, reasoning_part, text_part
from store.sources.base.values import mapping, number, string
from store.sources.pi.tree import Entry

_EXIT_CODE = re.compile(r"Command exited with code (\d{1,9})\s*$")
_ABORTED = re.compile(r"(?:Command|Operation) aborted\s*$")
_DENIED = re.compile(r"^(?:Blocked by|Denied by|Tool execution was blocked)", re.I)


def file_data(block: dict[str, Any]) -> dict[str, Any] | None:
    """Return an image block as an AI SDK file part; None for other blocks."""
    data = block.get("data")
    if block.get("type") != "image" or not isinstance(data, str):
        return None
    media_type = string(block.get("mimeType")) or "image/png"
    return {"type": "file", "mediaType": media_type, "url": f"data:{media_type};base64,{data}"}


def part_of(block: dict[str, Any], entry: Entry) -> PartDraft:
    """Return the part of one block."""
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return text_part(text if isinstance(text, str) else "", entry.at, entry.number)
    if kind == "thinking":
        return _reasoning(block, entry)
    if kind == "toolCall":
        return _call(block, entry)
    file = file_data(block)
    if file is not None:
        return PartDraft("file", file, entry.at, entry.at, records=(entry.number,))
    event = {"name": str(kind or "block"), "details": block}
    return data_part("event", event, entry.at, entry.number)


def _reasoning(block: dict[str, Any], entry: Entry) -> PartDraft:
    kept = {key: block[key] for key in ("thinkingSignature", "redacted") if block.get(key)}
    return reasoning_part(block.get("thinking"), entry.at, entry.number, "pi", kept)


def _call(block: dict[str, Any], entry: Entry) -> PartDraft:
    part = call_part(block.get("name"), string(block.get("id")) or entry.id,
                     block.get("arguments"), entry.at, entry.number)  # fmt: skip
    if string(block.get("thoughtSignature")):
        part.data["callProviderMetadata"] = {"pi": {"thoughtSignature": block["thoughtSignature"]}}
    return part


def settle(part: PartDraft, result: dict[str, Any], entry: Entry) -> None:
    """Put a ``toolResult`` message into the part of its call; a second one is left out.

    Args:
        part: The call's part.
        result: The message.
        entry: Its entry.
    """
    part.records = (*part.records, entry.number)
    if part.tool_state != "input-available":
        return
    text = text_of(result.get("content"))
    failed = result.get("isError") is True
    extra: dict[str, Any] = {
        "status": _status(failed, text),
        "duration_ms": number(result.get("durationMs")) or max(entry.at - part.created_at, 0),
    }
    if part.type == "tool-bash":
        code = _EXIT_CODE.search(text)
        if code or not failed:
            extra["exit_code"] = int(code[1]) if code else 0
    details = mapping(result.get("details"))
    if details:
        hunks = hunks_of(details.get("patch") or details.get("diff"))
        extra["structured"] = {**details, "structuredPatch": hunks} if hunks else details
    if failed:
        part.data["state"] = part.tool_state = "output-error"
        part.data["errorText"] = text
    else:
        part.data["state"] = part.tool_state = "output-available"
        part.data["output"] = _output(result.get("content"), text)
    part.data["resultProviderMetadata"] = {"backscroll": extra}
    part.updated_at = max(entry.at, part.created_at)


def _status(failed: bool, text: str) -> str:
    if not failed:
        return "ok"
    if _ABORTED.search(text):
        return "interrupted"
    return "denied" if _DENIED.match(text) else "error"


def _output(content: object, text: str) -> Any:
    """Return a result as a tool part's output: a text, or a list where files are in it."""
    blocks = blocks_of(content)
    if all(block.get("type") == "text" for block in blocks):
        return text
    return [file_data(block) or block for block in blocks]
