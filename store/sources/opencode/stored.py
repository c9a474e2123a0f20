"""A session as any of opencode's stores keeps it, before it is mapped.

The database, the JSON store and an exported file hold the same objects: session info,
messages with their info, parts. What differs is how they are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.databases import record_bytes
from store.sources.base.documents import parse_document
from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.ordering import in_order as in_order
from store.sources.base.protocol import Problem


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
        side_folder: Where whole outputs of tools are, where the store has them.
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


def parsed(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return parse_document(text)[0] if isinstance(text, bytes) else parse_value(text)
    except LineError as error:
        raise ValueError(str(error)) from error
