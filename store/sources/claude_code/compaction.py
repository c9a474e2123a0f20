"""Compactions: the boundary row and the summary row become one ``data-compaction`` message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from store.sources.base.drafts import MessageDraft
from store.sources.base.plain_parts import data_part
from store.sources.claude_code.rows import Row, mapping, number, string, text_of


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


def is_boundary(row: Row) -> bool:
    """Return whether a row begins a compaction."""
    return row.type == "system" and row.data.get("subtype") == "compact_boundary"


def segment_ends(row: Row) -> tuple[str | None, str | None]:
    """Return the uuids of the first and the last row that a compaction preserved."""
    metadata = mapping(row.data.get("compactMetadata"))
    segment = mapping(metadata.get("preservedSegment"))
    return string(segment.get("headUuid")), string(segment.get("tailUuid"))


def preserved_uuids(row: Row) -> list[str]:
    """Return the uuids of the rows that a compaction preserved, as its boundary names them."""
    preserved = mapping(mapping(row.data.get("compactMetadata")).get("preservedMessages"))
    uuids = preserved.get("allUuids") or preserved.get("uuids")
    if isinstance(uuids, list):
        return [uuid for uuid in uuids if isinstance(uuid, str)]
    return [uuid for uuid in segment_ends(row) if uuid is not None]


def set_tail(
    message: MessageDraft,
    row: Row,
    owner: Mapping[str, MessageDraft],
    messages: Sequence[MessageDraft],
) -> None:
    """Name the first and the last of the messages that a compaction kept.

    Sets ``tail_start_id``, and ``tail_end_id`` where more is between them and the
    marker, to source ids; sync replaces them by the messages' ids.

    Args:
        message: The compaction's message.
        row: Its boundary row.
        owner: The message that each row's uuid went into.
        messages: All messages in order.
    """
    data = message.parts[0].data["data"]
    kept = [owner[uuid] for uuid in preserved_uuids(row) if uuid in owner]
    logical = owner.get(string(row.data.get("logicalParentUuid")) or "")
    if not kept and data.get("direction") == "up_to" and logical is not None:
        after = messages[_place(messages, logical) + 1 : _place(messages, message)]
        kept = [one for one in after if "hidden_at" not in one.metadata]
    if kept:
        data["tail_start_id"] = kept[0].source_id
        if data.get("direction") == "from":
            data["tail_end_id"] = kept[-1].source_id


def _place(messages: Sequence[MessageDraft], wanted: MessageDraft) -> int:
    """Return where a message is, searched from the end."""
    for place in reversed(range(len(messages))):
        if messages[place] is wanted:
            return place
    return -1
