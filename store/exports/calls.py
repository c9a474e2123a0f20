"""Ids and names of calls as the APIs of agents take them."""

from __future__ import annotations

import re

_NOT_TAKEN = re.compile(r"[^A-Za-z0-9_-]")


class CallIds:
    """Gives each call of a file its own id of the characters that an API takes."""

    def __init__(self) -> None:
        """Start without any id given."""
        self._taken: set[str] = set()

    def take(self, wanted: object) -> str:
        """Return the wanted id where it can be used, else one like it."""
        base = _NOT_TAKEN.sub("_", str(wanted or ""))[:56] or "call"
        call_id, number = base, 2
        while call_id in self._taken:
            call_id, number = f"{base}-{number}", number + 1
        self._taken.add(call_id)
        return call_id


def taken_name(name: str) -> str:
    """Return a tool's name in the characters and length that an API takes."""
    return _NOT_TAKEN.sub("_", name)[:128] or "tool"
