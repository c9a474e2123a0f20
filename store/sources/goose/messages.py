"""Goose's messages to drafts: who said it, what only the model sees, calls with responses.

Source: the Goose format page, section 2. A response is in a message of the user; what only the
model sees (``userVisible`` false) is a summary after a compaction, or injected context.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.plain_parts import data_part, is_open
from store.sources.base.values import number, plausible_ms, string
from store.sources.goose.content import (
    asks_for,
    is_for_reader,
    part_of,
    settle,
    words,
)

_LATEST_S = 10_000_000_000
"""A ``created`` beyond it is ms: some writers stored those."""


def created_ms(stamp: object) -> int:
    """Return when a message was created, epoch ms; 0 where that is not known."""
    value = number(stamp)
    return plausible_ms(value if value > _LATEST_S else value * 1000) or 0


class Messages:
    """The messages of one session.

    Attributes:
        found: The drafts, in order.
    """

    def __init__(self) -> None:
        """Start without messages."""
        self.found: list[MessageDraft] = []
        self._names: set[str] = set()
        self._calls: defaultdict[str, list[tuple[PartDraft, MessageDraft]]] = defaultdict(list)
        self._compacted = False
        self._chunks: MessageDraft | None = None

    def take(
        self, name: str, role: object, content: list[Any], at: int, record: int,
        metadata: dict[str, Any],
    ) -> None:
        """Take the next message.

        Args:
            name: Its id, or another name for it.
            role: ``user`` or ``assistant``; anything else is left out, but for its record.
            content: Its blocks.
            at: When it was created, epoch ms.
            record: The number of its record.
            metadata: Who sees it: ``userVisible`` and ``agentVisible``.
        """
        blocks = [each for each in content if isinstance(each, dict)]
        name = name if name not in self._names else f"{name}:{record}"
        self._names.add(name)
        hidden = metadata.get("userVisible") is False
        dropped = metadata.get("agentVisible") is False
        chunks, self._chunks = self._chunks, None
        if hidden:
            self._unseen(name, blocks, at, record)
        elif role == "assistant":
            self._answer(name, blocks, at, record, chunks, dropped)
        elif role == "user":
            self._user(name, blocks, at, record, dropped)
        else:
            event = {"name": str(role), "details": blocks}
            part = data_part("event", event, at, record)
            self._add(MessageDraft(name, "system", at, at, {}, [part]), record)
        self._compacted = self._compacted or (dropped and not hidden and not _is_notice(blocks))

    def _add(self, message: MessageDraft, record: int) -> None:
        if not message.parts:
            message.records = (record,)
        self.found.append(message)

    def _unseen(self, name: str, blocks: list[dict[str, Any]], at: int, record: int) -> None:
        """Add what only the model sees: after a compaction, first its summary."""
        said = "\n".join(words(each) for each in blocks if each.get("type") == "text")
        if self._compacted and said:
            self._compacted = False
            body = {"summary": said, "tail_start_id": None, "auto": True}
            part = data_part("compaction", body, at, record)
            draft = MessageDraft(name, "system", at, at, {"compaction": True}, [part])
        else:
            draft = MessageDraft(name, "user", at, at, {"origin": "meta"},
                                 self._parts(blocks, name, at, record))  # fmt: skip
        self._add(draft, record)

    def _parts(
        self, blocks: list[dict[str, Any]], name: str, at: int, record: int
    ) -> list[PartDraft]:
        made = (part_of(each, f"{name}:{nth}", at, record) for nth, each in enumerate(blocks))
        return [part for part in made if part is not None]

    def _user(
        self, name: str, blocks: list[dict[str, Any]], at: int, record: int, dropped: bool
    ) -> None:
        responses = [each for each in blocks if each.get("type") == "toolResponse"]
        for nth, block in enumerate(responses):
            self._respond(f"{name}:{nth}", block, at, record)
        said = [each for each in blocks if each.get("type") != "toolResponse"]
        injected = [each for each in said if each.get("type") == "text" and not is_for_reader(each)]
        typed = [each for each in said if each not in injected]
        if injected:
            own = f"{name}:context" if typed or responses else name
            parts = self._parts(injected, own, at, record)
            self._add(MessageDraft(own, "user", at, at, {"origin": "meta"}, parts), record)
        if typed or not (responses or injected):
            own = f"{name}:said" if responses else name
            parts = self._parts(typed, own, at, record)
            human = any(part.type in ("text", "file") for part in parts) or not parts
            draft = (MessageDraft(own, "user", at, at, {"origin": "human"}, parts) if human
                     else MessageDraft(own, "system", at, at, {}, parts))  # fmt: skip
            _mark(draft, dropped)
            self._add(draft, record)

    def _answer(
        self, name: str, blocks: list[dict[str, Any]], at: int, record: int,
        chunks: MessageDraft | None, dropped: bool,
    ) -> None:
        rest = [each for each in blocks if not self._ask(asks_for(each), record)]
        if blocks and not rest:
            return
        if _is_notice(rest):
            parts = self._parts(rest, name, at, record)
            self._add(MessageDraft(name, "system", at, at, {}, parts), record)
            return
        is_text = bool(rest) and all(each.get("type") == "text" for each in rest)
        if is_text and chunks is not None:
            # Older versions wrote an answer that streamed as one row a chunk.
            part = chunks.parts[-1]
            part.data["text"] += "".join(map(words, rest))
            part.records = (*part.records, record)
            chunks.updated_at = part.updated_at = max(chunks.updated_at, at)
            self._chunks = chunks
            return
        draft = MessageDraft(name, "assistant", at, at, {}, self._parts(rest, name, at, record))
        _mark(draft, dropped)
        self._add(draft, record)
        self._chunks = draft if is_text else None
        for part in draft.parts:
            if part.tool_call_id is not None:
                self._calls[part.tool_call_id].append((part, draft))

    def _ask(self, call: str | None, record: int) -> bool:
        """Let a call wait for its confirmation; return whether there is such a call."""
        for part, _ in self._calls.get(call or "", ()):
            if part.tool_state == "input-available":
                part.data["state"] = part.tool_state = "approval-requested"
                part.data["approval"] = {"id": call}
                part.records = (*part.records, record)
                return True
        return False

    def _respond(self, name: str, block: dict[str, Any], at: int, record: int) -> None:
        """Settle the first call of the id that is open: an id may come again."""
        call = string(block.get("id")) or ""
        known = self._calls.get(call, [])
        found = next((each for each in known if is_open(each[0])), known[-1] if known else None)
        if found is None:
            request = {"type": "toolRequest", "id": call or name}
            part = part_of(request, name, at, record)
            assert part is not None
            found = part, MessageDraft(name, "assistant", at, at, {}, [part])
            self._add(found[1], record)
            self._calls[call].append(found)
        part, owner = found
        settle(part, block, at, record)
        owner.updated_at = max(owner.updated_at, part.updated_at)


def _mark(draft: MessageDraft, dropped: bool) -> None:
    """Note that the model does not see a message any more."""
    if dropped and draft.role != "system":
        draft.metadata["backscroll"] = {"compacted_away": True}


def _is_notice(blocks: list[dict[str, Any]]) -> bool:
    return bool(blocks) and all(
        each.get("type") in ("systemNotification", "actionRequired", "conversationCompacted")
        for each in blocks)

