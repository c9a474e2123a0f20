"""Events of OpenHands to messages: prompts, answers with their calls, what happened beside.

Source: the OpenHands format page, section 3. Events of one response are one answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from store.conversation.event_ids import message_of_event
from store.conversation.wrapping import unwrapped, unwrapped_file
from store.sources.base.databases import decoded
from store.sources.base.drafts import MessageDraft, PartDraft, Role
from store.sources.base.plain_parts import data_part, settle_call, text_part
from store.sources.base.values import mapping, string

_QUIET = frozenset({
    "SystemPromptEvent", "ConversationStateUpdateEvent", "TokenEvent", "StreamingDeltaEvent",
    "LLMCompletionLogEvent",
})  # fmt: skip
"""Kinds of events that say nothing to a reader; they are kept as records."""
_RESULTS = frozenset({"ObservationEvent", "UserRejectObservation", "AgentErrorEvent"})


class Event(NamedTuple):
    """One event.

    Attributes:
        name: Its id, as its file's name says it.
        at: Epoch ms; 0 where it has no time.
    """

    name: str
    at: int
    data: dict[str, Any]


class Messages:
    """The messages of one conversation.

    Attributes:
        responses: The answers by the ids of their responses.
    """

    def __init__(self, children: Sequence[tuple[str, str]]) -> None:
        """Start without messages.

        Args:
            children: Subagents in the order in which they began, each as its time and the digest
                of its prompt, and its id.
        """
        self.responses: dict[str, MessageDraft] = {}
        self._found: list[MessageDraft] = []
        self._calls: dict[str, tuple[PartDraft, MessageDraft]] = {}
        self._children = list(children)
        self._names: set[str] = set()
        self._events: dict[str, MessageDraft] = {}
        self._forgotten: set[str] = set()
        self._at = 0

    def finished(self) -> list[MessageDraft]:
        """Return the messages; those that condensations hide from the model are marked."""
        hidden: dict[int, bool] = {}
        for name, message in self._events.items():
            hidden[id(message)] = hidden.get(id(message), True) and name in self._forgotten
        for message in self._found:
            if hidden.get(id(message)) and message.role != "system":
                message.metadata.setdefault("backscroll", {})["compacted_away"] = True
        return self._found

    def take(self, event: Event, record: int) -> None:
        """Take the next event.

        Args:
            event: The event.
            record: The number of its record.
        """
        self._at = at = event.at or self._at
        kind = string(event.data.get("kind")) or "event"
        if kind == "MessageEvent":
            self._message(event, at, record)
        elif kind == "ActionEvent":
            self._action(event, at, record)
        elif kind in _RESULTS:
            self._result(event, kind, at, record)
        elif kind == "ConversationErrorEvent":
            said = {"name": string(event.data.get("code")) or "error",
                    "message": string(event.data.get("detail")) or ""}  # fmt: skip
            self._add(event, "system", {}, [data_part("error", said, at, record)], at, record)
        elif kind == "Condensation":
            self._condensation(event, at, record)
        elif kind not in _QUIET:
            details = {"name": kind, "details": event.data}
            self._add(event, "system", {}, [data_part("event", details, at, record)], at, record)

    def _add(
        self, event: Event, role: Role, metadata: dict[str, Any], parts: list[PartDraft], at: int,
        record: int,
    ) -> MessageDraft:
        name = string(event.data.get("id")) or event.name
        own = name if name not in self._names else f"{name}:{record}"
        self._names.add(own)
        draft = MessageDraft(own, role, at, at, metadata, parts)
        draft.inherited_from = message_of_event(name)
        if draft.inherited_from is not None and role == "user":
            _take_copy(draft)
        if not parts:
            draft.records = (record,)
        self._found.append(draft)
        self._events[name] = draft
        return draft

    def _condensation(self, event: Event, at: int, record: int) -> None:
        names = event.data.get("forgotten_event_ids")
        self._forgotten.update(map(str, names if isinstance(names, list) else ()))
        body = {"summary": string(event.data.get("summary")) or "", "tail_start_id": None,
                "auto": True}  # fmt: skip
        part = data_part("compaction", body, at, record)
        self._add(event, "system", {"compaction": True}, [part], at, record)

    def _message(self, event: Event, at: int, record: int) -> None:
        said = mapping(event.data.get("llm_message"))
        parts = _contents(said.get("content"), at, record)
        if event.data.get("source") == "user":
            self._add(event, "user", {"origin": "human"}, parts, at, record)
        elif said.get("role") == "assistant" or event.data.get("source") == "agent":
            self._answer(event, [*_reasoning(said, at, record), *parts], at, record)
        else:
            self._add(event, "user", {"origin": "meta"}, parts, at, record)

    def _answer(
        self, event: Event, parts: list[PartDraft], at: int, record: int
    ) -> MessageDraft:
        """Add parts to the answer of a response, a new one where it has none."""
        response = string(event.data.get("llm_response_id"))
        known = self.responses.get(response) if response is not None else None
        if known is None:
            known = self._add(event, "assistant", {}, parts, at, record)
            if response is not None:
                self.responses[response] = known
            return known
        known.parts += parts
        known.updated_at = max(known.updated_at, at)
        self._events[string(event.data.get("id")) or event.name] = known
        return known

    def _action(self, event: Event, at: int, record: int) -> None:
        data = event.data
        action = mapping(data.get("action"))
        parts = [*_reasoning(data, at, record), *_contents(data.get("thought"), at, record)]
        part = _call(event, action, at, record)
        if part.type == "tool-finish" and isinstance(action.get("message"), str):
            parts.append(text_part(action["message"], at, record))
        parts.append(part)
        if part.type == "tool-task" and isinstance(action.get("prompt"), str):
            self._start(part, action["prompt"])
        owner = self._answer(event, parts, at, record)
        self._calls[part.tool_call_id or ""] = part, owner

    def _start(self, part: PartDraft, prompt: str) -> None:
        """Name the subagent that a call started: the next one with its prompt."""
        digest = prompt_digest(prompt)
        found = next((each for each in self._children if each[0].endswith(f":{digest}")), None)
        if found is not None:
            self._children.remove(found)
            extra = {"child_session_source_id": found[1]}
            part.data["resultProviderMetadata"] = {"backscroll": extra}

    def _result(self, event: Event, kind: str, at: int, record: int) -> None:
        data = event.data
        call_id = string(data.get("tool_call_id")) or ""
        known = self._calls.get(call_id)
        if known is None:
            part = _call(event, {}, at, record)
            owner = self._add(event, "assistant", {}, [part], at, record)
            known = self._calls[part.tool_call_id or ""] = part, owner
        part, owner = known
        self._events.setdefault(string(data.get("id")) or event.name, owner)
        part.tool_state = "input-available"  # Of several results the last one counts.
        if kind == "UserRejectObservation":
            reason = string(data.get("rejection_reason")) or ""
            settle_call(part, "denied", reason, at, record)
        elif kind == "AgentErrorEvent":
            settle_call(part, "error", string(data.get("error")) or "error", at, record)
        else:
            _observe(part, mapping(data.get("observation")), at, record)
        owner.updated_at = max(owner.updated_at, part.updated_at)


def _take_copy(draft: MessageDraft) -> None:
    """Read what our export wrote: tags around text say what it was."""
    for part in (part for part in draft.parts if part.type == "text"):
        tag, text = unwrapped(part.data["text"])
        if tag == "not_from_user":
            draft.metadata["origin"], part.data["text"] = "meta", text
        file = unwrapped_file(part.data["text"])
        if file is not None:
            part.type, part.data = "file", file


def prompt_digest(prompt: str) -> str:
    """Return what tells the prompt of a subagent from others."""
    text = prompt.strip().encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _contents(content: object, at: int, record: int) -> list[PartDraft]:
    """Return the parts of texts and images; texts without words are left out."""
    parts: list[PartDraft] = []
    for block in map(mapping, content if isinstance(content, list) else ()):
        if isinstance(block.get("text"), str):
            if block["text"]:
                parts.append(text_part(block["text"], at, record))
        elif block.get("type") == "image":
            parts += [PartDraft("file", file, at, at, records=(record,)) for file in _files(block)]
        elif block:
            event = {"name": string(block.get("type")) or "block", "details": block}
            parts.append(data_part("event", event, at, record))
    return parts


def _files(block: dict[str, Any]) -> list[dict[str, Any]]:
    urls = block.get("image_urls")
    found: list[dict[str, Any]] = []
    for url in urls if isinstance(urls, list) else ():
        if isinstance(url, str):
            kind = url[5:].partition(";")[0] if url.startswith("data:") else "image/*"
            found.append({"type": "file", "mediaType": kind or "image/*", "url": url})
    return found


def _reasoning(data: dict[str, Any], at: int, record: int) -> list[PartDraft]:
    """Return what was thought: in blocks, or in one text that says the same."""
    found: list[PartDraft] = []
    blocks = data.get("thinking_blocks")
    for block in map(mapping, blocks if isinstance(blocks, list) else ()):
        thought = block.get("thinking")
        body: dict[str, Any] = {
            "type": "reasoning", "text": thought if isinstance(thought, str) else "",
            "state": "done",
        }  # fmt: skip
        kept = {key: block[key] for key in ("signature", "data") if string(block.get(key))}
        if kept:
            body["providerMetadata"] = {"openhands": kept}
        if body["text"] or kept:
            found.append(PartDraft("reasoning", body, at, at, records=(record,)))
    text = string(data.get("reasoning_content"))
    if text is not None and not any(part.data["text"] for part in found):
        body = {"type": "reasoning", "text": text, "state": "done"}
        found.append(PartDraft("reasoning", body, at, at, records=(record,)))
    return found


def _call(event: Event, action: dict[str, Any], at: int, record: int) -> PartDraft:
    data, call = event.data, mapping(event.data.get("tool_call"))
    name = string(data.get("tool_name")) or string(call.get("name")) or "unknown"
    call_id = string(data.get("tool_call_id")) or string(call.get("id")) or event.name
    made: dict[str, Any] = {"type": f"tool-{name}", "toolCallId": call_id,
                            "state": "input-available", "input": {}}  # fmt: skip
    if action.get("kind") == "MCPToolAction" and isinstance(action.get("data"), dict):
        made["input"] = action["data"]
    elif action:
        # The answer that ends a conversation is shown as its text.
        hidden = ("kind", "message") if name == "finish" else ("kind",)
        made["input"] = {key: value for key, value in action.items() if key not in hidden}
    else:
        given = decoded(call.get("arguments"))
        if isinstance(given, str):
            made["rawInput"] = given
        elif given is not None:
            made["input"] = given
    extra = {key: data[key] for key in ("security_risk", "summary") if string(data.get(key))}
    if extra:
        made["callProviderMetadata"] = {"openhands": extra}
    return PartDraft(made["type"], made, at, at, call_id, made["state"], (record,))


def _observe(part: PartDraft, observation: dict[str, Any], at: int, record: int) -> None:
    """Put an observation into the part of its call."""
    content = observation.get("content")
    blocks = [mapping(each) for each in content] if isinstance(content, list) else []
    texts = [each["text"] for each in blocks if isinstance(each.get("text"), str)]
    text = content if isinstance(content, str) else "\n".join(texts)
    files = [file for each in blocks for file in _files(each)]
    extra: dict[str, Any] = {}
    code = observation.get("exit_code")
    if type(code) is int and code != -1:
        extra["exit_code"] = code
    if observation.get("timeout") is True:
        extra["timeout"] = True
    if observation.get("is_error") is True:
        settle_call(part, "error", text or "error", at, record, extra)
        return
    shown: Any = "" if part.type == "tool-finish" else text
    if files:
        shown = [{"type": "text", "text": text}, *files]
    settle_call(part, "ok", shown, at, record, extra)
