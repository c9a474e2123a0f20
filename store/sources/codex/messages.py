"""Lines of a thread to messages: one for each API response, outputs put to their calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.notices import is_context, review, told_parts
from store.sources.base.plain_parts import data_part
from store.sources.base.requests import prompt_parts
from store.sources.base.values import mapping, string
from store.sources.codex import events
from store.sources.codex.calls import Calls
from store.sources.codex.items import message_parts, message_text, reasoning_part
from store.sources.codex.lineage import Entry
from store.sources.codex.origins import kinds_of, origin_details, origin_of
from store.sources.codex.responses import Responses
from store.sources.codex.rollout import Line
from store.sources.codex.tools import (
    CALLS,
    HOSTED,
    call_part,
    hosted_part,
    is_known,
    is_open,
    item_of,
)
from store.sources.codex.words import Prompts, told_prompt

_TURNS = {"task_started": "running", "turn_aborted": "interrupted", "error": "error"}
"""What events say of a turn; versions before 0.100 tell only of those that failed."""
_SYSTEM = ("developer", "system")
"""Roles of what a program tells the model."""
_BEFORE_ITEMS = frozenset(["token_count", "thread_settings_applied", "task_started"])
_QUIET_ITEMS = frozenset(
    ["ghost_snapshot", "compaction", "compaction_summary", "context_compaction",
     "compaction_trigger", "configuration_update", "additional_tools"]
)  # fmt: skip


@dataclass(slots=True)
class Thread(Responses):
    """The messages of one thread, made from its lines.

    Attributes:
        turn_state: ``running``, ``interrupted`` or ``error`` and since when, as the last turn
            that is visible says; None where it ended well, or nothing says.
    """

    calls: Calls = field(default_factory=Calls)
    turn_state: tuple[str, int] | None = None
    prompts: Prompts = field(default_factory=Prompts)
    _confirmed: bool = False
    _prompted: bool = False

    def take(self, entries: Sequence[Entry]) -> None:
        """Take all lines of the thread, once."""
        for entry in entries:
            if (entry.inherited, entry.hidden_at) != self.state:
                self._place_prompts()
                self.settle()
                self.prompts.end_turn()
                self.part((entry.inherited, entry.hidden_at))
            self._take(entry)
        self._place_prompts()
        self.settle()
        self._place_left()
        self.flush_quiet()
        for message in self.messages:
            if message.role == "assistant":
                _read_reviews(message)
        self.untold.answered(self.messages)
        if self._confirmed:
            for message in self.untold.messages:
                message.metadata["origin"] = "meta"

    def _take(self, entry: Entry) -> None:
        line = entry.line
        if self.prompts.told and not self._comes_between(line):
            self._place_prompts()
        if line.type == "response_item":
            self._take_item(entry)
        elif line.type == "event_msg":
            self.untold.event()
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
                self.count(entry, self.counting.take_record(line.payload))
            elif events.is_unknown(line):
                self._show(entry)
                return
            self.keep(entry)

    def _comes_between(self, line: Line) -> bool:
        """Return whether a line may come between the event of a prompt and its item."""
        if line.type == "event_msg":
            return line.kind in _BEFORE_ITEMS
        is_user = line.kind == "message" and line.payload.get("role") == "user"
        return line.type in ("turn_context", "world_state") or is_user

    def _place_prompts(self) -> None:
        """Show the prompts that only events told."""
        told, self.prompts.told = self.prompts.told, []
        for entry, prompt in told:
            text = message_text(prompt)
            self._say(entry, prompt, text, origin_of(entry.line, text))

    def _take_item(self, entry: Entry) -> None:
        line, record = entry.line, self.record(entry)
        if line.kind == "message":
            self._take_message(entry)
        elif line.kind == "reasoning":
            part = reasoning_part(line.payload, line.at, record)
            self.response(entry).parts.append(part)
            self.quiet += self.words.repeat("reasoning", part.data["text"])
        elif line.kind in CALLS:
            self._take_call(entry, call_part(line))
        elif line.kind in HOSTED:
            self._take_call(entry, hosted_part(line))
        elif line.kind.endswith("_output"):
            call_id = string(line.payload.get("call_id")) or ""
            owner = self.calls.settle(call_id, entry, record)
            if owner is not None and owner is self.opened:
                self.answered = True
                self.waiting.discard(call_id)
        elif line.kind == "agent_message":
            self._take_agent_message(entry)
        elif line.kind in _QUIET_ITEMS:
            self.keep(entry)
        else:
            details = {"name": line.kind or "unknown", "details": line.payload}
            self.response(entry).parts.append(data_part("event", details, line.at, *record))

    def _take_call(self, entry: Entry, part: PartDraft) -> None:
        part.records = self.record(entry)
        if self.calls.repeats(part):
            return
        if is_open(part):
            message = self.response(entry)
            self.waiting.add(part.tool_call_id or "")
            self.calls.add(part, message)
        else:
            self.calls.add(part, self.response(entry))

    def _take_message(self, entry: Entry) -> None:
        line, role = entry.line, entry.line.payload.get("role")
        text = message_text(line.payload)
        if role == "assistant":
            self.response(entry).parts += self._parts(entry, line.payload)
            self.quiet += self.words.repeat("text", text)
        elif role == "user":
            said = origin_of(line, text)
            told = self.prompts.item(line.payload, human=said[0] == "human")
            if told is None:
                self._place_prompts()
            self._say(entry, line.payload, text, said)
            if told is not None:
                self.keep(told)
                self._confirm()
        else:
            self.close()
            parts = self._parts(entry, line.payload)
            if string(role) and role not in _SYSTEM:
                unknown = {"name": "role", "details": {"role": role}}
                parts.insert(0, data_part("event", unknown, line.at, *self.record(entry)))
            self.add(entry, "system", {"origin": "meta"}).parts = parts

    def _parts(self, entry: Entry, payload: dict[str, Any]) -> list[PartDraft]:
        return message_parts(payload, entry.line.at, self.record(entry))

    def _say(
        self, entry: Entry, payload: dict[str, Any], text: str, said: tuple[str, bool]
    ) -> None:
        """Add a user message.

        Args:
            entry: The line that it begins with.
            payload: The message, as response items have it.
            text: Its text.
            said: Its ``origin_of``.
        """
        line, parts = entry.line, self._parts(entry, payload)
        origin, certain = said
        metadata: dict[str, Any] = {"origin": origin}
        extra = origin_details(origin, text)
        if self.setting.turn:
            extra["turn_id"] = self.setting.turn
        if extra:
            metadata["backscroll"] = extra
        self.settle()
        self.untold.answered(self.messages)
        message = self.add(entry, "user", metadata)
        self._prompted = self._prompted or origin == "human"
        if not certain and not kinds_of(line) and line.type == "response_item":
            self.untold.take(message)
        if origin == "human":
            parts = prompt_parts(parts)
        elif origin == "notification" or (origin == "meta" and is_context(text)):
            parts = told_parts(parts)
        message.parts = parts

    def _take_agent_message(self, entry: Entry) -> None:
        """Take what one agent wrote to another."""
        self.settle()
        message = self.add(entry, "user", {"origin": "notification"})
        data = events.agent_message(entry.line.payload)
        message.parts.append(data_part("agent", data, entry.line.at, *self.record(entry)))

    def _note_turn(self, entry: Entry) -> None:
        """Note what an own visible line says about its turn."""
        line = entry.line
        if entry.inherited or entry.hidden_at is not None:
            return
        state, before = _TURNS.get(line.kind), self.turn_state and self.turn_state[0]
        if line.kind == "task_complete":
            failed = line.payload.get("error") or before == "error"
            state = "error" if failed else None
        elif state is None and (line.kind != "user_message" or before == "running"):
            return
        self.turn_state = None if state is None else (state, line.at)

    def _take_event(self, entry: Entry) -> None:
        line, payload = entry.line, entry.line.payload
        self._note_turn(entry)
        if line.kind in ("task_complete", "turn_aborted"):
            self._end_turn(entry)
            return
        if events.is_shown(line):
            if events.is_failure(line):
                self.settle()
            self.close()
            self._show(entry)
            return
        if line.kind == "task_started":
            self.settle()
            self.setting.turn, self._prompted = string(payload.get("turn_id")), False
        elif line.kind == "thread_settings_applied":
            self.setting.take(mapping(payload.get("thread_settings")))
        elif line.kind == "token_count":
            hidden = entry.hidden_at is not None
            self.count(entry, self.counting.take_count(payload, hidden=hidden), early=True)
            self.note_limits(entry)
        prompt = told_prompt(line)
        if prompt is not None:
            if not self.prompts.tell(entry, prompt):
                return
            self._confirm()
        if self.tell(entry):
            return
        item = item_of(line)
        if item is not None and self._take_told(entry, item):
            return
        is_new = events.is_unknown(line) if item is None else not is_known(item)
        if is_new:
            self._show(entry)
        else:
            self.keep(entry)

    def _show(self, entry: Entry) -> None:
        """Show an event in the answer that is being written, else as a message of its own."""
        message = self.opened or self.add(entry, "system", {})
        message.parts.append(events.part_of(entry.line, self.record(entry)))

    def _take_told(self, entry: Entry, item: dict[str, Any]) -> bool:
        """Use what an item says about a call; return whether its record has a place."""
        call_id = string(item.get("id")) or ""
        return self.calls.tell(call_id, entry, self.record(entry), item)

    def _confirm(self) -> None:
        """Note that a person typed the last message."""
        self._confirmed = True
        self.untold.told(self.messages[-1])

    def _end_turn(self, entry: Entry) -> None:
        line = entry.line
        self.settle()
        self.prompts.end_turn()
        last = self.last_response()
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
        message.parts.append(data_part("error", data, line.at, *record))

    def _take_compaction(self, entry: Entry) -> None:
        line = entry.line
        self.settle()
        last = self.messages[-1] if self.messages else None
        if last is None or last.role != "assistant" or last.parts:
            last = self.add(entry, "system", {})
        # Else it is the request for the summary, counted, whose answer is this line.
        last.metadata["compaction"] = True
        data = events.compaction(line, auto=self._in_turn(last))
        if self.counting.context is not None:
            data["pre_tokens"] = self.counting.context
        last.parts.append(data_part("compaction", data, line.at, *self.record(entry)))
        last.updated_at = max(last.updated_at, line.at)

    def _in_turn(self, marker: MessageDraft) -> bool:
        """Return whether a prompt is being worked on; without turns, whether it is unanswered."""
        if self.setting.turn is not None:
            return self._prompted
        for message in reversed(self.messages):
            if message is not marker and message.metadata.get("origin") != "meta":
                return not (message.role == "assistant" and message.parts[-1:] != []
                            and message.parts[-1].type == "text")  # fmt: skip
        return False

    def _place_left(self) -> None:
        """Place outputs, and items that tell of one, that are without their call."""
        orphans = False
        for entry, record, item in list(self.calls.left()):
            orphans = True
            self.state = (entry.inherited, entry.hidden_at)
            at = entry.line.at
            message = self.add(entry, "system", {})
            if item is None:
                part = data_part("result", events.orphan(entry.line.payload), at, *record)
            else:
                part = data_part("event", events.item_alone(item), at, *record)
            message.parts.append(part)
        if orphans:
            order = {message.source_id: n for n, message in enumerate(self.messages)}
            self.messages.sort(key=lambda message: (message.created_at, order[message.source_id]))


def _read_reviews(message: MessageDraft) -> None:
    """Put a review into words; the model gives it as JSON."""
    for part in message.parts:
        if part.type == "text" and part.data["text"].lstrip().startswith("{"):
            part.data["text"] = review(part.data["text"]) or part.data["text"]
