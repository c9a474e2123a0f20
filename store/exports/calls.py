"""Tool calls as the agents' APIs accept them: ids, names, and results made of blocks."""

from __future__ import annotations

import re
from typing import Any, TypeGuard

_NOT_TAKEN = re.compile(r"[^A-Za-z0-9_-]")


class UniqueIds:
    """Makes ids that are unique in a file.

    Attributes:
        taken: Those that are used.
    """

    def __init__(self) -> None:
        """Start without used ids."""
        self.taken: set[str] = set()

    def take(self, wanted: object) -> str:
        """Return the wanted id if it is unused, else a similar one."""
        base = str(wanted or "call")
        made, number = base, 2
        while made in self.taken:
            made, number = f"{base}-{number}", number + 1
        self.taken.add(made)
        return made


class CallIds(UniqueIds):
    """Makes call ids that are unique in a file and have only characters that APIs accept."""

    def take(self, wanted: object) -> str:
        """Return the wanted id if it is valid and unused, else a similar one."""
        return super().take(_NOT_TAKEN.sub("_", str(wanted or ""))[:56])


def taken_name(name: str) -> str:
    """Return a tool's name with the characters and length that APIs accept."""
    return _NOT_TAKEN.sub("_", name)[:128] or "tool"


def is_content(
    output: object, *, also: tuple[str, ...] = ()
) -> TypeGuard[list[dict[str, Any]]]:
    """Return whether a result is a list of text and file blocks, not a list of a tool's own.

    Args:
        output: What the call gave.
        also: Further types of blocks that the agent's API accepts.
    """
    return isinstance(output, list) and bool(output) and all(
        isinstance(item, dict)
        and (
            (item.get("type") == "text" and isinstance(item.get("text"), str))
            or (item.get("type") == "file" and "url" in item)
            or item.get("type") in also
        )
        for item in output
    )
