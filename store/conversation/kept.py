"""The messages that a compaction kept, as its part names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ONE = ("tail_start_id", "tail_end_id")
_ALL = "kept_ids"
"""Names all that were kept, in the order of the next request, where a run does not tell them."""


def kept_names(part: dict[str, Any]) -> list[str]:
    """Return the messages that a compaction part names, each once."""
    data = part.get("data")
    if not isinstance(data, dict):
        return []
    listed = data.get(_ALL)
    names = [data.get(key) for key in _ONE] + (listed if isinstance(listed, list) else [])
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def rename_kept(part: dict[str, Any], name: Callable[[str], str | None]) -> bool:
    """Rename the messages that a compaction part names; return whether that changed it.

    Args:
        part: The part; it is changed.
        name: Returns a message's new name; None for one that is not there.
    """
    named = {one: name(one) for one in kept_names(part)}
    if all(old == new for old, new in named.items()):
        return False
    data = part["data"]
    data |= {key: named[data[key]] for key in _ONE if isinstance(data.get(key), str)}
    if isinstance(data.get(_ALL), list):
        found = (named.get(one) for one in data[_ALL] if isinstance(one, str))
        data[_ALL] = [one for one in found if one is not None]
    return True
