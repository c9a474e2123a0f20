"""Records of a session to messages: who said it, calls with their results, what is quiet.

Source: the droid format page, section 2. The order is that of the file; nothing branches in it.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from store.sources.base.content_blocks import blocks_of
from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.early_results import EarlyResults
from store.sources.base.json_lines import Record
from store.sources.base.notices import is_context, told_parts
from store.sources.base.plain_parts import data_part
from store.sources.base.values import epoch_ms, mapping, number, string
from store.sources.droid.content import part_of, settle

_TASK_ENDED = "task-completion:"
_COMPLETED = "completed"


class Messages:
    """The messages of a file, taken as it grows.

    Attributes:
        found: The drafts, in file order.
        start: The ``session_start`` record; empty where it is missing or damaged.
        outcome: The newest ``agent_turn_outcome``, where nothing was said after it.
        models: Those that answered, in order.
        times: When each record that has a time was written, epoch ms.
    """

    def __init__(self) -> None:
        """Start without messages."""
        self.found: list[MessageDraft] = []
        self.start: dict[str, Any] = {}
        self.outcome: dict[str, Any] | None = None
        self.models: dict[str, None] = {}
        self.times: list[int] = []
        self.taken = 0
        self._names: set[str] = set()
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}
        self._early = EarlyResults()
        self._quiet: list[int] = []

    @property
    def quiet(self) -> tuple[int, ...]:
        """The records at the end that no message has yet."""
        return tuple(self._quiet)

    def take(self, records: list[Record]) -> None:
        """Take what the records are more than before."""
        for record in islice(records, self.taken, None):
            self._take(record)
        self.taken = len(records)

    def _take(self, record: Record) -> None:
        data = record.data
        at = epoch_ms(data.get("timestamp"))
        self.times += [at] if at else []
        at = at or (self.times[-1] if self.times else 0)
        kind = data.get("type")
        if kind == "session_start" and not self.start:
            self.start = data
            self._quiet.append(record.number)
        elif kind == "message":
            self._message(record, mapping(data.get("message")), at)
        elif kind == "agent_turn_outcome":
            self.outcome = data
            self._quiet.append(record.number)
        elif kind == "compaction_state":
            self._compact(record, at)
        else:
            details = {key: value for key, value in data.items() if key not in ("type", "id")}
            event = {"name": str(kind or "record"), "details": details}
            part = data_part("event", event, at, record.number)
            self._add(MessageDraft(self._name(record), "system", at, at, {}, [part]), record)

    def _name(self, record: Record) -> str:
        name = string(record.data.get("id"))
        return record.name if name is None or name in self._names else name

    def _add(self, message: MessageDraft, record: Record) -> None:
        self._names.add(message.source_id)
        if not message.parts:
            message.records = (*message.records, record.number)
        message.records = (*self._quiet, *message.records)
        self._quiet = []
        self.found.append(message)

    def _message(self, record: Record, message: dict[str, Any], at: int) -> None:
        name, content = self._name(record), blocks_of(message.get("content"))
        self.outcome = None
        if message.get("role") == "assistant":
            self._answer(record, message, at)
            return
        results = [block for block in content if block.get("type") == "tool_result"]
        for nth, block in enumerate(results):
            self._result(record, block, f"{name}:{nth}" if nth else name, at)
        said = [block for block in content if block.get("type") != "tool_result"]
        if said or not results:
            own = f"{name}:said" if results else name
            self._said(record, own, said, string(message.get("visibility")), at)

    def _said(
        self, record: Record, name: str, blocks: list[dict[str, Any]], seen_by: str | None, at: int
    ) -> None:
        """Add what a person said, the program told the model, or told the person."""
        parts = [part_of(each, f"{name}:{n}", at, record.number) for n, each in enumerate(blocks)]
        if seen_by == "user_only":
            words = "\n".join(part.data["text"] for part in parts if part.type == "text")
            error = data_part("error", {"message": words}, at, record.number)
            others = [part for part in parts if part.type != "text"]
            self._add(MessageDraft(name, "system", at, at, {}, [error, *others]), record)
            return
        if seen_by == "llm_only":
            origin = "notification" if name.startswith(_TASK_ENDED) else "meta"
            self._add(MessageDraft(name, "user", at, at, {"origin": origin}, told_parts(parts)),
                      record)
            return
        # Older versions put their reminders into the person's own message.
        injected = [part for part in parts if _is_injected(part)]
        typed = [part for part in parts if not _is_injected(part)]
        if injected:
            own = f"{name}:context" if typed else name
            self._add(
                MessageDraft(own, "user", at, at, {"origin": "meta"}, told_parts(injected)), record)
        if typed or not injected:
            self._add(MessageDraft(name, "user", at, at, {"origin": "human"}, typed), record)

    def _answer(self, record: Record, message: dict[str, Any], at: int) -> None:
        draft = MessageDraft(self._name(record), "assistant", at, at)
        model = string(message.get("modelId"))
        if model is not None:
            self.models.setdefault(model)
            draft.metadata["model"] = {"provider_id": "unknown", "model_id": model}
        effort = string(message.get("reasoningEffort"))
        if effort and effort != "none":
            draft.metadata["backscroll"] = {"effort": effort}
        draft.parts = [
            part_of(block, f"{draft.source_id}:{place}", at, record.number)
            for place, block in enumerate(blocks_of(message.get("content")))
        ]
        self._add(draft, record)
        for part in draft.parts:
            if part.tool_call_id is not None:
                self._calls[part.tool_call_id] = part, draft
                self._early.join(part.tool_call_id, part, draft, self.found)

    def _result(self, record: Record, block: dict[str, Any], name: str, at: int) -> None:
        known = self._calls.get(string(block.get("tool_use_id")) or "")
        if known is None:
            call = {"type": "tool_use", "id": block.get("tool_use_id")}
            part = part_of(call, name, at, record.number)
            known = part, MessageDraft(name, "assistant", at, at, {}, [part])
            self._add(known[1], record)
            self._early.hold(part.tool_call_id or "", *known)
        part, owner = known
        settle(part, block, at, record.number)
        owner.updated_at = max(owner.updated_at, part.updated_at)

    def _compact(self, record: Record, at: int) -> None:
        data = record.data
        body: dict[str, Any] = {
            "summary": str(data.get("summaryText") or ""), "tail_start_id": None, "auto": False,
        }  # fmt: skip
        details = {key: data[key] for key in ("summaryKind", "removedCount", "summaryTokens")
                   if data.get(key) is not None}  # fmt: skip
        if details:
            body["details"] = details
        part = data_part("compaction", body, at, record.number)
        draft = MessageDraft(self._name(record), "system", at, at, {"compaction": True}, [part])
        self._add(draft, record)

    def activity(self) -> dict[str, Any] | None:
        """Return what the end of the file says of the session; None where its turn ended well."""
        said = next((m for m in reversed(self.found) if m.role != "system" or not m.parts), None)
        at = self.times[-1] if self.times else 0
        if self.outcome is not None:
            ended_well = self.outcome.get("reason") == _COMPLETED
            return None if ended_well else {"state": "error", "from": "stored", "since": at}
        if said is None or "compaction" in said.metadata:
            return None
        return {"state": "running", "from": "guessed", "since": at}


def _is_injected(part: PartDraft) -> bool:
    return part.type == "text" and is_context(part.data["text"])


def tokens_of(settings: dict[str, Any]) -> dict[str, int] | None:
    """Return the counts of a session's settings as our buckets; None where there are none.

    What was reasoned is an estimate inside the output.
    """
    bag = mapping(settings.get("tokenUsage"))
    output = number(bag.get("outputTokens"))
    reasoning = min(max(number(bag.get("thinkingTokens")), 0), max(output, 0))
    found = {
        "input": number(bag.get("inputTokens")), "output": output - reasoning,
        "reasoning": reasoning, "cache_read": number(bag.get("cacheReadTokens")),
        "cache_write": number(bag.get("cacheCreationTokens")),
    }  # fmt: skip
    found = {key: max(value, 0) for key, value in found.items()}
    return found if any(found.values()) else None


