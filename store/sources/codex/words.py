"""Words that events told and that no response item has repeated yet.

Versions up to 0.5x write a response's items only after its tools have run, its words at
once as events; a run that was killed meanwhile, or a stream that broke, leaves the words
alone. Source: rollouts of versions 0.36.0 to 0.98.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.plain_parts import text_part
from store.sources.base.values import mapping, string
from store.sources.codex.items import message_text, reasoning_part, untagged_text
from store.sources.codex.lineage import Entry
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


def told_prompt(line: Line) -> dict[str, Any] | None:
    """Return the prompt that an event tells, as a response item has it; None for other events."""
    payload = line.payload
    item = mapping(payload.get("item")) if line.kind == "item_completed" else {}
    if line.kind != "user_message" and item.get("type") != "UserMessage":
        return None
    given = item.get("content")
    content = [_input_item(mapping(each)) for each in given] if isinstance(given, list) else []
    text = string(payload.get("message"))
    content += [{"type": "input_text", "text": text}] if text else []
    for key, kind, name in (
        ("images", "input_image", "image_url"), ("local_images", "local_image", "path"),
    ):  # fmt: skip
        urls = payload.get(key)
        urls = urls if isinstance(urls, list) else []
        content += [{"type": kind, name: url} for url in urls if isinstance(url, str)]
    return {"role": "user", "content": content} if content else None


def _input_item(item: dict[str, Any]) -> dict[str, Any]:
    kind = {"text": "input_text", "image": "input_image"}.get(str(item.get("type")))
    return {**item, "type": kind} if kind else item


@dataclass(slots=True)
class Prompts:
    """Keeps which prompts of a turn have an item, an event, or both.

    All known versions write the event behind its item; one without the other was seen where a
    tool that rewrites files left the item out.

    Attributes:
        told: The line and the prompt of events whose item did not come, the oldest first.
    """

    told: list[tuple[Entry, dict[str, Any]]] = field(default_factory=list)
    _items: list[tuple[str, bool]] = field(default_factory=list)

    def item(self, payload: dict[str, Any], *, human: bool) -> Entry | None:
        """Take an item; return the line of the event that told it, if one did.

        Args:
            payload: The item's.
            human: Whether a person may have typed it.
        """
        item = (_folded(payload), human)
        for place, (entry, prompt) in enumerate(self.told):
            if item[0] == _folded(prompt):
                del self.told[place]
                return entry
        self._items.append(item)
        return None

    def tell(self, entry: Entry, prompt: dict[str, Any]) -> bool:
        """Take an event; return whether an item before it says the same."""
        text = _folded(prompt)
        for place in range(len(self._items) - 1, -1, -1):
            if _is_same(self._items[place], text):
                # Items before it will be told by no event any more.
                del self._items[: place + 1]
                return True
        self.told.append((entry, prompt))
        return False

    def end_turn(self) -> None:
        """Forget the items: events of the next turn tell of others."""
        self._items.clear()


def _folded(prompt: dict[str, Any]) -> str:
    return " ".join(untagged_text(prompt).split())


def _is_same(item: tuple[str, bool], told: str) -> bool:
    """Return whether an item is what an event tells, with what was put around it or without."""
    text, human = item
    return text == told or (human and (told in text or (text != "" and text in told)))
