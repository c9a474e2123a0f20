"""How a session is marked that was read from a second file with the id of another."""

from __future__ import annotations

from typing import Any

COPY_OF = "copy_of"
"""In ``metadata_json.source`` of a session: the session whose id its file claims too."""


def naming(metadata: dict[str, Any]) -> str:
    """Return what the ids of a session's rows follow from, of its decoded ``metadata_json``."""
    source = metadata["source"]
    return f"{source['id']}\0{source['path']}" if COPY_OF in source else str(source["id"])
