"""Lines of a thread to messages: one for each API response, outputs put to their calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from store.sources.codex import events
from store.sources.codex.calls import Calls
from store.sources.codex.items import data_part, message_parts, message_text, reasoning_part
from store.sources.codex.lineage import Entry
from store.sources.codex.origins import kinds_of, origin_details, origin_of
from store.sources.codex.rollout import Line
from store.sources.codex.setting import Setting
from store.sources.codex.tools import CALLS, HOSTED, call_part, hosted_part, item_of
from store.sources.codex.usage import Counting, Usage
from store.sources.drafts import MessageDraft, PartDraft, Role
from store.sources.values import mapping, string

_QUIET_ITEMS = frozenset(
    ["ghost_snapshot", "compaction", "compaction_summary", "context_compaction",
     "compaction_trigger", "configuration_update", "additional_tools"]
)  # fmt: skip


@dataclass(slots=True)
class Thread:
    """The messages of one thread.

    Attributes:
        first_record: By path where a file's records begin among those of the session.
        messages: The drafts, in display order.
    """

    first_record: dict[str, int]
    setting: Setting = field(default_factory=Setting)
    messages: list[MessageDraft] = field(default_factory=list)
    calls: Calls = field(default_factory=Calls)
    counting: Counting = field(default_factory=Counting)
    _open: MessageDraft | None = None
    _sampled: object = None
    _answered: bool = False
    _waiting: set[str] = field(default_factory=set)
    _names: set[str] = field(default_factory=set)
    _quiet: list[int] = field(default_factory=list)
    _unsure: list[MessageDraft] = field(default_factory=list)
    _confirmed: bool = False
    _prompted: bool = False
    _state: tuple[bool, int | None] = (False, None)

    def take(self, entries: Sequence[Entry]) -> None:
        """Take all lines of the thread, once."""
        for entry in entries:
            if (entry.inherited, entry.hidden_at) != self._state:
                self._close()
                self._state = (entry.inherited, entry.hidden_at)
            self._take(entry)
        self._place_left()
        self._flush_quiet()
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
            self._keep(entry)

    def _record(self, entry: Entry) -> tuple[int, ...]:
        """Return the number of an entry's record in the session, where it is the session's."""
        first = self.first_record.get(entry.file.path)
        return () if first is None else (first + entry.line.number,)

    def _keep(self, entry: Entry) -> None:
        """Keep a line as a record only: it goes with the message before."""
        self._quiet.extend(self._record(entry))

    def _flush_quiet(self) -> None:
        if self._quiet and self.messages:
            last = self.messages[-1]
            last.records = (*last.records, *self._quiet)
            self._quiet.clear()

    def _add(self, entry: Entry, role: Role, metadata: dict[str, Any]) -> MessageDraft:
        """Append a message that begins with this line."""
        line = entry.line
        name = self._name(line)
        message = MessageDraft(name, role, line.at, line.at, metadata)
        if entry.inherited:
            message.inherited_from = name
        if entry.hidden_at is not None:
            metadata["hidden_at"] = entry.hidden_at
        self._flush_quiet()
        self.messages.append(message)
        self._flush_quiet()
        return message

    def _name(self, line: Line) -> str:
        """Return the item's own id; the place of a line that has none, or not for itself."""
        placed = f"{line.place[0]}:{line.place[1]}"
        name = string(line.payload.get("id")) or placed
        if name in self._names:
            name = f"{name}:{placed}"
        self._names.add(name)
        return name

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
            self._open = self._add(entry, "assistant", self.setting.described())
        self._sampled = sampled
        self._open.updated_at = max(self._open.updated_at, line.at)
        return self._open

    def _take_item(self, entry: Entry) -> None:
        line, record = entry.line, self._record(entry)
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
            self._keep(entry)
        else:
            details = {"name": line.kind or "unknown", "details": line.payload}
            self._assistant(entry).parts.append(data_part("event", details, line.at, record))

    def _take_call(self, entry: Entry, part: PartDraft) -> None:
        part.records = self._record(entry)
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
        parts = message_parts(line.payload, line.at, self._record(entry))
        if role == "assistant":
            self._assistant(entry).parts += parts
        elif role == "user":
            self._take_user(entry).parts = parts
        else:
            self._close()
            self._add(entry, "system", {"origin": "meta"}).parts = parts

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
        message = self._add(entry, "user", metadata)
        self._prompted = self._prompted or origin == "human"
        if not certain and not kinds_of(line):
            self._unsure.append(message)
        return message

    def _take_agent_message(self, entry: Entry) -> None:
        """Take what one agent wrote to another."""
        self._close()
        message = self._add(entry, "user", {"origin": "notification"})
        data = events.agent_message(entry.line.payload)
        message.parts.append(data_part("agent", data, entry.line.at, self._record(entry)))

    def _take_event(self, entry: Entry) -> None:
        line, payload = entry.line, entry.line.payload
        if line.kind in ("task_complete", "turn_aborted"):
            self._end_turn(entry)
            return
        if events.is_shown(line):
            self._close()
            message = self._add(entry, "system", {})
            message.parts.append(events.part_of(line, self._record(entry)))
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
            self._keep(entry)

    def _take_told(self, entry: Entry, item: dict[str, Any]) -> bool:
        """Use what an item tells of a call or a prompt; say whether its record has a place."""
        if item.get("type") == "UserMessage":
            self._confirm()
        call_id = string(item.get("id")) or ""
        return self.calls.tell(call_id, entry, self._record(entry), item)

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
            self._keep(entry)
            return
        data, record = events.error(line.payload["error"]), self._record(entry)
        message = self._add(entry, "system", {})
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
                != self._state
            )
        ):
            message = self._add(entry, "assistant", self.setting.described())
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
            last = self._add(entry, "system", {})
        # Else it is the request for the summary, counted, whose answer is this line.
        last.metadata["compaction"] = True
        data = events.compaction(line.payload, auto=self._prompted)
        if self.counting.context is not None:
            data["pre_tokens"] = self.counting.context
        last.parts.append(data_part("compaction", data, line.at, self._record(entry)))
        last.updated_at = max(last.updated_at, line.at)

    def _place_left(self) -> None:
        """Place outputs that stand without their call; keep other records."""
        orphans = False
        for entry, record, is_output in list(self.calls.left()):
            if not is_output:
                self._quiet.extend(record)
                continue
            orphans = True
            self._state = (entry.inherited, entry.hidden_at)
            data, at = events.orphan(entry.line.payload), entry.line.at
            message = self._add(entry, "system", {})
            message.parts.append(data_part("result", data, at, record))
        if orphans:
            order = {message.source_id: n for n, message in enumerate(self.messages)}
            self.messages.sort(key=lambda message: (message.created_at, order[message.source_id]))
