"""Converts AI SDK parts to content blocks of pi's messages."""

from __future__ import annotations

from typing import Any

from store.exports.steps import Part, file_name, inline_data

Entry = dict[str, Any]


def content_block(part: Part) -> Entry | None:
    """Return a text, reasoning or file part as a block; None for parts not sent to a model."""
    kind, text = part.get("type"), part.get("text")
    if kind == "text":
        return {"type": "text", "text": text} if isinstance(text, str) and text.strip() else None
    if kind == "reasoning":
        return _thinking(part)
    if kind != "file":
        return None
    inline = inline_data(part)
    if inline is not None and inline[0].startswith("image/"):
        return {"type": "image", "data": inline[1], "mimeType": inline[0]}
    return {"type": "text", "text": file_name(part)}


def _thinking(part: Part) -> Entry | None:
    """Return pi's own reasoning as a block; None for others, which pi would send as text."""
    metadata = part.get("providerMetadata")
    own = metadata.get("pi") if isinstance(metadata, dict) else None
    if not isinstance(own, dict):
        return None
    return {"type": "thinking", "thinking": str(part.get("text") or ""), **own}
