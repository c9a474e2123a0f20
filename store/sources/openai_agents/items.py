"""Items of the Responses API as messages: one for each prompt and each answer of the model.

Source: the page of agent builders. Only ``call_id`` joins a call and its output; an item's own
``id`` may be the same for all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from store.sources.base.databases import decoded
from store.sources.base.drafts import ApiAnswer, MessageDraft, PartDraft
from store.sources.base.plain_parts import (
    call_part,
    data_part,
    reasoning_part,
    settle_call,
    text_part,
)
from store.sources.base.row_session import RowSession
from store.sources.base.stated_calls import file_data
from store.sources.base.values import mapping, string

_DENIED = "Tool execution was not approved."
_FAILED = "An error occurred while running the tool"
_NO_ID = "__fake_id__"
_CALL, _OUTPUT = "_call", "_call_output"
_MIME = re.compile(r"data:([\w.+/-]+)[;,]")
_GIVEN = ("arguments", "input", "action", "queries", "code", "operation")
_RETURNED = ("output", "outputs", "results", "result")
_ABOUT = frozenset({"type", "id", "call_id", "name", "status", "provider_data", "caller"})


@dataclass(frozen=True, slots=True)
class Item:
    """A row of the table of messages.

    Attributes:
        id: The row's own id.
        data: The item; None where it could not be read.
        at: Epoch ms; whole seconds.
        record: The number of its record.
        follows: The id of the row before it in its branch.
        hidden_at: When its branch was left, epoch ms.
    """

    id: str
    data: dict[str, Any] | None
    at: int
    record: int
    follows: str | None = None
    hidden_at: int | None = None


class Messages:
    """What a session's items become."""

    def __init__(self, session: RowSession) -> None:
        """Start with no messages.

        Args:
            session: Takes problems.
        """
        self.messages: list[MessageDraft] = []
        self.owners: dict[str, MessageDraft] = {}
        """By row: the message that it went into."""
        self._session = session
        self._open: MessageDraft | None = None
        self._before: Item | None = None
        self._calls: dict[str, list[tuple[PartDraft, MessageDraft]]] = {}

    def add(self, item: Item) -> None:
        """Take the next item; those of a branch follow each other."""
        data = item.data
        if self._before is not None and item.follows != self._before.id:
            self._open = None
        self._before = item
        if data is None:
            self._event(item, "unreadable message", {})
        elif "__enc__" in data:
            self._event(item, "encrypted", {})
        else:
            self._take(item, data, string(data.get("type")) or "message")

    def _take(self, item: Item, data: dict[str, Any], kind: str) -> None:
        if kind == "message":
            self._message(item, data)
        elif kind == "reasoning":
            self._reasoning(item, data)
        elif kind.endswith(_OUTPUT):
            self._result(item, data, kind)
        elif kind.endswith(_CALL):
            self._call(item, data, kind)
        elif kind == "mcp_approval_request":
            part = self._made_call(item, data, kind.removesuffix("_request"), data.get("id"))
            part.data["approval"] = {"id": part.tool_call_id}
            part.data["state"] = part.tool_state = "approval-requested"
        elif kind == "mcp_approval_response":
            self._approval(item, data)
        elif kind == "compaction":
            body = {"summary": "", "tail_start_id": None, "auto": True}
            self._alone(item).parts.append(data_part("compaction", body, item.at, item.record))
        else:
            rest = {key: value for key, value in data.items() if key != "type"}
            self._event(item, kind, rest)

    def _message(self, item: Item, data: dict[str, Any]) -> None:
        role = data.get("role")
        if role == "assistant":
            self._content(self._answer(item, data), data.get("content"), item)
            return
        draft = self._alone(item)
        if role == "user":
            draft.role, draft.metadata["origin"] = "user", "human"
        else:
            _extra(draft)["role"] = string(role) or "none"
        self._content(draft, data.get("content"), item)

    def _content(self, draft: MessageDraft, content: object, item: Item) -> None:
        blocks = content if isinstance(content, list) else [content]
        for each in blocks:
            block = {"text": each} if isinstance(each, str) else mapping(each)
            draft.parts.append(_content_part(block, item))

    def _reasoning(self, item: Item, data: dict[str, Any]) -> None:
        draft = self._answer(item, data)
        told = [mapping(each).get("text") for key in ("summary", "content")
                for each in _listed(data.get(key))]  # fmt: skip
        words = [text for text in told if isinstance(text, str) and text]
        if words:
            draft.parts += [reasoning_part(text, item.at, item.record) for text in words]
        elif data.get("encrypted_content"):
            kept = {"redacted": True}
            draft.parts.append(reasoning_part("", item.at, item.record, "backscroll", kept))

    def _call(self, item: Item, data: dict[str, Any], kind: str) -> None:
        name = string(data.get("name")) or kind.removesuffix(_CALL)
        part = self._made_call(item, data, name, data.get("call_id"))
        if string(data.get("server_label")):
            part.data["callProviderMetadata"] = {"backscroll": {"server": data["server_label"]}}
        if "call_id" in data:
            return
        # The provider ran it: its result is in the call itself.
        part.data["providerExecuted"] = True
        returned = next((data[key] for key in _RETURNED if data.get(key) is not None), None)
        wrong, status = data.get("error"), data.get("status")
        if wrong or status in ("failed", "incomplete"):
            _settle(part, item, "error", _words(wrong if wrong else returned or status))
        elif returned is not None or status == "completed":
            _settle(part, item, "ok", "" if returned is None else returned)

    def _made_call(
        self, item: Item, data: dict[str, Any], name: str, call_id: object
    ) -> PartDraft:
        draft = self._answer(item, data)
        own = data.get("id") if data.get("id") != _NO_ID else None
        known = string(call_id) or string(own) or f"row-{item.id}"
        given = next((data[key] for key in _GIVEN if data.get(key) is not None), None)
        if given is None:
            given = {key: value for key, value in data.items()
                     if key not in _ABOUT and key not in _RETURNED}  # fmt: skip
        value = decoded(given) if isinstance(given, str) else given
        part = call_part(name, known, {} if isinstance(value, str) else value, item.at, item.record)
        if isinstance(value, str) and value:
            part.data["rawInput"] = value
        draft.parts.append(part)
        self._calls.setdefault(known, []).append((part, draft))
        return part

    def _result(self, item: Item, data: dict[str, Any], kind: str) -> None:
        call_id = string(data.get("call_id"))
        found = self._calls.get(call_id or "", [])
        # Some servers number the calls of each answer anew.
        known = next((one for one in found if one[0].tool_state == "input-available"), None)
        if known is None and found:
            known = found[-1]
        if known is None:
            self._session.complain(f"a result is of call {call_id}, which is missing")
            about: dict[str, Any] = {"call_id": call_id, "arguments": {}}
            self._open = None
            part = self._made_call(item, about, kind.removesuffix(_OUTPUT), call_id)
            owner = self.owners[item.id]
        else:
            part, owner = known
        self.owners[item.id] = owner
        self._open = None
        status, output = _outcome(data)
        _settle(part, item, status, output)
        ends = [mapping(mapping(each).get("outcome")) for each in _listed(data.get("output"))]
        codes = [end["exit_code"] for end in ends if type(end.get("exit_code")) is int]
        if codes:
            part.data["resultProviderMetadata"]["backscroll"]["exit_code"] = codes[-1]
        owner.updated_at = max(owner.updated_at, item.at)

    def _approval(self, item: Item, data: dict[str, Any]) -> None:
        found = self._calls.get(string(data.get("approval_request_id")) or "", [])
        if not found:
            self._event(item, "mcp_approval_response", {"approve": data.get("approve")})
            return
        part, owner = found[-1]
        self.owners[item.id], self._open = owner, None
        if data.get("approve") is True:
            part.data["approval"] = {"id": part.tool_call_id, "approved": True}
            _settle(part, item, "ok", "approved")
        else:
            _settle(part, item, "denied", string(data.get("reason")) or "")

    def _event(self, item: Item, name: str, details: dict[str, Any]) -> None:
        event = {"name": name, **({"details": details} if details else {})}
        self._alone(item).parts.append(data_part("event", event, item.at, item.record))

    def _alone(self, item: Item) -> MessageDraft:
        """Add a message of its own."""
        draft = MessageDraft(item.id, "system", item.at, item.at, records=(item.record,))
        if item.hidden_at is not None:
            draft.metadata["hidden_at"] = max(item.hidden_at, item.at + 1)
        self.messages.append(draft)
        self.owners[item.id], self._open = draft, None
        return draft

    def _answer(self, item: Item, data: dict[str, Any]) -> MessageDraft:
        """Return the answer that an item belongs to; a new one where none is being made."""
        provider = mapping(data.get("provider_data"))
        response = string(provider.get("response_id"))
        draft = self._open
        told = mapping(draft.metadata.get("backscroll")) if draft is not None else {}
        before = told.get("response_id")
        if draft is None or (response and before and response != before):
            draft = self._alone(item)
            draft.role = "assistant"
            # Times are whole seconds: two sessions may say the same in one.
            draft.answer = ApiAnswer(f"{self._session.id}:{item.id}:{item.at}")
        self._open = draft
        self.owners[item.id] = draft
        draft.records = tuple(dict.fromkeys((*draft.records, item.record)))
        draft.updated_at = max(draft.updated_at, item.at)
        if response:
            _extra(draft)["response_id"] = response
        model = string(provider.get("model"))
        if model:
            draft.metadata["model"] = {"provider_id": "unknown", "model_id": model}
        return draft


def _extra(draft: MessageDraft) -> dict[str, Any]:
    extra: dict[str, Any] = draft.metadata.setdefault("backscroll", {})
    return extra


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _words(value: object) -> str:
    if isinstance(value, dict):
        return string(value.get("message")) or string(value.get("content")) or str(value)
    return value if isinstance(value, str) else str(value)


def _content_part(block: dict[str, Any], item: Item) -> PartDraft:
    kind = string(block.get("type")) or ""
    text = block.get("text", block.get("refusal"))
    if isinstance(text, str):
        return text_part(text, item.at, item.record)
    file = _file(block)
    if file is not None:
        return PartDraft("file", file, item.at, item.at, records=(item.record,))
    rest = {key: value for key, value in block.items() if key != "type"}
    return data_part("event", {"name": kind or "content", "details": rest}, item.at, item.record)


def _file(block: dict[str, Any]) -> dict[str, Any] | None:
    """Return the file of a block: a picture, or any other one; None where it is none."""
    image = block.get("image_url")
    if isinstance(image, dict):
        image = image.get("url")
    audio = mapping(block.get("input_audio"))
    address = next((one for one in (image, block.get("file_data"), block.get("file_url"))
                    if isinstance(one, str) and one), None)  # fmt: skip
    if address is None and string(audio.get("data")):
        address = f"data:audio/{string(audio.get('format')) or 'wav'};base64,{audio['data']}"
    named = string(block.get("file_id"))
    if address is None and named is None:
        return None
    head = _MIME.match(address or "")
    usual = "image/*" if "image" in str(block.get("type")) else "application/octet-stream"
    about = {"mime": head[1] if head else usual, "url": address or f"file-id:{named}"}
    if string(block.get("filename")):
        about["filename"] = block["filename"]
    return file_data(about)


def _outcome(data: dict[str, Any]) -> tuple[str, Any]:
    """Return how a call ended, and its output as it is shown."""
    output = data.get("output")
    if isinstance(output, dict) and (file := _file(output)) is not None:
        output = [file]
    elif isinstance(output, list):
        output = [_shown(mapping(each)) if isinstance(each, dict) else each for each in output]
    elif output is None:
        output = ""
    texts = output if isinstance(output, list) else [output]
    first = next((text for each in texts if isinstance(
        text := each.get("text") if isinstance(each, dict) else each, str)), "")  # fmt: skip
    if first.startswith(_DENIED):
        return "denied", first
    if first.startswith(_FAILED) or data.get("status") == "failed":
        return "error", first if isinstance(output, str) or first else str(output)
    return "ok", output


def _shown(block: dict[str, Any]) -> dict[str, Any]:
    """Return a piece of an output in the form that texts and files are shown in."""
    if isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    return _file(block) or block


def _settle(part: PartDraft, item: Item, status: str, output: Any) -> None:
    """Give a call its result."""
    part.tool_state = "input-available"  # Of several results the last one counts.
    settle_call(part, status, output, item.at, item.record)
