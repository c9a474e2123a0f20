"""One message of a session, made of all its lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Key = tuple[str, str]


@dataclass(slots=True)
class Entry:
    """One message of a session, made of all its lines.

    Attributes:
        kind: ``context``, ``user``, ``tool-response``, ``gemini``, or the record's own type.
        data: The richest record there is.
        at: Its first time, epoch ms.
        updated: Its last time.
        records: The lines that made it what it is.
        left: When a rewind or another history dropped it, else None.
        tail: For a summary of ``/compress``: the first entry that it kept.
        covers: For a summary of ``/compress``: the entries that it stands for.
        place: Among the session's entries.
    """

    id: str
    kind: str
    data: dict[str, Any]
    at: int
    updated: int
    records: tuple[int, ...]
    left: int | None = None
    tail: Key | None = None
    compacts: bool = False
    covers: tuple[Key, ...] = ()
    place: int = 0

    @property
    def key(self) -> Key:
        """Return what tells it from the other entry that may have its id."""
        return self.id, self.kind
