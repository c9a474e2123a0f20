"""Compactions: the boundary row and the summary row become one ``data-compaction`` message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    segment = _metadata(row, "preservedSegment")
    return string(segment.get("headUuid")), string(segment.get("tailUuid"))


def anchor_of(row: Row) -> str | None:
    """Return the uuid of the row that what a compaction preserved is attached to."""
    said = (_metadata(row, key).get("anchorUuid") for key in _PRESERVED)
    return next(filter(None, map(string, said)), None)


def names_all(row: Row) -> bool:
    """Return whether a boundary names all rows that its compaction preserved."""
    return bool(_listed(row))


def preserved_uuids(row: Row) -> list[str]:
    """Return the uuids of the rows that a compaction preserved, as its boundary names them."""
    return _listed(row) or [uuid for uuid in segment_ends(row) if uuid is not None]


_PRESERVED = ("preservedSegment", "preservedMessages")


def _listed(row: Row) -> list[str]:
    preserved = _metadata(row, "preservedMessages")
    uuids = preserved.get("allUuids") or preserved.get("uuids")
    return [uuid for uuid in uuids if isinstance(uuid, str)] if isinstance(uuids, list) else []


def _metadata(row: Row, key: str) -> dict[str, Any]:
    return mapping(mapping(row.data.get("compactMetadata")).get(key))


def set_tail(
    message: MessageDraft,
    kept: Iterable[str],
    owner: Mapping[str, MessageDraft],
    messages: Sequence[MessageDraft],
) -> None:
    """Name the messages that a compaction kept.

    Sets ``tail_start_id`` to the first of them, and ``kept_ids`` to all where these are not
    just what came between it and the marker. They are source ids, which sync replaces by the
    messages' ids.

    Args:
        message: The compaction's message.
        kept: The uuids of the rows that it kept, in the order of the next request.
        owner: The message that each row's uuid went into.
        messages: All messages in order.
    """
    data = message.parts[0].data["data"]
    found = [owner[uuid] for uuid in kept if uuid in owner]
    names = list(dict.fromkeys(each.source_id for each in found if each is not message))
    data.pop("kept_ids", None)
    if names:
        data["tail_start_id"] = names[0]
        if not set(_between(names[0], message, messages)) <= set(names):
            data["kept_ids"] = names


def _between(
    first: str, marker: MessageDraft, messages: Sequence[MessageDraft]
) -> Iterator[str]:
    """Yield the messages from one on to a compaction's that are shown, the last one first."""
    before = reversed(messages)
    for each in before:
        if each is marker:
            break
    for each in before:
        if "hidden_at" not in each.metadata:
            yield each.source_id
        if each.source_id == first:
            return
