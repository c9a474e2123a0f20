"""Finds the lines that Codex itself wrote for a message; they are exported unchanged."""

from __future__ import annotations

from typing import Any

from store.exports.kept_records import KeptRecords

KEPT = ("response_item", "compacted")


def kept_lines(kept: KeptRecords, message_id: str) -> list[dict[str, Any]]:
    """Return the kept response items and compactions of a message.

    A copied message without its own lines gets those of its original.
    """
    for _, rows in kept.each(message_id):
        lines = [row for row in rows if row.get("type") in KEPT]
        if lines:
            return lines
    return []
