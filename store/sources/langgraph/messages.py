"""The messages of a thread as drafts: answers with their calls, and what tools returned.

Source: the page of agent builders. ``tool_calls`` has all calls; blocks of the content repeat
them in the form of each model's API.
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.plain_parts import call_part, data_part, reasoning_part, text_part
from store.sources.base.row_session import RowSession
from store.sources.base.stated_calls import file_data
from store.sources.base.values import mapping, number, string
from store.sources.langgraph.thread import Seen

_CALLS = frozenset({"tool_use", "function_call", "tool_call", "input_json_delta"})
_FILES = ("image", "image_url", "input_image", "file", "input_file", "audio", "video", "media",
          "document")  # fmt: skip
_MIME = re.compile(r"data:([\w.+/-]+)[;,]")
_OPEN = ("input-available", "approval-requested")


class Messages:
    """What a thread's messages become."""

    def __init__(self, session: RowSession) -> None:
        """Start with no messages.

        Args:
            session: Takes problems.
        """
        self.messages: list[MessageDraft] = []
        self._session = session
        self._calls: dict[str, list[PartDraft]] = {}
        self._owners: dict[int, MessageDraft] = {}

    def add_all(self, messages: list[Seen]) -> None:
        """Take all messages in display order."""
        answers: list[tuple[Seen, MessageDraft]] = []
        for seen in messages:
            draft = self._message(seen)
            if seen.data["type"] in ("tool", "function"):
                answers.append((seen, draft))
            else:
                self._fill(draft, seen)
        # A call that two branches ran has the result of the one that is shown.
        for seen, draft in sorted(answers, key=lambda each: each[0].hidden_at is not None):
            self._answer(seen, draft)

    def open_calls(self) -> list[PartDraft]:
        """Return the calls of the shown messages that have no result."""
        return [part for one in self.messages if "hidden_at" not in one.metadata
                for part in one.parts if part.tool_state in _OPEN]  # fmt: skip

    def _message(self, seen: Seen) -> MessageDraft:
        draft = MessageDraft(seen.id, "system", seen.at, seen.at, records=(seen.record,))
        if seen.hidden_at is not None:
            draft.metadata["hidden_at"] = max(seen.hidden_at, seen.at + 1)
        if seen.graph:
            _extra(draft)["graph"] = seen.graph.partition(":")[0]
        if seen.pending:
            _extra(draft)["pending"] = True
        self.messages.append(draft)
        return draft

    def _fill(self, draft: MessageDraft, seen: Seen) -> None:
        data = seen.data
        kind = data["type"]
        if kind == "chat":
            kind = {"user": "human", "assistant": "ai"}.get(str(data.get("role")), "other")
        if kind == "human":
            draft.role, draft.metadata["origin"] = "user", "human"
        elif kind == "ai":
            draft.role = "assistant"
            _describe(draft, seen)
        else:
            _extra(draft)["role"] = string(data.get("role")) or kind
        thought = mapping(data.get("additional_kwargs")).get("reasoning_content")
        if isinstance(thought, str) and thought:
            draft.parts.append(reasoning_part(thought, seen.at, seen.record))
        self._content(draft, data.get("content"), seen)
        if kind == "ai":
            self._take_calls(draft, seen)

    def _content(self, draft: MessageDraft, content: object, seen: Seen) -> None:
        for each in content if isinstance(content, list) else [content]:
            block = {"text": each} if isinstance(each, str) else mapping(each)
            draft.parts += _content_parts(block, seen)

    def _take_calls(self, draft: MessageDraft, seen: Seen) -> None:
        data = seen.data
        given = _objects(data.get("tool_calls"))
        wrong = _objects(data.get("invalid_tool_calls"))
        if not given and not wrong:
            # Before there was such a list, calls were kept as OpenAI's API gave them.
            older = mapping(data.get("additional_kwargs"))
            given = _objects(older.get("tool_calls")) or _objects([older.get("function_call")])
        for call in given:
            function = mapping(call.get("function"))
            args = call.get("args", function.get("arguments", call.get("arguments")))
            self._call(draft, call, call.get("name", function.get("name")), args, seen)
        for call in wrong:
            part = self._call(draft, call, call.get("name"), call.get("args"), seen)
            part.data["state"] = part.tool_state = "output-error"
            part.data["errorText"] = string(call.get("error")) or "its arguments are no JSON"
            part.data["resultProviderMetadata"] = {"backscroll": {"status": "error"}}

    def _call(
        self, draft: MessageDraft, call: dict[str, Any], name: object, args: object, seen: Seen
    ) -> PartDraft:
        known = string(call.get("id")) or f"{draft.source_id}:{len(draft.parts)}"
        value = decoded(args) if isinstance(args, str) else args
        part = call_part(name, known, {} if isinstance(value, str) else value, seen.at, seen.record)
        if isinstance(value, str) and value:
            part.data["rawInput"] = value
        draft.parts.append(part)
        names = {known, *([string(name) or ""] if not call.get("id") else [])}
        for each in names:
            self._calls.setdefault(each, []).append(part)
        self._owners[id(part)] = draft
        return part

    def _answer(self, seen: Seen, draft: MessageDraft) -> None:
        """Give a call what its tool returned; what answers no call stays a message of its own."""
        data = seen.data
        call_id = string(data.get("tool_call_id")) or string(data.get("name"))
        waiting = [part for part in self._calls.get(call_id or "", []) if "output" not in part.data
                   and (part.tool_state in _OPEN or "rawInput" in part.data)]  # fmt: skip
        before = [part for part in waiting if self.messages.index(self._owners[id(part)])
                  < self.messages.index(draft)]  # fmt: skip
        if before:
            part = before[0]
            self.messages.remove(draft)
        else:
            if call_id not in self._calls:
                self._session.complain(f"a result is of call {call_id}, which is missing")
            draft.role = "assistant"
            part = self._call(draft, {"id": call_id}, data.get("name"), {}, seen)
        owner = self._owners[id(part)]
        _settle(part, seen)
        owner.updated_at = max(owner.updated_at, seen.at)


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _extra(draft: MessageDraft) -> dict[str, Any]:
    extra: dict[str, Any] = draft.metadata.setdefault("backscroll", {})
    return extra


def _describe(draft: MessageDraft, seen: Seen) -> None:
    told = mapping(seen.data.get("response_metadata"))
    model = next((told[key] for key in ("model_name", "model", "model_id")
                  if string(told.get(key))), None)  # fmt: skip
    if model is not None:
        provider = string(told.get("model_provider")) or "unknown"
        draft.metadata["model"] = {"provider_id": provider, "model_id": model}
    reason = told.get("finish_reason", told.get("stop_reason"))
    if string(reason):
        _extra(draft)["finish_reason"] = reason
    usage = _usage(mapping(seen.used or seen.data.get("usage_metadata")))
    if usage is not None:
        draft.metadata["usage"] = usage


def _usage(told: dict[str, Any]) -> dict[str, int] | None:
    """Return the five buckets: input includes the caches, output the reasoning."""
    if not any(type(told.get(key)) in (int, float) for key in ("input_tokens", "output_tokens")):
        return None
    given = mapping(told.get("input_token_details"))
    said = mapping(told.get("output_token_details"))
    whole, answer = (max(0, number(told.get(f"{key}_tokens"))) for key in ("input", "output"))
    read = min(whole, max(0, number(given.get("cache_read"))))
    written = min(whole - read, max(0, number(given.get("cache_creation"))))
    thought = min(answer, max(0, number(said.get("reasoning"))))
    return {
        "input": whole - read - written, "output": answer - thought, "reasoning": thought,
        "cache_read": read, "cache_write": written,
    }  # fmt: skip


def _content_parts(block: dict[str, Any], seen: Seen) -> list[PartDraft]:
    kind = string(block.get("type")) or "text"
    text = block.get("text", block.get("refusal"))
    if kind in ("thinking", "reasoning", "reasoning_content", "redacted_thinking"):
        words = _thoughts(block)
        if not words and (block.get("data") or block.get("encrypted_content")):
            return [reasoning_part("", seen.at, seen.record, "backscroll", {"redacted": True})]
        return [reasoning_part(one, seen.at, seen.record) for one in words]
    if isinstance(text, str):
        return [text_part(text, seen.at, seen.record)] if text else []
    if kind in _CALLS or not block:
        return []
    if kind in _FILES and (file := _file(block)) is not None:
        return [PartDraft("file", file, seen.at, seen.at, records=(seen.record,))]
    rest = {key: value for key, value in block.items() if key != "type"}
    event = {"name": kind, **({"details": rest} if rest else {})}
    return [data_part("event", event, seen.at, seen.record)]


def _thoughts(block: dict[str, Any]) -> list[str]:
    """Return the words of a thought, whichever model's API they came from."""
    inner = mapping(block.get("reasoning_content")).get("text")
    for value in (block.get("thinking"), block.get("reasoning"), block.get("text"), inner):
        if isinstance(value, str) and value:
            return [value]
    told = [mapping(each).get("text") for key in ("summary", "content")
            for each in _objects(block.get(key))]  # fmt: skip
    return [text for text in told if isinstance(text, str) and text]


def _file(block: dict[str, Any]) -> dict[str, Any] | None:
    """Return the file of a block: its address, its bytes, or the id that a provider gave it."""
    source = mapping(block.get("source")) or mapping(block.get("file")) or block
    address = block.get("image_url", source.get("url", source.get("file_url")))
    if isinstance(address, dict):
        address = address.get("url")
    body = next((source[key] for key in ("base64", "data", "file_data")
                 if string(source.get(key))), None)  # fmt: skip
    head = _MIME.match(address if isinstance(address, str) else str(body or ""))
    told = next((each[key] for each in (block, source) for key in ("mime_type", "media_type")
                 if string(each.get(key))), None)  # fmt: skip
    usual = "image/*" if "image" in str(block.get("type")) else "application/octet-stream"
    mime = told or (head[1] if head else usual)
    named = source.get("file_id", source.get("id"))
    if not string(address) and body is not None:
        address = body if body.startswith("data:") else f"data:{mime};base64,{body}"
    if not string(address) and string(named):
        address = f"file-id:{named}"
    if not isinstance(address, str) or not address:
        return None
    file = {"mime": mime, "url": address}
    if string(source.get("filename")):
        file["filename"] = source["filename"]
    return file_data(file)


def _settle(part: PartDraft, seen: Seen) -> None:
    """Give a call what its tool returned."""
    data = seen.data
    shown = _output(data.get("content"), seen)
    extra: dict[str, Any] = {"status": "ok"}
    if data.get("status") == "error":
        state, extra["status"] = "output-error", "error"
        part.data["errorText"] = shown if isinstance(shown, str) else str(shown)
    else:
        state, part.data["output"] = "output-available", shown
        part.data.pop("errorText", None)
    if seen.pending:
        # Its step is not finished: it may run again.
        extra["pending"] = True
    if data.get("artifact") is not None:
        extra["structured"] = data["artifact"]
    part.data["state"] = part.tool_state = state
    part.data["resultProviderMetadata"] = {"backscroll": extra}
    part.updated_at = max(part.created_at, seen.at)
    part.records = tuple(dict.fromkeys((*part.records, seen.record)))


def _output(content: object, seen: Seen) -> Any:
    """Return what a tool returned: its text, or with other things a list that can be shown."""
    if not isinstance(content, list):
        return content if content is not None else ""
    if all(isinstance(each, str) for each in content):
        return "\n".join(content)
    blocks = [{"text": each} if isinstance(each, str) else mapping(each) for each in content]
    found = [part.data for each in blocks for part in _content_parts(each, seen)]
    texts = [data["text"] for data in found if data["type"] == "text"]
    return "\n".join(texts) if len(texts) == len(found) else [
        {"type": "text", "text": data["text"]} if data["type"] == "text" else data for data in found
    ]  # fmt: skip
