"""Tool calls of a thread, and what belongs to them: outputs, and items that tell more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.codex.lineage import Entry
from store.sources.codex.tools import enrich, is_open, settle

Records = tuple[int, ...]
_OF_CALLS = ("CommandExecution", "FileChange", "McpToolCall", "CollabAgentToolCall")


@dataclass(slots=True)
class Calls:
    """Finds calls by id.

    Attributes:
        parts: The newest call of each id: ids may come again, as those of small models do.
        owners: The messages that they are in.
    """

    parts: dict[str, PartDraft] = field(default_factory=dict)
    owners: dict[str, MessageDraft] = field(default_factory=dict)
    _early: dict[str, list[tuple[Entry, Records, dict[str, Any] | None]]] = field(
        default_factory=dict
    )

    def repeats(self, part: PartDraft) -> bool:
        """Return whether a call is there already; its record is then added to that one.

        One of the same id that was given something else is another call.
        """
        known = self.parts.get(part.tool_call_id or "")
        if known is None or not is_open(known):
            return False
        if known.type != part.type or known.data.get("input") != part.data.get("input"):
            return False
        known.records = (*known.records, *part.records)
        return True

    def add(self, part: PartDraft, owner: MessageDraft) -> None:
        """Add a call, and what came before it."""
        call_id = part.tool_call_id or ""
        owner.parts.append(part)
        self.parts[call_id], self.owners[call_id] = part, owner
        for entry, records, item in self._early.pop(call_id, ()):
            if item is None:
                self.settle(call_id, entry, records)
            else:
                self.tell(call_id, entry, records, item)

    def settle(self, call_id: str, entry: Entry, records: Records) -> MessageDraft | None:
        """Put an output to its call; return the message of the call, where it is there.

        Args:
            call_id: The call's id; of an output without one, the oldest open call is its call.
            entry: The line of the output.
            records: Numbers of its records.
        """
        if not call_id:
            call_id = next((own for own, part in self.parts.items() if is_open(part)), "")
        part = self.parts.get(call_id)
        if part is None:
            self._early.setdefault(call_id, []).append((entry, records, None))
            return None
        settle(part, entry.line)
        part.records = (*part.records, *records)
        owner = self.owners[call_id]
        owner.updated_at = max(owner.updated_at, part.updated_at)
        return owner

    def tell(self, call_id: str, entry: Entry, records: Records, item: dict[str, Any]) -> bool:
        """Use what an item says about a call; return whether it is about one.

        Args:
            call_id: The call's id.
            entry: The line of the item.
            records: Numbers of its records.
            item: The item.
        """
        part = self.parts.get(call_id)
        if part is None:
            if item.get("type") in _OF_CALLS:
                self._early.setdefault(call_id, []).append((entry, records, item))
                return True
            return False
        enrich(part, item)
        part.records = (*part.records, *records)
        return True

    def left(self) -> Iterator[tuple[Entry, Records, dict[str, Any] | None]]:
        """Yield what is without its call, with the item where it is no output."""
        for found in self._early.values():
            yield from found
