"""Compactions: the boundary row and the summary row become one ``data-compaction`` message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from store.sources.claude_code.rows import Row, mapping, number, text_of
from store.sources.drafts import MessageDraft
from store.sources.plain_parts import data_part


def compaction_message(row: Row) -> MessageDraft:
    """Begin the message of a compaction at its boundary, or at a summary without one."""
    data: dict[str, Any] = {"summary": "", "tail_start_id": None, "auto": True}
    metadata = mapping(row.data.get("compactMetadata"))
    trigger = metadata.get("trigger")
    if isinstance(trigger, str):
        data["auto"], data["trigger"] = trigger == "auto", trigger
    for name, key in (
        ("pre_tokens", "preTokens"),
        ("post_tokens", "postTokens"),
        ("duration_ms", "durationMs"),
    ):
        if key in metadata:
            data[name] = number(metadata[key])
    part = data_part("compaction", data, row.at, row.number)
    return MessageDraft(row.uuid, "system", row.at, row.at, {"compaction": True}, [part])


def add_summary(message: MessageDraft, row: Row) -> None:
    """Put the summary row into its compaction's message."""
    part = message.parts[0]
    data = part.data["data"]
    data["summary"] = text_of(row.blocks)
    details = mapping(row.data.get("summarizeMetadata"))
    if "direction" in details:
        data["direction"] = details["direction"]
    if "messagesSummarized" in details:
        data["messages_summarized"] = number(details["messagesSummarized"])
    if row.number not in part.records:
        part.records = (*part.records, row.number)
    part.updated_at = message.updated_at = max(row.at, message.updated_at)


def set_tail(message: MessageDraft, row: Row, owner: Mapping[str, MessageDraft]) -> None:
    """Name the first of the messages that a compaction left standing before its summary.

    Sets ``tail_start_id`` to a source id; sync replaces it by the message's id.

    Args:
        message: The compaction's message.
        row: Its boundary row.
        owner: The message that each row's uuid went into.
    """
    metadata = mapping(row.data.get("compactMetadata"))
    segment = mapping(metadata.get("preservedSegment"))
    preserved = mapping(metadata.get("preservedMessages"))
    uuids = preserved.get("allUuids") or preserved.get("uuids")
    if not isinstance(uuids, list):
        uuids = [segment.get("headUuid"), segment.get("tailUuid")]
    kept = [owner[uuid] for uuid in uuids if isinstance(uuid, str) and uuid in owner]
    if kept:
        message.parts[0].data["data"]["tail_start_id"] = kept[0].source_id
