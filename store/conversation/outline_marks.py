"""Metadata key of sessions that are listed before their file was read."""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OUTLINE = "outline"
"""In ``metadata_json.source`` of a session: true until its messages are read."""

NOT_READ = "the session's messages are not read yet. `backscroll sync` reads them"
"""Why such a session is not shown or exported."""


def is_outline(metadata: Mapping[str, Any]) -> bool:
    """Return whether a session is listed and its messages were not read yet."""
    source = metadata.get("source")
    return isinstance(source, dict) and source.get(OUTLINE) is True
