"""The content of a message as several agents store it: one text, or a list of typed blocks."""

from __future__ import annotations

from typing import Any


def blocks_of(content: object) -> list[dict[str, Any]]:
    """Return content as blocks; a string is one text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []


def text_of(content: object) -> str:
    """Return the words of content."""
    texts = [block.get("text") for block in blocks_of(content) if block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
