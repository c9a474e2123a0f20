"""How a session is marked that was read from a second file with the id of another."""

from __future__ import annotations

from typing import Any

COPY_OF = "copy_of"
"""In ``metadata_json.source`` of a session: the session whose id its file claims too."""

FOUND_AT = "found_at"
"""In ``metadata_json.source`` of such a session: where its file was first, if it has moved."""


def naming(metadata: dict[str, Any]) -> str:
    """Return what the ids of a session's rows follow from, of its decoded ``metadata_json``."""
    source = metadata["source"]
    if COPY_OF not in source:
        return str(source["id"])
    return f"{source['id']}\0{source.get(FOUND_AT) or source['path']}"
