"""The records of a session as the tree they are.

Source: the Qwen Code format page, section 2: the leaf is the last record of the conversation,
and a rewind continues from the record before the prompt that it goes back to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.branches import active_path, left_branches
from store.sources.base.json_lines import Record
from store.sources.base.values import epoch_ms, mapping, string

_BESIDE = ("session_artifact_", "session_sources_snapshot", "managed_session_")
"""Beginnings of subtypes that are no part of the conversation."""


@dataclass(slots=True)
class Entry:
    """One record.

    Attributes:
        id: Its ``uuid``, or one by its place; two records have the same where both are pieces of
            one message.
        parent: The id of the record before it; None for a first one.
        type: ``user``, ``assistant``, ``tool_result`` or ``system``.
        subtype: Empty where there is none.
        at: Epoch ms.
        number: Of its record.
    """

    id: str
    parent: str | None
    type: str
    subtype: str
    at: int
    number: int
    data: dict[str, Any]

    @property
    def payload(self) -> dict[str, Any]:
        """What a ``system`` record, or an injected one, says beside its message."""
        return mapping(self.data.get("systemPayload"))

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The parts of its message."""
        parts = mapping(self.data.get("message")).get("parts")
        return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []

    @property
    def exported(self) -> dict[str, Any]:
        """What our export says of the message that it is a copy of; empty for others."""
        return mapping(self.data.get("backscroll"))

    @property
    def event(self) -> dict[str, Any]:
        """The event of a telemetry record; empty for others."""
        return mapping(self.payload.get("uiEvent")) if self.subtype == "ui_telemetry" else {}

    @property
    def event_name(self) -> str:
        """The last word of the event's name; empty for other records."""
        return str(self.event.get("event.name") or "").rpartition(".")[2]


@dataclass(slots=True)
class Tree:
    """A session's records.

    Attributes:
        entries: In file order.
        left: By id of those that are not on the active path, when their branch was left.
        broken: The parent that the path's first record names and that is not there.
        lines: How many records were taken.
    """

    entries: list[Entry] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)
    broken: str | None = None
    lines: int = 0
    _known: dict[str, Entry] = field(default_factory=dict)
    _chain: list[Entry] = field(default_factory=list)
    _at: int = 0
    _next: int = 0
    _damaged: bool = False

    def grow(self, lines: list[Record]) -> None:
        """Take what a file's lines are more than before; find the active path anew."""
        for line in lines[self.lines :]:
            self._take(line)
        self.lines = len(lines)
        leaf = self._chain[-1] if self._chain else None
        path, self.broken = active_path(leaf, self._known)
        self.left = left_branches(self._chain, path, self._known)

    def _take(self, line: Record) -> None:
        data, name = line.data, string(line.data.get("uuid"))
        self._damaged = self._damaged or line.number != self._next or name is None
        self._next = line.number + 1
        self._at = epoch_ms(data.get("timestamp")) or self._at
        before = self._chain[-1].id if self._chain else None
        parent = string(data.get("parentUuid")) if "parentUuid" in data or name else before
        if parent is not None and parent not in self._known and self._damaged:
            # Its line is damaged or has no id; in a whole file such a gap is the program's own.
            parent = before
        kind, subtype = (string(data.get(key)) or "" for key in ("type", "subtype"))
        first = self._known.get(name or "")
        if first is not None:
            parent = first.parent
        entry = Entry(name or line.name, parent, kind, subtype, self._at, line.number, data)
        self.entries.append(entry)
        self._known.setdefault(entry.id, entry)
        if not subtype.startswith(_BESIDE):
            self._chain.append(entry)
