"""Entries to messages: turns with their calls, shell lines, summaries, notices."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from store.conversation.wrapping import bare_aside, unwrapped_file
from store.sources.base.content_blocks import blocks_of, text_of
from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.early_results import EarlyResults
from store.sources.base.plain_parts import data_part, text_part
from store.sources.base.values import mapping, number, string
from store.sources.pi.content import part_of, settle
from store.sources.pi.prompts import Prompts
from store.sources.pi.tree import Entry, Tree


# Source: the pi section of the format page, and pi's own description of its messages:
# ``input`` is without what came from the cache, ``output`` holds what was reasoned.
def usage_of(usage: object) -> dict[str, int] | None:
    """Return pi's counts as our five disjoint buckets; None where there are none."""
    bag = mapping(usage)
    if not bag:
        return None
    output = number(bag.get("output"))
    reasoning = min(number(bag.get("reasoning")), output)
    return {
        "input": number(bag.get("input")),
        "output": output - reasoning,
        "reasoning": reasoning,
        "cache_read": number(bag.get("cacheRead")),
        "cache_write": number(bag.get("cacheWrite")),
    }


def cost_of(usage: object) -> float | None:
    """Return what a request cost, in dollars; None where it is not recorded, or it was free."""
    cost = mapping(mapping(usage).get("cost")).get("total")
    return cost if isinstance(cost, int | float) and cost else None


QUIET = frozenset(
    ["model_change", "thinking_level_change", "label", "session_info", "custom", "leaf"]
)
"""Entries that say something of the session and are no messages."""


class Messages:
    """The messages of one session, in file order.

    Attributes:
        found: The drafts.
        header: The record of the file's header, as it was when these were begun.
        prompts: The system prompts that its system messages add up to.
    """

    def __init__(self, tree: Tree) -> None:
        """Start without messages."""
        self.found: list[MessageDraft] = []
        self._tree = tree
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}
        self._early = EarlyResults()
        self._owner: dict[str, str] = {}
        self._level: str | None = None
        self.header = tree.header_number
        self._quiet: list[int] = [] if self.header is None else [self.header]
        self._taken = 0
        self.prompts = Prompts()
        self._compactions: list[tuple[PartDraft, Entry]] = []

    def build(self) -> list[MessageDraft]:
        """Return them; called again, those of what the tree has become.

        What was taken before must be where it was: on the active path, or left.
        """
        for entry in islice(self._tree.entries, self._taken, None):
            self._take(entry)
        self._taken = len(self._tree.entries)
        for part, entry in self._compactions:
            part.data["data"]["tail_start_id"] = self._tail(entry)
        found = list(self.found)
        if self._quiet and found:
            found[-1] = replace(found[-1], records=(*found[-1].records, *self._quiet))
        return found

    def _take(self, entry: Entry) -> None:
        self.prompts.take(entry)
        if entry.type in QUIET:
            if entry.type == "thinking_level_change":
                self._level = string(entry.data.get("thinkingLevel"))
            self._quiet.append(entry.number)
        elif entry.type == "message":
            self._take_message(entry, mapping(entry.data.get("message")))
        elif entry.type == "compaction":
            self._compact(entry, entry.data)
            self._spend(entry, entry.data.get("usage"), "compaction")
        elif entry.type == "branch_summary":
            self._add(entry, _branch_summary(entry, entry.data))
            self._spend(entry, entry.data.get("usage"), "branch_summary")
        elif entry.type == "usage":
            self._quiet.append(entry.number)
            self._spend(entry, entry.data.get("usage"), string(entry.data.get("kind")) or "usage")
        elif entry.type == "custom_message":
            self._add(entry, _custom(entry, entry.data))
        else:
            details = {key: value for key, value in entry.data.items()
                       if key not in ("type", "id", "parentId", "timestamp")}  # fmt: skip
            event = {"name": entry.type, "details": details}
            part = data_part("event", event, entry.at, entry.number)
            self._add(entry, MessageDraft(entry.id, "system", entry.at, entry.at, {}, [part]))

    def _take_message(self, entry: Entry, message: dict[str, Any]) -> None:
        role = message.get("role")
        if role == "assistant":
            self._answer(entry, message)
        elif role == "toolResult":
            self._result(entry, message)
            self._spend(entry, message.get("usage"), "tool")
        elif role == "system":
            self._quiet.append(entry.number)
        elif role == "user":
            parts = [
                _file_of(block, entry) or part_of(block, entry)
                for block in blocks_of(message.get("content"))
            ]
            self._add(entry, _user(entry, "human", parts))
        elif role == "bashExecution":
            self._shell(entry, message)
        elif role == "compactionSummary":
            self._compact(entry, message)
        elif role == "branchSummary":
            self._add(entry, _branch_summary(entry, message))
        elif role in ("custom", "hookMessage"):
            self._add(entry, _custom(entry, message))
        else:
            event = {"name": str(role), "details": message}
            part = data_part("event", event, entry.at, entry.number)
            self._add(entry, MessageDraft(entry.id, "system", entry.at, entry.at, {}, [part]))

    def _add(self, entry: Entry, message: MessageDraft) -> None:
        if not message.parts:
            message.records = (*message.records, entry.number)
        if self._quiet:
            message.records = (*self._quiet, *message.records)
            self._quiet = []
        if entry.id in self._tree.left:
            message.metadata["hidden_at"] = self._tree.left[entry.id]
        # An entry that becomes two messages is named by the first of them.
        self._owner.setdefault(entry.id, message.source_id)
        self.found.append(message)

    def _answer(self, entry: Entry, message: dict[str, Any]) -> None:
        draft = MessageDraft(entry.id, "assistant", entry.at, entry.at, _answered(message))
        extra = draft.metadata.setdefault("backscroll", {})
        level = string(message.get("thinkingLevel")) or self._level
        if level and level != "off":
            extra["effort"] = level
        digest = self.prompts.digest(entry)
        if digest is not None:
            draft.metadata["system_prompt_digest"] = digest
        draft.parts = [part_of(block, entry) for block in blocks_of(message.get("content"))]
        error = string(message.get("errorMessage"))
        if message.get("stopReason") == "aborted":
            extra["aborted_at"] = entry.at
        elif error:
            draft.parts.append(data_part("error", {"message": error}, entry.at, entry.number))
        self._add(entry, draft)
        for part in draft.parts:
            if part.tool_call_id is not None:
                self._calls[part.tool_call_id] = (part, draft)
                holder = self._early.join(part.tool_call_id, part, draft, self.found)
                if holder is not None:
                    self._owner[holder.source_id] = draft.source_id

    def _result(self, entry: Entry, message: dict[str, Any]) -> None:
        known = self._calls.get(string(message.get("toolCallId")) or "")
        if known is None:
            name = string(message.get("toolName")) or "unknown"
            block = {"type": "toolCall", "id": message.get("toolCallId"), "name": name}
            part = part_of(block, entry)
            part.records = ()
            known = part, MessageDraft(entry.id, "assistant", entry.at, entry.at, {}, [part])
            self._add(entry, known[1])
            self._early.hold(part.tool_call_id or "", *known)
        part, owner = known
        settle(part, message, entry)
        owner.updated_at = max(owner.updated_at, part.updated_at)
        self._owner.setdefault(entry.id, owner.source_id)

    def _spend(self, entry: Entry, usage: object, initiator: str) -> None:
        """Count what was used beside the answers, as an answer that says nothing."""
        spent = usage_of(usage)
        if spent is None:
            return
        extra = {"no_answer": True, "initiator": initiator}
        metadata: dict[str, Any] = {"usage": spent, "backscroll": extra}
        cost = cost_of(usage)
        if cost:
            metadata["cost_usd"] = cost
        if string(entry.data.get("model")):
            provider = string(entry.data.get("provider")) or "unknown"
            metadata["model"] = {"provider_id": provider, "model_id": entry.data["model"]}
        draft = MessageDraft(f"{entry.id}:usage", "assistant", entry.at, entry.at, metadata)
        self._add(entry, draft)

    def _shell(self, entry: Entry, message: dict[str, Any]) -> None:
        """Add the line that a person typed, and what it printed."""
        command = str(message.get("command") or "")
        typed = _user(entry, "shell", [text_part(command, entry.at, entry.number)])
        typed.metadata["backscroll"] = {"shell": command}
        self._add(entry, typed)
        output = text_part(str(message.get("output") or ""), entry.at, entry.number)
        printed = _user(entry, "shell", [output])
        printed.source_id = f"{entry.id}:output"
        extra: dict[str, Any] = {"output": True}
        if isinstance(message.get("exitCode"), int):
            extra["exit_code"] = message["exitCode"]
        for name, key in (("interrupted", "cancelled"), ("truncated", "truncated"),
                          ("not_in_context", "excludeFromContext")):  # fmt: skip
            if message.get(key):
                extra[name] = True
        printed.metadata["backscroll"] = extra
        self._add(entry, printed)

    def _compact(self, entry: Entry, data: dict[str, Any]) -> None:
        body: dict[str, Any] = {
            "summary": str(data.get("summary") or ""), "tail_start_id": None, "auto": True
        }  # fmt: skip
        if number(data.get("tokensBefore")):
            body["pre_tokens"] = number(data["tokensBefore"])
        if data.get("details"):
            body["details"] = data["details"]
        part = data_part("compaction", body, entry.at, entry.number)
        self._compactions.append((part, entry))
        draft = MessageDraft(entry.id, "system", entry.at, entry.at, {"compaction": True}, [part])
        self._add(entry, draft)

    def _tail(self, entry: Entry) -> str | None:
        """Return the message that the first kept entry is, or the next one on its path."""
        kept = entry.data.get("firstKeptEntryId")
        index = entry.data.get("firstKeptEntryIndex")
        entries = self._tree.entries
        if isinstance(index, int) and not isinstance(kept, str):
            # Before version 2 lines were counted, the header among them.
            kept = entries[index - 1].id if 0 < index <= len(entries) else None
        found = False
        for each in entries:
            found = found or each.id == kept
            hidden = (each.id in self._tree.left) != (entry.id in self._tree.left)
            if found and each is not entry and not hidden and each.id in self._owner:
                return self._owner[each.id] if each.number < entry.number else None
        return None


def _user(entry: Entry, origin: str, parts: list[PartDraft]) -> MessageDraft:
    return MessageDraft(entry.id, "user", entry.at, entry.at, {"origin": origin}, parts)


def _file_of(block: dict[str, Any], entry: Entry) -> PartDraft | None:
    """Return the text file that our export wrote as words."""
    text = block.get("text")
    file = unwrapped_file(text) if isinstance(text, str) else None
    if file is None:
        return None
    return PartDraft("file", file, entry.at, entry.at, records=(entry.number,))


def _branch_summary(entry: Entry, data: dict[str, Any]) -> MessageDraft:
    """Return the summary of an abandoned branch that is sent to the model."""
    summary = text_part(str(data.get("summary") or ""), entry.at, entry.number)
    draft = _user(entry, "meta", [summary])
    draft.metadata["backscroll"] = {"branch_summary_of": data.get("fromId")}
    return draft


def _custom(entry: Entry, data: dict[str, Any]) -> MessageDraft:
    parts = [part_of(block, entry) for block in blocks_of(data.get("content"))]
    for part in parts:
        if part.type == "text":
            part.data["text"] = bare_aside(part.data["text"])
    draft = _user(entry, "meta", parts)
    draft.metadata["backscroll"] = {"custom_type": data.get("customType")}
    return draft


def _answered(message: dict[str, Any]) -> dict[str, Any]:
    """Return what an answer says of itself: usage, cost, model, why it ended."""
    metadata: dict[str, Any] = {}
    usage, cost = usage_of(message.get("usage")), cost_of(message.get("usage"))
    if usage:
        metadata["usage"] = usage
    if cost:
        metadata["cost_usd"] = cost
    if string(message.get("model")):
        provider = string(message.get("provider")) or "unknown"
        metadata["model"] = {"provider_id": provider, "model_id": message["model"]}
    reason = string(message.get("stopReason"))
    extra = {"finish_reason": reason} if reason else {}
    for name, key in (("response_id", "responseId"), ("response_model", "responseModel")):
        if string(message.get(key)):
            extra[name] = message[key]
    if extra:
        metadata["backscroll"] = extra
    return metadata


def words_of(message: MessageDraft) -> str:
    """Return the text of a message."""
    return text_of([part.data for part in message.parts if part.type == "text"])
