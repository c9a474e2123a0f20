"""The marks of what a source no longer has and the library keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GONE = "gone"
"""In ``metadata_json.source`` of a message: true where the source no longer has it."""
GONE_PARTS = "gone_parts"
"""There: the indexes of the parts that the source no longer has, or has less of; empty where
only the message's own facts, such as its counts, are gone."""
PARTIAL = "partial"
"""In ``metadata_json.source`` of a session: true where only something beside its own files,
such as an index, was ever read."""
GONE_MESSAGES = "gone_messages"
"""There: how many messages have either mark of the first two."""

NO_LONGER = "no longer in the source's file"
"""What people read of it."""


def is_gone(metadata: Mapping[str, Any], part_index: int | None = None) -> bool:
    """Say whether a source no longer has a message, or one of its parts as it is here.

    Args:
        metadata: The message's, decoded.
        part_index: Of the part; None asks for the message as a whole.
    """
    source = metadata.get("source")
    if not isinstance(source, dict):
        return False
    parts = source.get(GONE_PARTS)
    return source.get(GONE) is True or (isinstance(parts, list) and part_index in parts)


def gone_messages(metadata: Mapping[str, Any]) -> int:
    """Return how many messages of a session its source no longer has, or has less of."""
    source = metadata.get("source")
    count = source.get(GONE_MESSAGES) if isinstance(source, dict) else None
    return count if isinstance(count, int) else 0
