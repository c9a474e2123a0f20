"""Lines of a thread to messages: one for each API response, outputs put to their calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from store.sources.codex import events
from store.sources.codex.calls import Calls
from store.sources.codex.items import data_part, message_parts, message_text, reasoning_part
from store.sources.codex.lineage import Entry
from store.sources.codex.message_list import MessageList
from store.sources.codex.origins import kinds_of, origin_details, origin_of
from store.sources.codex.setting import Setting
from store.sources.codex.tools import CALLS, HOSTED, call_part, hosted_part, item_of
from store.sources.codex.usage import Counting, Usage
from store.sources.drafts import MessageDraft, PartDraft
from store.sources.values import mapping, string

_QUIET_ITEMS = frozenset(
    ["ghost_snapshot", "compaction", "compaction_summary", "context_compaction",
     "compaction_trigger", "configuration_update", "additional_tools"]
)  # fmt: skip


@dataclass(slots=True)
class Thread(MessageList):
    """The messages of one thread, made from its lines."""

    setting: Setting = field(default_factory=Setting)
    calls: Calls = field(default_factory=Calls)
    counting: Counting = field(default_factory=Counting)
    _open: MessageDraft | None = None
    _sampled: object = None
    _answered: bool = False
    _waiting: set[str] = field(default_factory=set)
    _unsure: list[MessageDraft] = field(default_factory=list)
    _confirmed: bool = False
    _prompted: bool = False

    def take(self, entries: Sequence[Entry]) -> None:
        """Take all lines of the thread, once."""
        for entry in entries:
            if (entry.inherited, entry.hidden_at) != self.state:
                self._close()
                self.part((entry.inherited, entry.hidden_at))
            self._take(entry)
        self._place_left()
        self.flush_quiet()
        if self._confirmed:
            for message in self._unsure:
                message.metadata["origin"] = "meta"

    def _take(self, entry: Entry) -> None:
        line = entry.line
        if line.type == "response_item":
            self._take_item(entry)
        elif line.type == "event_msg":
            self._take_event(entry)
        elif line.type == "compacted":
            self._take_compaction(entry)
        elif line.type in ("inter_agent_communication", "agent_message"):
            self._take_agent_message(entry)
        else:
            if line.type == "session_meta":
                self.setting.take_meta(line.payload)
            elif line.type == "turn_context":
                self.setting.take(line.payload)
            elif line.type == "token_usage_record":
                self._count(entry, self.counting.take_record(line.payload))
            self.keep(entry)

    def _close(self) -> None:
        self._open = None
        self._waiting.clear()
        self._answered = False

    def _assistant(self, entry: Entry) -> MessageDraft:
        """Return the message of the API response that an item belongs to."""
        line = entry.line
        sampled = line.extra.get("sampled_through_sequence")
        if self._open is not None:
            if sampled is not None and self._sampled is not None:
                other = sampled != self._sampled
            else:
                other = self._answered and not self._waiting
            if other:
                self._close()
        if self._open is None:
            self._open = self.add(entry, "assistant", self.setting.described())
        self._sampled = sampled
        self._open.updated_at = max(self._open.updated_at, line.at)
        return self._open

    def _take_item(self, entry: Entry) -> None:
        line, record = entry.line, self.record(entry)
        if line.kind == "message":
            self._take_message(entry)
        elif line.kind == "reasoning":
            self._assistant(entry).parts.append(reasoning_part(line.payload, line.at, record))
        elif line.kind in CALLS:
            self._take_call(entry, call_part(line))
        elif line.kind in HOSTED:
            self._take_call(entry, hosted_part(line))
        elif line.kind.endswith("_output"):
            call_id = string(line.payload.get("call_id")) or ""
            owner = self.calls.settle(call_id, entry, record)
            if owner is not None and owner is self._open:
                self._answered = True
                self._waiting.discard(call_id)
        elif line.kind == "agent_message":
            self._take_agent_message(entry)
        elif line.kind in _QUIET_ITEMS:
            self.keep(entry)
        else:
            details = {"name": line.kind or "unknown", "details": line.payload}
            self._assistant(entry).parts.append(data_part("event", details, line.at, record))

    def _take_call(self, entry: Entry, part: PartDraft) -> None:
        part.records = self.record(entry)
        if self.calls.repeats(part):
            return
        if part.tool_state == "input-available":
            message = self._assistant(entry)
            self._waiting.add(part.tool_call_id or "")
            self.calls.add(part, message)
        else:
            self.calls.add(part, self._assistant(entry))

    def _take_message(self, entry: Entry) -> None:
        line, role = entry.line, entry.line.payload.get("role")
        parts = message_parts(line.payload, line.at, self.record(entry))
        if role == "assistant":
            self._assistant(entry).parts += parts
        elif role == "user":
            self._take_user(entry).parts = parts
        else:
            self._close()
            self.add(entry, "system", {"origin": "meta"}).parts = parts

    def _take_user(self, entry: Entry) -> MessageDraft:
        line, text = entry.line, message_text(entry.line.payload)
        origin, certain = origin_of(line, text)
        metadata: dict[str, Any] = {"origin": origin}
        extra = origin_details(origin, text)
        if self.setting.turn:
            extra["turn_id"] = self.setting.turn
        if extra:
            metadata["backscroll"] = extra
        self._close()
        message = self.add(entry, "user", metadata)
        self._prompted = self._prompted or origin == "human"
        if not certain and not kinds_of(line):
            self._unsure.append(message)
        return message

    def _take_agent_message(self, entry: Entry) -> None:
        """Take what one agent wrote to another."""
        self._close()
        message = self.add(entry, "user", {"origin": "notification"})
        data = events.agent_message(entry.line.payload)
        message.parts.append(data_part("agent", data, entry.line.at, self.record(entry)))

    def _take_event(self, entry: Entry) -> None:
        line, payload = entry.line, entry.line.payload
        if line.kind in ("task_complete", "turn_aborted"):
            self._end_turn(entry)
            return
        if events.is_shown(line):
            self._close()
            message = self.add(entry, "system", {})
            message.parts.append(events.part_of(line, self.record(entry)))
            return
        if line.kind == "task_started":
            self._close()
            self.setting.turn, self._prompted = string(payload.get("turn_id")), False
        elif line.kind == "thread_settings_applied":
            self.setting.take(mapping(payload.get("thread_settings")))
        elif line.kind == "token_count":
            hidden = entry.hidden_at is not None
            self._count(entry, self.counting.take_count(payload, hidden=hidden))
        elif line.kind == "user_message":
            self._confirm()
        item = item_of(line)
        if item is None or not self._take_told(entry, item):
            self.keep(entry)

    def _take_told(self, entry: Entry, item: dict[str, Any]) -> bool:
        """Use what an item tells of a call or a prompt; say whether its record has a place."""
        if item.get("type") == "UserMessage":
            self._confirm()
        call_id = string(item.get("id")) or ""
        return self.calls.tell(call_id, entry, self.record(entry), item)

    def _confirm(self) -> None:
        """Note that a person typed the last message."""
        self._confirmed = True
        if self._unsure and self._unsure[-1] is self.messages[-1]:
            self._unsure.pop()

    def _end_turn(self, entry: Entry) -> None:
        line = entry.line
        self._close()
        last = self._last_assistant()
        if last is not None:
            extra = last.metadata.setdefault("backscroll", {})
            if type(line.payload.get("duration_ms")) is int:
                extra["turn_duration_ms"] = line.payload["duration_ms"]
            if line.kind == "turn_aborted":
                extra["aborted_at"] = line.at
                extra["finish_reason"] = string(line.payload.get("reason")) or "aborted"
        if not line.payload.get("error"):
            self.keep(entry)
            return
        data, record = events.error(line.payload["error"]), self.record(entry)
        message = self.add(entry, "system", {})
        message.parts.append(data_part("error", data, line.at, record))

    def _last_assistant(self) -> MessageDraft | None:
        """Return the newest answer to the last prompt."""
        for message in reversed(self.messages):
            if message.role == "assistant":
                return message
            human = message.metadata.get("origin") == "human"
            if human and not any(message is unsure for unsure in self._unsure):
                return None
        return None

    def _count(self, entry: Entry, usage: Usage | None) -> None:
        """Give a response's usage to its message; one without items gets an empty message."""
        if usage is None:
            return
        message = self._open or self._last_assistant()
        if (
            message is None
            or "usage" in message.metadata
            or (
                (message.inherited_from is not None, message.metadata.get("hidden_at"))
                != self.state
            )
        ):
            message = self.add(entry, "assistant", self.setting.described())
        message.metadata["usage"] = usage
        response = string(entry.line.payload.get("response_id"))
        if response:
            message.metadata.setdefault("backscroll", {})["response_id"] = response
        self._close()

    def _take_compaction(self, entry: Entry) -> None:
        line = entry.line
        self._close()
        last = self.messages[-1] if self.messages else None
        if last is None or last.role != "assistant" or last.parts:
            last = self.add(entry, "system", {})
        # Else it is the request for the summary, counted, whose answer is this line.
        last.metadata["compaction"] = True
        data = events.compaction(line.payload, auto=self._in_turn(last))
        if self.counting.context is not None:
            data["pre_tokens"] = self.counting.context
        last.parts.append(data_part("compaction", data, line.at, self.record(entry)))
        last.updated_at = max(last.updated_at, line.at)

    def _in_turn(self, marker: MessageDraft) -> bool:
        """Tell whether a prompt is being worked on; without turns, whether it is unanswered."""
        if self.setting.turn is not None:
            return self._prompted
        for message in reversed(self.messages):
            if message is not marker and message.metadata.get("origin") != "meta":
                return not (message.role == "assistant" and message.parts[-1:] != []
                            and message.parts[-1].type == "text")  # fmt: skip
        return False

    def _place_left(self) -> None:
        """Place outputs that stand without their call; keep other records."""
        orphans = False
        for entry, record, is_output in list(self.calls.left()):
            if not is_output:
                self.quiet.extend(record)
                continue
            orphans = True
            self.state = (entry.inherited, entry.hidden_at)
            data, at = events.orphan(entry.line.payload), entry.line.at
            message = self.add(entry, "system", {})
            message.parts.append(data_part("result", data, at, record))
        if orphans:
            order = {message.source_id: n for n, message in enumerate(self.messages)}
            self.messages.sort(key=lambda message: (message.created_at, order[message.source_id]))
