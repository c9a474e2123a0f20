"""Tool call ids and names in the form that the agents' APIs accept."""

from __future__ import annotations

import re

_NOT_TAKEN = re.compile(r"[^A-Za-z0-9_-]")


class CallIds:
    """Makes call ids that are unique in a file and have only characters that APIs accept."""

    def __init__(self) -> None:
        """Start without used ids."""
        self._taken: set[str] = set()

    def take(self, wanted: object) -> str:
        """Return the wanted id if it is valid and unused, else a similar one."""
        base = _NOT_TAKEN.sub("_", str(wanted or ""))[:56] or "call"
        call_id, number = base, 2
        while call_id in self._taken:
            call_id, number = f"{base}-{number}", number + 1
        self._taken.add(call_id)
        return call_id


def taken_name(name: str) -> str:
    """Return a tool's name with the characters and length that APIs accept."""
    return _NOT_TAKEN.sub("_", name)[:128] or "tool"
