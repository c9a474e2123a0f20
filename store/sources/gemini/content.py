"""What a record's content holds: words, parts, and by them what kind of record it is.

Source: the Gemini CLI format page, section 4.2.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.values import mapping, string

CONTEXT = "<session_context>"
SNAPSHOT = "<state_snapshot>"
"""Begins what ``/compress`` leaves of the turns before."""


def text_of(content: object) -> str:
    """Return the words of a message's content: a string, a part, or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else mapping(part).get("text") for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def parts_of(content: object) -> list[dict[str, Any]]:
    """Return content as parts."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    parts = content if isinstance(content, list) else [content]
    return [{"text": part} if isinstance(part, str) else part for part in parts
            if isinstance(part, str | dict)]  # fmt: skip


def kind_of(data: dict[str, Any]) -> str:
    """Return what a record is; a user record may hold words, context or tool results."""
    kind = string(data.get("type")) or "unknown"
    if kind != "user":
        return kind
    content = data.get("content")
    if any("functionResponse" in part for part in parts_of(content)):
        return "tool-response"
    return "context" if text_of(content).lstrip().startswith(CONTEXT) else "user"
