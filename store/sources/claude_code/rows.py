"""Rows of a session file: objects that have a ``uuid`` and are in the tree.

Source of the shapes: the Claude Code format page, sections 3 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from store.sources.base.values import NO_OBJECT, epoch_ms, mapping, number, string

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
        parent: ``parentUuid``; None at a root. A row without that key is attached to the row
            before it in the file.
        message_id: The API message's id, or the row's own where it has none.
        at: Its time, epoch ms; the previous row's where it has none.
        data: The whole object.
        message: ``data["message"]``, an object in any case.
        blocks: The content blocks; a text counts as one text block.
        beside: Made of notes: it belongs where it is in the file and has no place in the tree.
        records: Further records that it was made of.
        stands_for: The uuid of an earlier row that was made of notes and says the same.
        defines: The ids that it defines, once they were asked for (``references.defined_by``).
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
    beside: bool = False
    records: tuple[int, ...] = ()
    stands_for: str | None = None
    defines: list[str] | None = None

    @property
    def has_result(self) -> bool:
        """Whether it holds tool results."""
        blocks = self.blocks
        if len(blocks) == 1:
            return blocks[0].get("type") == "tool_result"
        return "tool_result" in [block.get("type") for block in blocks]


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


def make_row(number: int, data: dict[str, Any], previous: Row | None) -> Row | None:
    """Return the row that an object is, or None when it is a note.

    A message without a uuid gets one that follows from its place in the file.

    Args:
        number: The record's number.
        data: The parsed line.
        previous: The row before it, for the time and the parent of one that has none.
    """
    get = data.get
    uuid, kind, parent, message = get("uuid"), get("type"), get("parentUuid"), get("message")
    if not isinstance(kind, str):
        return None
    if not isinstance(uuid, str) or not uuid:
        said = kind in ("user", "assistant") and message is not None
        if not said and not (kind == "system" and "subtype" in data):
            return None
        uuid = f"row-{number}"
    if parent is None and kind not in ROW_TYPES and "parentUuid" not in data:
        return None
    if not isinstance(message, dict):
        message = {"content": message} if isinstance(message, (str, list)) else NO_OBJECT
    at = epoch_ms(get("timestamp"))
    if at is None:
        at = 0 if previous is None else previous.at
    message_id = message.get("id")
    row = Row(
        number,
        uuid,
        parent if isinstance(parent, str) and parent else None,
        kind,
        at,
        data,
        message,
        message_id if isinstance(message_id, str) and message_id else uuid,
        content_blocks(message.get("content")),
    )
    if row.parent is None and previous is not None and _follows(row):
        row.parent = previous.uuid
    return row


def _follows(row: Row) -> bool:
    """Return whether a row without a parent continues the row before it.

    Only prompts and what the program puts in begin a tree: an answer and a result never do.
    """
    return "parentUuid" not in row.data or row.type == "assistant" or row.has_result


def text_of(blocks: list[dict[str, Any]]) -> str:
    """Return the text blocks' texts, joined by newlines."""
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
