"""Metadata keys of messages and parts that the library keeps and the source no longer has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GONE = "gone"
"""In ``metadata_json.source`` of a message: true if the source no longer has it."""
GONE_PARTS = "gone_parts"
"""In the same place: indexes of parts that the source no longer has, or has less of; empty
if only facts of the message itself, such as its token counts, are gone."""
PARTIAL = "partial"
"""In ``metadata_json.source`` of a session: true if it was read only from another file, such
as an index, and never from its own."""
GONE_MESSAGES = "gone_messages"
"""In the same place: number of messages that have one of the first two marks."""

NO_LONGER = "no longer in the source's file"
"""The text shown to users."""


def is_gone(metadata: Mapping[str, Any], part_index: int | None = None) -> bool:
    """Return whether a source no longer has a message, or one of its parts in full.

    Args:
        metadata: The message's decoded metadata.
        part_index: Index of the part; None for the whole message.
    """
    source = metadata.get("source")
    if not isinstance(source, dict):
        return False
    parts = source.get(GONE_PARTS)
    return source.get(GONE) is True or (isinstance(parts, list) and part_index in parts)


def gone_messages(metadata: Mapping[str, Any]) -> int:
    """Return how many of a session's messages its source no longer has in full."""
    source = metadata.get("source")
    count = source.get(GONE_MESSAGES) if isinstance(source, dict) else None
    return count if isinstance(count, int) else 0
