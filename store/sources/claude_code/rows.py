"""Rows of a session file: objects that have a ``uuid`` and stand in the tree.

Source of the shapes: the Claude Code format page, sections 3 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from store.sources.values import NO_OBJECT, epoch_ms, mapping, number, string

__all__ = [
    "NO_OBJECT", "Row", "content_blocks", "epoch_ms", "make_row", "mapping", "number", "string",
    "text_of",
]  # fmt: skip
ROW_TYPES = ("user", "assistant", "system", "attachment", "progress")


@dataclass(slots=True)
class Row:
    """One row.

    Attributes:
        number: Its place among the file's records, from 0.
        parent: ``parentUuid``; None at a root.
        message_id: The API message's id, or the row's own where it has none.
        at: Its time, epoch ms; the previous row's where it has none.
        data: The whole object.
        message: ``data["message"]``, an object in any case.
        blocks: The content blocks; a text stands as one text block.
    """

    number: int
    uuid: str
    parent: str | None
    type: str
    at: int
    data: dict[str, Any]
    message: dict[str, Any]
    message_id: str
    blocks: list[dict[str, Any]]



def content_blocks(content: object) -> list[dict[str, Any]]:
    """Return message content as blocks: a string is one text block, odd things are left out."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    for block in content:
        if not isinstance(block, dict):
            break
    else:
        return content
    return [
        block if isinstance(block, dict) else {"type": "text", "text": str(block)}
        for block in content
    ]


def make_row(number: int, data: dict[str, Any], previous_at: int) -> Row | None:
    """Return the row that an object is, or None when it is a note.

    Args:
        number: The record's number.
        data: The parsed line.
        previous_at: The time for a row that has none.
    """
    get = data.get
    uuid, kind, parent, message = get("uuid"), get("type"), get("parentUuid"), get("message")
    if not isinstance(uuid, str) or not uuid or not isinstance(kind, str):
        return None
    if parent is None and kind not in ROW_TYPES and "parentUuid" not in data:
        return None
    if not isinstance(message, dict):
        message = {"content": message} if isinstance(message, (str, list)) else NO_OBJECT
    at = epoch_ms(get("timestamp"))
    message_id = message.get("id")
    return Row(
        number,
        uuid,
        parent if isinstance(parent, str) and parent else None,
        kind,
        previous_at if at is None else at,
        data,
        message,
        message_id if isinstance(message_id, str) and message_id else uuid,
        content_blocks(message.get("content")),
    )


def text_of(blocks: list[dict[str, Any]]) -> str:
    """Return the text blocks' texts, joined by newlines."""
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
