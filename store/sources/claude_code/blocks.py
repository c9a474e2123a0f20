"""Content blocks to AI SDK parts: text, reasoning, files, and what has no shape there."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import data_part, text_part
from store.sources.claude_code.rows import mapping, number, string

_FILES = ("image", "document")


def file_data(block: dict[str, Any]) -> dict[str, Any] | None:
    """Return an image or document block as an AI SDK file part; None for other blocks.

    A base64 source becomes a data URL, a text source one of text/plain.
    """
    if block.get("type") not in _FILES:
        return None
    source = mapping(block.get("source"))
    default = "image/png" if block.get("type") == "image" else "application/pdf"
    media_type = string(source.get("media_type")) or default
    data = source.get("data")
    if source.get("type") == "text" and isinstance(data, str):
        url = f"data:{media_type},{quote(data, errors='surrogatepass')}"
    elif isinstance(data, str):
        url = f"data:{media_type};base64,{data}"
    else:
        url = string(source.get("url")) or ""
    part = {"type": "file", "mediaType": media_type, "url": url}
    name = string(block.get("title")) or string(source.get("file_id"))
    if name:
        part["filename"] = name
    return part


def reasoning_part(block: dict[str, Any], duration: object, at: int, record: int) -> PartDraft:
    """Return a thinking block as a reasoning part; signature and redacted data are kept.

    Args:
        block: The thinking block.
        duration: The row's ``thinkingDurationMs``.
        at: Epoch ms.
        record: The row's number.
    """
    anthropic: dict[str, Any] = {}
    if string(block.get("signature")):
        anthropic["signature"] = block["signature"]
    if block.get("type") == "redacted_thinking":
        anthropic["redactedData"] = block.get("data")
    text = block.get("thinking")
    data: dict[str, Any] = {
        "type": "reasoning",
        "text": text if isinstance(text, str) else "",
        "state": "done",
    }
    metadata: dict[str, Any] = {"anthropic": anthropic} if anthropic else {}
    if number(duration):
        metadata["backscroll"] = {"duration_ms": number(duration)}
    if metadata:
        data["providerMetadata"] = metadata
    return PartDraft("reasoning", data, at, at, records=(record,))


def plain_part(block: dict[str, Any], at: int, record: int) -> PartDraft:
    """Return the part of a block that is neither thinking nor a tool's.

    Args:
        block: The block.
        at: Epoch ms.
        record: The row's number.
    """
    if block.get("type") == "text":
        text = block.get("text")
        return text_part(text if isinstance(text, str) else "", at, record)
    file = file_data(block)
    if file is not None:
        return PartDraft("file", file, at, at, records=(record,))
    return data_part("event", {"name": str(block.get("type")), "block": block}, at, record)
