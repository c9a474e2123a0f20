"""Words that events told and that no response item has repeated yet.

Versions up to 0.5x write a response's items only after its tools have run, its words at
once as events; a run that was killed meanwhile, or a stream that broke, leaves the words
alone. Source: rollouts of versions 0.36.0 to 0.98.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.plain_parts import text_part
from store.sources.base.values import mapping, string
from store.sources.codex.items import message_text, reasoning_part
from store.sources.codex.rollout import Line

Records = tuple[int, ...]


@dataclass(slots=True)
class Words:
    """Keeps what was reported, with the message that it belongs to, until an item repeats it.

    Where an item comes before its event, the event repeats it.
    """

    _told: list[tuple[MessageDraft, PartDraft]] = field(default_factory=list)
    _items: list[tuple[str, str]] = field(default_factory=list)

    def part(self, line: Line, record: Records) -> PartDraft | None:
        """Return the words of an event; None for other events."""
        kind, payload = line.kind, line.payload
        item = mapping(payload.get("item")) if kind == "item_completed" else {}
        if kind == "agent_message" or item.get("type") == "AgentMessage":
            text = string(payload.get("message")) or message_text(item)
            return text_part(text, line.at, *record) if text else None
        if kind == "agent_reasoning" or item.get("type") == "Reasoning":
            told = item.get("summary_text")
            texts = told if isinstance(told, list) else [payload.get("text")]
            summary = [{"text": text} for text in texts]
            part = reasoning_part({"summary": summary}, line.at, record)
            return part if part.data["text"] else None
        return None

    def repeats(self, part: PartDraft) -> bool:
        """Return whether an event tells what an item before it said, and no event told yet."""
        text = part.data["text"]
        for kind, said in self._items:
            if kind == part.type and (said == text or (kind == "reasoning" and text in said)):
                if said == text:
                    self._items.remove((kind, said))
                return True
        return False

    def take(self, owner: MessageDraft, part: PartDraft) -> None:
        """Take what an event said about a message."""
        self._told.append((owner, part))

    def told(self, owner: MessageDraft) -> bool:
        """Return whether something of a message waits to be repeated."""
        return any(message is owner for message, _ in self._told)

    def repeat(self, kind: str, text: str) -> Records:
        """Drop what an item repeats; return the records of the events that told it.

        Args:
            kind: ``text`` or ``reasoning``.
            text: The item's; several events may tell it by paragraphs. Where none matches,
                events and items are in the same order.
        """
        same = [told for told in self._told if told[1].type == kind]
        if kind == "text":
            found = [told for told in same if told[1].data["text"] == text][:1]
        else:
            found = [told for told in same if told[1].data["text"] in text]
        found = found or same[:1]
        if not found:
            self._items.append((kind, text))
        self._told = [told for told in self._told if not any(told is one for one in found)]
        return tuple(record for _, part in found for record in part.records)

    def left(self) -> list[tuple[MessageDraft, PartDraft]]:
        """Return what nothing repeated, and forget it."""
        told, self._told, self._items = self._told, [], []
        return told
