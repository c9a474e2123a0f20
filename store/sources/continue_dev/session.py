"""From one document of Continue to its session.

Source: the Continue format page, sections 3 to 6. The document has no times: all messages are of
the moment at which the session was begun, and it was updated when its file was.
"""

from __future__ import annotations

from typing import Any

from store.conversation.wrapping import bare_aside, unwrapped_file
from store.sources.base.databases import decoded
from store.sources.base.document_source import records_of
from store.sources.base.drafts import (
    ApiAnswer,
    LineageDraft,
    MessageDraft,
    PartDraft,
    SessionDraft,
)
from store.sources.base.growing import Depends
from store.sources.base.plain_parts import (
    call_part,
    data_part,
    reasoning_part,
    settle_call,
    text_part,
)
from store.sources.base.titles import FIRST_PROMPT, first_prompt, shortened
from store.sources.base.uris import path_of_uri
from store.sources.base.values import epoch_ms, mapping, number, string
from store.sources.continue_dev.siblings import Siblings

KIND = "continue"
_PLACEHOLDERS = ("Untitled Session", "New Session")
_DENIED = "Permission denied by user"
_EXIT_CODE = "Error (exit code "


def session_draft(
    path: str, data: dict[str, Any], created: int, moved: int, siblings: Siblings,
    depends: Depends,
) -> SessionDraft:
    """Return the session of a document.

    Args:
        path: Its file.
        data: The document.
        created: When the list says that it was begun, epoch ms; 0 where it does not.
        moved: When the file was written last, epoch ms.
        siblings: The other sessions of the folder.
        depends: Takes what it was compared with.
    """
    history = [mapping(each) for each in data["history"]]
    created = created or moved
    made = _History(created)
    for place, item in enumerate(history):
        made.take(place, item)
    draft = SessionDraft(
        str(data["sessionId"]), path, KIND, created, max(created, moved),
        workspace_root=_folder(data.get("workspaceDirectory")), messages=made.found,
        records=records_of(data, data["history"], "history"), names_count=True, tells_title=True,
    )  # fmt: skip
    title = string(data.get("title"))
    if title and title not in _PLACEHOLDERS:
        draft.title, draft.title_from = shortened(title), "title"
    else:
        draft.title = first_prompt(draft.messages)
        draft.title_from = FIRST_PROMPT if draft.title else None
    models = [each.metadata["model"] for each in draft.messages if "model" in each.metadata]
    named = string(data.get("chatModelTitle"))
    if models:
        draft.model = models[-1]
    elif named:
        draft.model = {"provider_id": "unknown", "model_id": named}
    if string(data.get("mode")):
        draft.metadata["backscroll"] = {"mode": data["mode"]}
    activity = made.activity(created)
    if activity is not None:
        draft.metadata["activity"] = activity
    for message in draft.messages:
        if "usage" in message.metadata:
            # Without times, two sessions that say the same would hold one answer.
            message.answer = ApiAnswer(f"{draft.source_id}:{message.source_id}")
    _link(draft, data, history, siblings, depends)
    _count_rest(draft, data)
    return draft


class _History:
    """The messages of a session's history."""

    def __init__(self, at: int) -> None:
        self.found: list[MessageDraft] = []
        self._begun = self._at = at
        self._calls: dict[str, PartDraft] = {}
        self._thought: tuple[PartDraft, int] | None = None

    def take(self, place: int, item: dict[str, Any]) -> None:
        """Take the next item of the history; of a copy that our export made also what it is of."""
        note, before = mapping(item.get("backscroll")), len(self.found)
        self._at = epoch_ms(note.get("at")) or self._begun
        self._take(place, item)
        for draft in self.found[before:] if string(note.get("message")) else ():
            draft.inherited_from = note["message"]
            if note.get("aside") is True:
                draft.metadata["origin"] = "meta"
            for part in (part for part in draft.parts if part.type == "text"):
                text = part.data["text"]
                part.data["text"] = bare_aside(text) if note.get("aside") is True else text
                file = unwrapped_file(text) if draft.role == "user" else None
                if file is not None:
                    part.type, part.data = "file", file

    def _take(self, place: int, item: dict[str, Any]) -> None:
        message, record = mapping(item.get("message")), place + 1
        role = message.get("role")
        if role == "thinking":
            part = reasoning_part(_text(message), self._at, record)
            self._thought = part, place
            return
        if role == "tool":
            self._result(place, message, record)
            return
        summary = string(item.get("conversationSummary"))
        if summary is not None and role == "assistant" and _text(message) == summary:
            self._compact(f"{place}", summary, record)
            return
        if role == "assistant" or item.get("toolCallStates") or message.get("toolCalls"):
            self._answer(place, item, message, record)
        elif role == "user":
            parts = [*_contents(message, self._at, record), *_contexts(item, self._at, record)]
            self._add(f"{place}", "user", {"origin": "human"}, parts, record)
        else:
            parts = _contents(message, self._at, record)
            self._add(f"{place}", "user", {"origin": "meta"}, parts, record)
        if summary is not None:
            self._compact(f"{place}:summary", summary, record)

    def _add(
        self, name: str, role: Any, metadata: dict[str, Any], parts: list[PartDraft], record: int
    ) -> None:
        if self._thought is not None:
            part, place = self._thought
            self._thought = None
            if role == "assistant":
                parts = [part, *parts]
            else:
                self.found.append(
                    MessageDraft(f"{place}", "assistant", self._at, self._at, {}, [part]))
        draft = MessageDraft(name, role, self._at, self._at, metadata, parts)
        if not parts:
            draft.records = (record,)
        self.found.append(draft)

    def _answer(
        self, place: int, item: dict[str, Any], message: dict[str, Any], record: int
    ) -> None:
        metadata, at = _answered(message), self._at
        parts: list[PartDraft] = []
        thought = mapping(item.get("reasoning"))
        if string(thought.get("text")):
            parts.append(reasoning_part(str(thought["text"]), at, record))
        parts += _contents(message, at, record)
        states = item.get("toolCallStates")
        known = {string(state.get("toolCallId")): state
                 for state in map(mapping, states if isinstance(states, list) else ())}
        calls = message.get("toolCalls")
        for nth, call in enumerate(map(mapping, calls if isinstance(calls, list) else ())):
            part = _call(call, f"{place}:{nth}", at, record)
            parts.append(part)
            self._calls[str(part.tool_call_id)] = part
            state = known.get(part.tool_call_id)
            if state is not None:
                _settle(part, state, record)
        self._add(f"{place}", "assistant", metadata, parts, record)

    def _result(self, place: int, message: dict[str, Any], record: int) -> None:
        """Take a result that older extensions wrote as a message; most stand twice."""
        part = self._calls.get(string(message.get("toolCallId")) or "")
        if part is None:
            call: dict[str, Any] = {"id": message.get("toolCallId"), "function": {}}
            part = _call(call, f"{place}", self._at, record)
            self._add(f"{place}", "assistant", {}, [part], record)
        settle_call(part, "ok", _text(message), part.updated_at, record)

    def _compact(self, name: str, summary: str, record: int) -> None:
        body = {"summary": summary, "tail_start_id": None, "auto": False}
        part = data_part("compaction", body, self._at, record)
        self._add(name, "system", {"compaction": True}, [part], record)

    def activity(self, since: int) -> dict[str, Any] | None:
        """Return what the end of the history says; None where its turn ended."""
        last = next((each for each in reversed(self.found) if each.role != "system"), None)
        if last is None:
            return None
        states = {part.tool_state for part in last.parts if part.tool_call_id}
        if "approval-requested" in states:
            return {"state": "waiting-approval", "from": "stored", "since": since}
        if last.role == "user" or "input-available" in states:
            return {"state": "running", "from": "guessed", "since": since}
        return None


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = map(mapping, content if isinstance(content, list) else ())
    texts = (block.get("text") for block in blocks if block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def _contents(message: dict[str, Any], at: int, record: int) -> list[PartDraft]:
    content = message.get("content")
    if isinstance(content, str):
        return [text_part(content, at, record)] if content else []
    parts: list[PartDraft] = []
    for block in map(mapping, content if isinstance(content, list) else ()):
        url = string(mapping(block.get("imageUrl")).get("url"))
        if block.get("type") == "text":
            text = block.get("text")
            parts.append(text_part(text if isinstance(text, str) else "", at, record))
        elif url is not None:
            kind = url[5:].partition(";")[0] if url.startswith("data:") else "image/*"
            file = {"type": "file", "mediaType": kind or "image/*", "url": url}
            parts.append(PartDraft("file", file, at, at, records=(record,)))
        else:
            event = {"name": str(block.get("type") or "block"), "details": block}
            parts.append(data_part("event", event, at, record))
    return parts


def _contexts(item: dict[str, Any], at: int, record: int) -> list[PartDraft]:
    """Return what the person attached: files and selections, by name and content."""
    given = item.get("contextItems")
    return [
        data_part("event", {"name": "context", "details": {
            "name": str(each.get("name") or ""), "content": str(each.get("content") or "")}},
            at, record)
        for each in map(mapping, given if isinstance(given, list) else ())
    ]  # fmt: skip


def _call(call: dict[str, Any], name: str, at: int, record: int) -> PartDraft:
    function = mapping(call.get("function"))
    given = decoded(function.get("arguments"))
    return call_part(function.get("name"), string(call.get("id")) or name,
                     {} if given == "" else given, at, record)  # fmt: skip


def _settle(part: PartDraft, state: dict[str, Any], record: int) -> None:
    """Put a call's state into its part."""
    said, data = string(state.get("status")) or "", part.data
    given = state.get("output")
    outputs = [mapping(each) for each in given] if isinstance(given, list) else []
    text = "\n".join(str(each.get("content") or "") for each in outputs)
    extra: dict[str, Any] = {}
    status = None
    if said == "generating":
        data["state"] = part.tool_state = "input-streaming"
    elif said == "generated":
        data["state"] = part.tool_state = "approval-requested"
        data["approval"] = {"id": part.tool_call_id}
    elif said == "done":
        status = "ok"
    elif said == "canceled" and (text.startswith(_DENIED) or not text):
        status = "denied"
    elif said in ("errored", "canceled"):
        status = "error" if said == "errored" else "interrupted"
        _, found, rest = text.partition(_EXIT_CODE)
        code = rest.partition(")")[0]
        if found and code.isdecimal() and len(code) < 10:
            extra["exit_code"] = int(code)
    elif said not in ("", "calling") and text:
        status, extra["word"] = "ok", said
    if status is not None:
        settle_call(part, status, text, part.updated_at, record, extra)


def _answered(message: dict[str, Any]) -> dict[str, Any]:
    """Return what an answer says of itself: usage, model, cost.

    With OpenAI's form the prompt includes what was read from the cache, with Anthropic's, which
    has ``cache_read_tokens``, it does not.
    """
    usage = mapping(message.get("usage"))
    if not usage:
        return {}
    asked = mapping(usage.get("prompt_tokens_details"))
    given, said = number(usage.get("prompt_tokens")), number(usage.get("completion_tokens"))
    if "cache_read_tokens" in asked:
        read, write = number(asked["cache_read_tokens"]), number(asked.get("cache_write_tokens"))
    else:
        read, write = number(asked.get("cached_tokens")), 0
        given -= read
    details = mapping(usage.get("completion_tokens_details"))
    reasoning = min(max(0, number(details.get("reasoning_tokens"))), max(0, said))
    found: dict[str, Any] = {"usage": {
        "input": max(0, given), "output": max(0, said) - reasoning, "reasoning": reasoning,
        "cache_read": max(0, read), "cache_write": max(0, write),
    }}  # fmt: skip
    model = string(usage.get("model"))
    if model:
        found["model"] = {"provider_id": "unknown", "model_id": model}
    cents = usage.get("cost_cents")
    if isinstance(cents, int | float) and 0 < cents < 1e9:
        found["cost_usd"] = cents / 100
    return found


def _folder(value: object) -> str | None:
    """Return a workspace: a path, or the path of the file URI that extensions write."""
    if not isinstance(value, str) or not value:
        return None
    return path_of_uri(value) if value.startswith("file:") else value


def _link(
    draft: SessionDraft, data: dict[str, Any], history: list[dict[str, Any]], siblings: Siblings,
    depends: Depends,
) -> None:
    """Say what a fork was copied from: its total is less than what its messages say."""
    told = mapping(data.get("usage"))
    asked = sum(number(mapping(mapping(item.get("message")).get("usage")).get("prompt_tokens"))
                for item in history)  # fmt: skip
    if not told or number(told.get("promptTokens")) >= asked:
        return
    original = siblings.original(draft.path, data["history"], depends)
    if original is None or original.session == draft.source_id:
        return
    copied = [each for each in draft.messages
              if int(each.source_id.partition(":")[0]) < original.items]  # fmt: skip
    for message in copied:
        message.inherited_from = message.source_id
    at = copied[-1].source_id if copied else None
    draft.lineage = LineageDraft("fork", original.session, at)


def _count_rest(draft: SessionDraft, data: dict[str, Any]) -> None:
    """Count what the session spent on messages that a compaction took out of its file."""
    told = mapping(data.get("usage"))
    own = [each.metadata["usage"] for each in draft.messages
           if "usage" in each.metadata and each.inherited_from is None]  # fmt: skip
    asked = sum(each["input"] + each["cache_read"] for each in own)
    said = sum(each["output"] + each["reasoning"] for each in own)
    rest = {"input": max(0, number(told.get("promptTokens")) - asked),
            "output": max(0, number(told.get("completionTokens")) - said)}  # fmt: skip
    if not any(rest.values()) or not any("compaction" in m.metadata for m in draft.messages):
        return
    at = draft.created_at
    used = MessageDraft("usage", "assistant", at, at, {
        "usage": {**rest, "reasoning": 0, "cache_read": 0, "cache_write": 0},
        "backscroll": {"no_answer": True, "initiator": "compacted"}})  # fmt: skip
    used.records = (0,)
    draft.messages.append(used)
