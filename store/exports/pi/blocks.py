"""AI SDK parts as blocks of pi's messages."""

from __future__ import annotations

from typing import Any

from store.exports.steps import Part, file_name, inline_data

Entry = dict[str, Any]


def content_block(part: Part) -> Entry | None:
    """Return a text, reasoning or file part as a block; None for what no model is sent."""
    kind, text = part.get("type"), part.get("text")
    if kind == "text":
        return {"type": "text", "text": text} if isinstance(text, str) and text.strip() else None
    if kind == "reasoning":
        return {"type": "thinking", "thinking": str(text or ""), **_signature(part)}
    if kind != "file":
        return None
    inline = inline_data(part)
    if inline is not None and inline[0].startswith("image/"):
        return {"type": "image", "data": inline[1], "mimeType": inline[0]}
    return {"type": "text", "text": file_name(part)}


def _signature(part: Part) -> Entry:
    metadata = part.get("providerMetadata")
    bag = metadata if isinstance(metadata, dict) else {}
    own, anthropic = bag.get("pi"), bag.get("anthropic")
    if isinstance(own, dict):
        return own
    signature = anthropic.get("signature") if isinstance(anthropic, dict) else None
    return {"thinkingSignature": signature} if isinstance(signature, str) else {}
