"""Metadata keys of sessions read from a second file with another session's id."""

from __future__ import annotations

from typing import Any

COPY_OF = "copy_of"
"""In ``metadata_json.source`` of a session: the session whose source id its file also has."""

FOUND_AT = "found_at"
"""In ``metadata_json.source`` of such a session: its file's first path, if it has moved."""


def naming(metadata: dict[str, Any]) -> str:
    """Return the text from which a session's row ids are derived.

    Args:
        metadata: The session's decoded ``metadata_json``.
    """
    source = metadata["source"]
    if COPY_OF not in source:
        return str(source["id"])
    return f"{source['id']}\0{source.get(FOUND_AT) or source['path']}"
