"""Events to messages: of the session itself, or of one subagent of it.

Source: the Copilot section of the format page.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.early_results import EarlyResults
from store.sources.base.plain_parts import data_part, text_part
from store.sources.base.values import mapping, number, string
from store.sources.copilot.event import QUIET_STARTS, Event
from store.sources.copilot.legacy import legacy_events
from store.sources.copilot.tools import (
    answer_approval,
    ask_approval,
    call_part,
    file_data,
    interrupt,
    is_settled,
    settle,
)
from store.sources.copilot.usage import Spent, compaction_usage, unanswered


# A line for the shell is a call that the user requested: ``tool.user_requested``, then
# ``tool.execution_complete`` with ``isUserRequested``.
def typed_line(event: Event) -> MessageDraft:
    """Return the line that was typed."""
    given = mapping(event.data.get("arguments"))
    command = string(given.get("command")) or string(event.data.get("toolName")) or ""
    metadata = {"origin": "shell", "backscroll": {"shell": command}}
    part = text_part(command, event.at, event.number)
    return MessageDraft(event.id, "user", event.at, event.at, metadata, [part])


def printed_text(event: Event, typed_id: str) -> MessageDraft:
    """Return what a line printed; a line that failed has it as its error."""
    data = event.data
    error = mapping(data.get("error"))
    text = string(mapping(data.get("result")).get("content")) or string(error.get("message")) or ""
    extra: dict[str, Any] = {"output": True}
    code = mapping(data.get("shellExecution")).get("exitCode")
    if isinstance(code, int):
        extra["exit_code"] = code
    metadata = {"origin": "shell", "backscroll": extra}
    name = f"{typed_id}:output"
    part = text_part(text, event.at, event.number)
    return MessageDraft(name, "user", event.at, event.at, metadata, [part])


def error_part(event: Event) -> PartDraft:
    """Return what went wrong in a request or a compaction."""
    data = event.data
    found = {
        "message": data.get("message") or data.get("error"),
        "status": data.get("statusCode"),
        "error_type": data.get("errorType"),
    }
    told = {key: value for key, value in found.items() if value is not None}
    return data_part("error", told, event.at, event.number)


def compaction_messages(event: Event) -> list[MessageDraft]:
    """Return the marker of a compaction, and what its request used where that is reported."""
    data = event.data
    body: dict[str, Any] = {
        "summary": string(data.get("summaryContent")) or "",
        "tail_start_id": None,
        "auto": data.get("trigger") != "manual",
    }
    for name, key in (("pre_tokens", "preCompactionTokens"),
                      ("post_tokens", "postCompactionTokens")):  # fmt: skip
        if number(data.get(key)):
            body[name] = number(data[key])
    part = data_part("compaction", body, event.at, event.number)
    marker = MessageDraft(event.id, "system", event.at, event.at, {"compaction": True}, [part])
    used = compaction_usage(event)
    if used is None:
        return [marker]
    return [marker, unanswered(f"{event.id}:usage", used, {"initiator": "compaction"})]


_NOTICES = ("session.info", "session.warning", "session.truncation", "session.handoff")


class Thread:
    """The messages of one thread of events.

    Attributes:
        messages: The drafts.
        calls: Tool parts by call id.
        prompts: System prompts by their SHA-256.
        model: The last that answered or was chosen.
    """

    def __init__(self, spent: Spent) -> None:
        """Start without messages.

        Args:
            spent: What the requests of all threads used.
        """
        self.messages: list[MessageDraft] = []
        self.calls: dict[str, PartDraft] = {}
        self.prompts: dict[str, str] = {}
        self.model: dict[str, Any] | None = None
        self._spent = spent
        self._digest: str | None = None
        self._owner: dict[str, MessageDraft] = {}
        self._started: dict[str, int] = {}
        self._by_message: dict[str, MessageDraft] = {}
        self._assistant: MessageDraft | None = None
        self._typed: dict[str, str] = {}
        self._early = EarlyResults()
        self._assets: dict[str, dict[str, Any]] = {}
        self._quiet: list[int] = []

    def take(self, event: Event) -> None:
        """Take the next event of the thread."""
        name = "_take_" + event.type.replace(".", "_")
        handler = getattr(self, name, None)
        if handler is not None:
            handler(event)
        elif event.type in _NOTICES:
            self._notice(event)
        elif event.type.startswith(QUIET_STARTS):
            self._quiet.append(event.number)
        else:
            self._notice(event)

    def with_rest(self, messages: list[MessageDraft]) -> list[MessageDraft]:
        """Return messages of which the last has the records that no message was made of yet."""
        if not messages or not self._quiet:
            return messages
        last = messages[-1]
        return [*messages[:-1], replace(last, records=(*last.records, *self._quiet))]

    def _add(self, message: MessageDraft, event: Event) -> MessageDraft:
        own = () if message.parts else (event.number,)
        message.records = (*self._quiet, *own)
        self._quiet = []
        self.messages.append(message)
        return message

    def _take_user_message(self, event: Event) -> None:
        data = event.data
        source = string(data.get("source"))
        # What an agent asks of its subagent is the prompt there.
        asked = source in (None, "user") or source.startswith("agent-")
        metadata: dict[str, Any] = {"origin": "human" if asked else "meta"}
        extra = {"source": source} if source not in (None, "user") else {}
        if string(data.get("agentMode")):
            extra["mode"] = data["agentMode"]
        if extra:
            metadata["backscroll"] = extra
        text = data.get("content")
        parts = [text_part(text if isinstance(text, str) else "", event.at, event.number)]
        attached = data.get("attachments")
        for item in attached if isinstance(attached, list) else ():
            bag = mapping(item)
            file = file_data({**bag, **self._assets.get(str(bag.get("assetId")), {})})
            if file is not None:
                part = PartDraft("file", file, event.at, event.at, records=(event.number,))
                parts.append(part)
        self._assistant = None
        self._add(MessageDraft(event.id, "user", event.at, event.at, metadata, parts), event)

    def _take_system_message(self, event: Event) -> None:
        body = string(event.data.get("content"))
        if body:
            self._digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
            self.prompts[self._digest] = body
        self._quiet.append(event.number)

    def _take_system_notification(self, event: Event) -> None:
        text = event.data.get("content")
        parts = [text_part(text if isinstance(text, str) else "", event.at, event.number)]
        metadata = {"origin": "notification"}
        self._add(MessageDraft(event.id, "user", event.at, event.at, metadata, parts), event)

    def _take_assistant_message(self, event: Event) -> None:
        data = event.data
        message_id = string(data.get("messageId")) or event.id
        message = self._by_message.get(message_id)
        if message is None:
            message = MessageDraft(event.id, "assistant", event.at, event.at)
            self._say(message, event)
            self._by_message[message_id] = self._add(message, event)
            self._describe(message, event)
        else:
            self._say(message, event)
            message.updated_at = max(message.updated_at, event.at)
        self._assistant = message

    def _say(self, message: MessageDraft, event: Event) -> None:
        """Add what an event says that its message does not hold yet."""
        known = [(part.type, part.data.get("text")) for part in message.parts]
        reasoning, text = string(event.data.get("reasoningText")), event.data.get("content")
        if reasoning and ("reasoning", reasoning) not in known:
            data = {"type": "reasoning", "text": reasoning, "state": "done"}
            message.parts.append(
                PartDraft("reasoning", data, event.at, event.at, records=(event.number,))
            )
        if isinstance(text, str) and text and ("text", text) not in known:
            message.parts.append(text_part(text, event.at, event.number))
        requests = event.data.get("toolRequests")
        for place, request in enumerate(requests if isinstance(requests, list) else ()):
            bag = mapping(request)
            call_id = string(bag.get("toolCallId")) or f"{event.id}-{place}"
            if self._is_new(call_id, message):
                part = self._call(
                    message, string(bag.get("name")), call_id, bag.get("arguments"), event
                )
                self._early.join(call_id, part, message, self.messages)

    def _is_new(self, call_id: str, message: MessageDraft) -> bool:
        """Return whether a request is not known yet: some servers number each answer's anew."""
        known = self.calls.get(call_id)
        if known is None or call_id in self._early:
            return True
        return self._owner[call_id] is not message and is_settled(known)

    def _call(
        self, message: MessageDraft, name: str | None, call_id: str, given: object, event: Event
    ) -> PartDraft:
        part = call_part(name or "unknown", call_id, given, event)
        message.parts.append(part)
        self.calls[call_id], self._owner[call_id] = part, message
        return part

    def _describe(self, message: MessageDraft, event: Event) -> None:
        """Set what the request tells: model, usage, how long it took."""
        data = event.data
        call_id = string(data.get("apiCallId"))
        used = self._spent.take(call_id)
        if used is not None:
            message.metadata["usage"] = used.usage
            message.records = (*message.records, used.number)
            message.metadata["backscroll"] = used.details
        model = string(data.get("model")) or (used.model if used else None)
        if model:
            provider = used.provider if used else "github-copilot"
            self.model = {"provider_id": provider, "model_id": model}
            message.metadata["model"] = self.model
        if self._digest:
            message.metadata["system_prompt_digest"] = self._digest

    def _take_tool_execution_start(self, event: Event) -> None:
        call_id = string(event.data.get("toolCallId")) or event.id
        self._started[call_id] = event.at
        part = self.calls.get(call_id)
        if part is None or call_id in self._early:
            name, given = string(event.data.get("toolName")), event.data.get("arguments")
            message = self._answering(event)
            part = self._call(message, name, call_id, given, event)
            self._early.join(call_id, part, message, self.messages)
        else:
            part.records = (*part.records, event.number)

    def _answering(self, event: Event) -> MessageDraft:
        """Return the answer that a call without a request belongs to."""
        if self._assistant is None:
            message = MessageDraft(event.id, "assistant", event.at, event.at)
            self._assistant = self._add(message, event)
        return self._assistant

    def _take_session_binary_asset(self, event: Event) -> None:
        """Keep what is attached to a later prompt, which only names it."""
        name = string(event.data.get("assetId"))
        if name is not None:
            kept = ("data", "mimeType")
            self._assets[name] = {key: event.data[key] for key in kept if key in event.data}
        self._quiet.append(event.number)

    def _take_session_import_legacy(self, event: Event) -> None:
        for each in legacy_events(event):
            self.take(each)

    def _take_tool_user_requested(self, event: Event) -> None:
        """Add a line that a person typed for the shell; what it prints comes later."""
        self._typed[string(event.data.get("toolCallId")) or event.id] = event.id
        self._assistant = None
        self._add(typed_line(event), event)

    def _take_permission_requested(self, event: Event) -> None:
        call_id = string(mapping(event.data.get("permissionRequest")).get("toolCallId"))
        if call_id in self.calls:
            ask_approval(self.calls[call_id], event)
        self._quiet.append(event.number)

    def _take_permission_completed(self, event: Event) -> None:
        part = self.calls.get(string(event.data.get("toolCallId")) or "")
        if part is not None:
            answer_approval(part)
        self._quiet.append(event.number)

    def _take_abort(self, event: Event) -> None:
        """Say of the answer, and of calls that have no result, that they were broken off."""
        if self._assistant is not None:
            extra = dict(self._assistant.metadata.get("backscroll") or {})
            self._assistant.metadata["backscroll"] = {**extra, "aborted_at": event.at}
        for call_id, part in self.calls.items():
            if interrupt(part, event, self._started.get(call_id)):
                owner = self._owner[call_id]
                owner.updated_at = max(owner.updated_at, part.updated_at)
        self._notice(event)

    def _take_tool_execution_complete(self, event: Event) -> None:
        call_id = string(event.data.get("toolCallId")) or event.id
        typed = self._typed.get(call_id)
        if typed is not None:
            self._add(printed_text(event, typed), event)
            return
        part = self.calls.get(call_id)
        if part is None:
            name = string(event.data.get("toolName"))
            message = self._answering(event)
            part = self._call(message, name, call_id, None, event)
            part.records = ()
            self._early.hold(call_id, part, message)
        settle(part, event, self._started.get(call_id))
        owner = self._owner[call_id]
        owner.updated_at = max(owner.updated_at, part.updated_at)

    def _take_session_error(self, event: Event) -> None:
        part = error_part(event)
        self._add(MessageDraft(event.id, "system", event.at, event.at, {}, [part]), event)

    def _take_session_model_change(self, event: Event) -> None:
        model = string(event.data.get("newModel"))
        if model:
            self.model = {"provider_id": "github-copilot", "model_id": model}
        self._quiet.append(event.number)

    def _take_session_compaction_complete(self, event: Event) -> None:
        data = event.data
        if data.get("success") is False:
            self._take_session_error(event)
            return
        marker, *spent = compaction_messages(event)
        self._add(marker, event)
        self.messages += spent

    def _take_session_snapshot_rewind(self, event: Event) -> None:
        """Hide what a rewind took back, where its events are still there."""
        target = event.data.get("upToEventId")
        first = next((m for m in self.messages if m.source_id == target), None)
        if first is not None:
            for message in self.messages[self.messages.index(first) :]:
                message.metadata.setdefault("hidden_at", event.at)
        self._quiet.append(event.number)

    def _notice(self, event: Event) -> None:
        details = event.data.get("message") or event.data.get("reason") or event.data
        name = event.type.removeprefix("session.")
        part = data_part("event", {"name": name, "details": details}, event.at, event.number)
        self._add(MessageDraft(event.id, "system", event.at, event.at, {}, [part]), event)
