"""A session as any of opencode's stores keeps it, before it is mapped.

The database, the JSON store and an exported file hold the same objects: session info,
messages with their info, parts. What differs is how they are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from store.sources.protocol import Problem

_Item = TypeVar("_Item")
_ID = re.compile(r"[a-z]+_([0-9a-f]{12})")
_HALF = 1 << 47
_WHOLE = 1 << 48


@dataclass(slots=True)
class StoredPart:
    """One part.

    Attributes:
        data: ``part.data``: ``type`` and what belongs to it.
        created_at: Epoch ms; of an imported row the time of its import.
        record: Number of its original record.
    """

    id: str
    data: dict[str, Any]
    created_at: int
    updated_at: int
    record: int


@dataclass(slots=True)
class StoredMessage:
    """One message; ``data`` is ``message.data``: ``role``, ``time`` and the rest."""

    id: str
    data: dict[str, Any]
    created_at: int
    updated_at: int
    records: tuple[int, ...] = ()
    parts: list[StoredPart] = field(default_factory=list)


@dataclass(slots=True)
class StoredSession:
    """One session.

    Attributes:
        info: As ``opencode export`` prints it: ``id``, ``title``, ``directory``,
            ``time{created, updated, archived?}``, ``parentID?``, ``revert?``, ``agent?``,
            ``model{id, providerID, variant?}?``, ``version``, ``slug``, ...
        path: The file that it was read from.
        engine: 2 where the messages come from ``session_message``.
        records: The original records in order.
        side_folder: Where whole outputs of tools lie, where the store has them.
    """

    id: str
    info: dict[str, Any]
    path: str
    messages: list[StoredMessage] = field(default_factory=list)
    todos: list[dict[str, Any]] = field(default_factory=list)
    engine: int = 1
    records: list[bytes] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    side_folder: str | None = None

    def keep(self, value: Any) -> int:
        """Keep an original record; return its number."""
        self.records.append(record_bytes(value))
        return len(self.records) - 1

    def complain(self, reason: str) -> None:
        """Note what is damaged in the session."""
        self.problems.append(Problem(self.path, 0, f"session {self.id}: {reason}"))


def record_bytes(value: Any) -> bytes:
    """Return a value as one line of JSON."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        # Lone surrogates, which SQLite text and JSON escapes can hold.
        import json

        return json.dumps(value).encode()


def in_order(
    items: Iterable[_Item], name: Callable[[_Item], str], at: Callable[[_Item], int]
) -> list[_Item]:
    """Return items by time, those of one time by id, also where the ids wrapped between.

    An id's stamp is ``ms * 4096 + counter`` cut to 48 bits, so ids after a wrap sort before
    those of a moment ago (the common model page, finding 1): within a group of one time
    they are put by their distance from one another.
    """
    found = sorted(items, key=lambda item: (at(item), name(item)))
    result: list[_Item] = []
    start = 0
    for end in range(1, len(found) + 1):
        if end == len(found) or at(found[end]) != at(found[start]):
            result += _unwrapped(found[start:end], name)
            start = end
    return result


def _unwrapped(group: list[_Item], name: Callable[[_Item], str]) -> list[_Item]:
    if len(group) < 2:
        return group
    stamps = [found[1] if (found := _ID.match(name(item))) else None for item in group]
    if None in stamps:
        return group
    first = int(stamps[0] or "0", 16)

    def place(position: int) -> tuple[int, str]:
        distance = (int(stamps[position] or "0", 16) - first + _HALF) % _WHOLE
        return distance, name(group[position])

    return [group[position] for position in sorted(range(len(group)), key=place)]
