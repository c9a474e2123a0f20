"""Converts a session's messages to the user and assistant messages sent to the API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from store.exports.calls import CallIds
from store.exports.claude_code.blocks import (
    Block,
    call_block,
    plain_block,
    result_block,
)
from store.exports.claude_code.originals import content_blocks, results
from store.exports.kept_records import KeptRecords
from store.exports.reading import MessageReading, Row
from store.exports.steps import is_aside, is_tool

NOTIFICATION = "task-notification"
SUMMARY = "The conversation so far was compacted. This is the summary of it:\n\n"


@dataclass(slots=True)
class Turn:
    """One message for the API.

    Attributes:
        content: Its blocks; never empty.
        prompt: Whether it is a person's own prompt.
        source: The message's row; None for a line of tool results.
        original: Its original record, if one is kept; else the marks by which Claude Code
            recognizes a summary and text that is not from the user.
    """

    role: Literal["user", "assistant"]
    content: list[Block]
    at: int
    prompt: bool = False
    source: Row | None = None
    original: dict[str, Any] = field(default_factory=dict)


def turns(messages: Iterable[MessageReading], kept: KeptRecords) -> Iterator[Turn]:
    """Yield the messages to and from the model in order, each call followed by its result."""
    ids = CallIds()
    for item in messages:
        rows = kept.of(item.message["id"]).rows
        if any(part["type"] == "data-compaction" for part in item.parts):
            yield from _summary(item, rows)
        elif item.message["role"] == "user":
            yield from _user(item, rows)
        elif item.message["role"] == "assistant" and rows:
            yield from _verbatim(item, rows, ids)
        elif item.message["role"] == "assistant":
            yield from _assistant(item, ids)


def _data(item: MessageReading) -> list[dict[str, Any]]:
    return [part["data"] for part in item.parts if isinstance(part["data"], dict)]


def _metadata(row: Row) -> dict[str, Any]:
    return row["metadata"] if isinstance(row["metadata"], dict) else {}


def _summary(item: MessageReading, rows: list[dict[str, Any]]) -> Iterator[Turn]:
    for row in rows:
        if row.get("isCompactSummary"):
            yield Turn("user", list(content_blocks(row)), item.message["created_at"],
                       source=item.message, original=row)  # fmt: skip
            return
    for data in _data(item):
        bag = data.get("data")
        if data.get("type") == "data-compaction" and isinstance(bag, dict) and bag.get("summary"):
            content = [{"type": "text", "text": SUMMARY + str(bag["summary"])}]
            yield Turn("user", content, item.message["created_at"], source=item.message,
                       original={"isCompactSummary": True})  # fmt: skip


def _user(item: MessageReading, rows: list[dict[str, Any]]) -> Iterator[Turn]:
    blocks = [
        block for row in rows for block in content_blocks(row) if block["type"] != "tool_result"
    ] or [block for data in _data(item) if (block := plain_block(data))]
    blocks = [block for block in blocks if block != {"type": "text", "text": ""}]
    if blocks:
        metadata = _metadata(item.message)
        human = metadata.get("origin", "human") == "human"
        yield Turn("user", blocks, item.message["created_at"], human, item.message,
                   _marked(rows, metadata))  # fmt: skip


def _marked(rows: list[dict[str, Any]], metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a user row with the marks by which Claude Code recognizes its origin.

    Claude Code only treats a notification as such if its row is marked. A queued one has the
    mark in its attachment; one of an older version or another agent has none.
    """
    row = dict(rows[0]) if rows else {}
    queued = row.get("attachment")
    origin = row.pop("origin", None) or (
        queued.get("origin") if isinstance(queued, dict) else None
    )
    if isinstance(origin, dict) and origin.get("kind") != "human":
        row["origin"] = origin
    elif metadata.get("origin") == "notification":
        row["origin"] = {"kind": NOTIFICATION}
    elif not rows and is_aside(metadata, "user"):
        row["isMeta"] = True
    return row


def _verbatim(item: MessageReading, rows: list[dict[str, Any]], ids: CallIds) -> Iterator[Turn]:
    """Yield an answer that Claude Code wrote, with its original blocks."""
    assistant = [row for row in rows if row.get("type") == "assistant"]
    if not assistant or any(row.get("isApiErrorMessage") for row in assistant):
        return
    content = [block for row in assistant for block in content_blocks(row)]
    content = [b for b in content if b.get("type") != "thinking" or b.get("signature")]
    if not content:
        return
    yield Turn("assistant", content, item.message["created_at"], source=item.message,
               original=assistant[0])  # fmt: skip
    answered = results(rows)
    parts = {data.get("toolCallId"): data for data in _data(item) if is_tool(data)}
    answers = []
    for block in content:
        if block.get("type") == "tool_use":
            call_id = str(block.get("id"))
            ids.take(call_id)
            kept = answered.get(str(block.get("id")))
            part = parts.get(block.get("id"), {})
            answers.append(kept if kept is not None else result_block(part, call_id))
    if answers:
        yield Turn("user", answers, item.message["updated_at"])


def _assistant(item: MessageReading, ids: CallIds) -> Iterator[Turn]:
    """Yield an answer of any agent; a new step starts when text follows a call."""
    content: list[Block] = []
    answers: list[Block] = []
    for data in _data(item):
        if is_tool(data):
            call_id = ids.take(data.get("toolCallId"))
            content.append(call_block(data, call_id))
            answers.append(result_block(data, call_id))
            continue
        block = plain_block(data) if data.get("type") != "file" else None
        if answers and (block is not None or data.get("type") == "step-start"):
            yield from _step(item, content, answers)
            content, answers = [], []
        if block is not None:
            content.append(block)
    yield from _step(item, content, answers)


def _step(item: MessageReading, content: list[Block], answers: list[Block]) -> Iterator[Turn]:
    said = [block for block in content if block["type"] not in ("thinking", "redacted_thinking")]
    if said:
        yield Turn("assistant", content, item.message["created_at"], source=item.message)
    if answers:
        yield Turn("user", answers, item.message["updated_at"])
