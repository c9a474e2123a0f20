"""One line of ``events.jsonl``: ``{type, data, id, timestamp, parentId}``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from store.sources.base.json_lines import Record
from store.sources.base.values import epoch_ms, mapping, string

QUIET_STARTS = (
    "session.",
    "assistant.",
    "hook.",
    "permission.",
    "subagent.",
    "skill.",
    "user_input.",
    "elicitation.",
    "pending_messages.",
    "tool.execution_",
    "external_tool.",
    "mcp.",
    "command.",
    "exit_plan_mode.",
    "model.",
)
"""Beginnings of types that are kept as records only, unless they are handled by name."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    Attributes:
        id: Its own, or one by its place; unique within the session.
        at: Epoch ms; that of the event before where it has none.
        number: Of its record.
        agent: The subagent it is of, None for the session's own.
    """

    id: str
    type: str
    data: dict[str, Any]
    at: int
    number: int
    agent: str | None


class EventReader:
    """Makes events of lines, which may come bit by bit."""

    def __init__(self) -> None:
        """Start before the first line."""
        self._at = 0
        self._seen: set[str] = set()

    def events(self, lines: Iterable[Record]) -> Iterator[Event]:
        """Yield the events of the next lines."""
        for line in lines:
            self._at = epoch_ms(line.data.get("timestamp")) or self._at
            name = string(line.data.get("id"))
            agent = string(line.data.get("agentId"))
            if name is None or name in self._seen:
                name = line.name
            self._seen.add(name)
            kind = string(line.data.get("type")) or "unknown"
            yield Event(name, kind, mapping(line.data.get("data")), self._at, line.number, agent)
