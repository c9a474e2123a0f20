"""Prompts that wait for their turn: rows of ``queue_<n>.sqlite``, until they are sent.

Source: a queue that version 0.171.0 wrote. ``payload_json`` is
``{"UserInput": {"content": [{"type": "text", "text"} | {"type": "image", "url"} | ...]}}``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from store.sources.base.databases import columns, decoded, record_bytes, rows
from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.plain_parts import data_part, text_part
from store.sources.base.values import mapping, number, string

_TABLE = "queued_items"


@dataclass(frozen=True, slots=True)
class Queued:
    """One prompt that waits.

    Attributes:
        at: When it was put there, epoch ms.
        row: Its row as JSON.
    """

    id: str
    at: int
    row: bytes


def read_queue(connection: sqlite3.Connection) -> dict[str, tuple[Queued, ...]]:
    """Return what waits, by thread, in its order."""
    if not columns(connection, _TABLE) >= {"id", "thread_id", "payload_json", "queue_order"}:
        return {}
    found: dict[str, tuple[Queued, ...]] = {}
    for row in rows(connection, f"SELECT * FROM {_TABLE} ORDER BY thread_id, queue_order"):
        thread = str(row["thread_id"]).lower()
        made = {**row, "payload_json": decoded(row["payload_json"])}
        queued = Queued(str(row["id"]), number(row.get("created_at_ms")), record_bytes(made))
        found[thread] = (*found.get(thread, ()), queued)
    return found


def queued_messages(waiting: Sequence[Queued], first_record: int) -> list[MessageDraft]:
    """Return prompts that wait as messages.

    Args:
        waiting: In their order.
        first_record: The number of the first one's row among the session's records.
    """
    messages = []
    for place, one in enumerate(waiting):
        record = (first_record + place,)
        metadata: dict[str, Any] = {"origin": "human", "queued_at": one.at}
        message = MessageDraft(one.id, "user", one.at, one.at, metadata)
        payload = mapping(mapping(decoded(one.row)).get("payload_json"))
        content = mapping(payload.get("UserInput")).get("content")
        for item in content if isinstance(content, list) else [payload]:
            message.parts.append(_part(mapping(item), one.at, record))
        messages.append(message)
    return messages


def _part(item: dict[str, Any], at: int, record: tuple[int, ...]) -> PartDraft:
    text, url = item.get("text"), string(item.get("url"))
    if item.get("type") == "text" and isinstance(text, str):
        return text_part(text, at, *record)
    if item.get("type") == "image" and url:
        media = url[5:].partition(";")[0] if url.startswith("data:") else "image/png"
        file = {"type": "file", "mediaType": media, "url": url}
        return PartDraft("file", file, at, at, records=record)
    return data_part("event", {"name": str(item.get("type")), "details": item}, at, *record)
