"""Metadata keys of sessions read from a second file with another session's id."""

from __future__ import annotations

from typing import Any

COPY_OF = "copy_of"
"""In ``metadata_json.source`` of a session: the session whose source id its file also has."""

BRANCH = "copy_branch"
"""In ``metadata_json.source`` of such a session: what names it among the copies."""

_FOUND_AT = "found_at"
"""The same of older stores, where the copy's first path was its name."""


def naming(metadata: dict[str, Any]) -> str:
    """Return the text from which a session's row ids are derived.

    Args:
        metadata: The session's decoded ``metadata_json``.
    """
    source = metadata["source"]
    if COPY_OF not in source:
        return str(source["id"])
    return branch_naming(source["id"], branch_of(source))


def branch_of(source: dict[str, Any]) -> str:
    """Return what names a copy, from its ``metadata_json.source``."""
    return str(source.get(BRANCH) or source.get(_FOUND_AT) or source["path"])


def branch_naming(source_id: str, branch: str) -> str:
    """Return the text from which a copy's row ids are derived.

    Args:
        source_id: The id that its file has in common with another.
        branch: What names the copy.
    """
    return f"{source_id}\0{branch}"
