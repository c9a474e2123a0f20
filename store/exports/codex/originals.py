"""The lines that Codex itself wrote for a message; they go back to it as they were."""

from __future__ import annotations

from typing import Any

from store.exports.kept_records import KeptRecords

KEPT = ("response_item", "compacted")


def kept_lines(kept: KeptRecords, message_id: str) -> list[dict[str, Any]]:
    """Return the response items and compactions of a message; none where none are kept.

    A copy may have no such line of its own: what it was copied from has.
    """
    for _, rows in kept.each(message_id):
        lines = [row for row in rows if row.get("type") in KEPT]
        if lines:
            return lines
    return []
