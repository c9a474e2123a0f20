"""Sessions of 0.1.x: one JSON document each, rewritten whole.

Source: the Qwen Code format page, section 6: the shape of Gemini CLI's older files, with answers
of the type ``qwen``.
"""

from __future__ import annotations

import os
from typing import Any

from store.sources.base.document_source import records_of
from store.sources.base.drafts import MessageDraft, PartDraft, SessionDraft
from store.sources.base.plain_parts import call_part, data_part, reasoning_part, text_part
from store.sources.base.titles import FIRST_PROMPT, first_prompt
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.qwen.content import (
    part_of,
    settle,
    usage_of,
    words_of,
)
from store.sources.qwen.session import KIND

_COUNTS = ("input", "cached", "output", "thoughts", "total")
_STATES = ("success", "error", "cancelled")


def holds_session(data: Any) -> bool:
    """Return whether a document is a session of 0.1.x: one answer has the type ``qwen``."""
    return is_older(data) and any(mapping(each).get("type") == KIND for each in data["messages"])


def is_older(data: Any) -> bool:
    """Return whether a document has the members of such a session."""
    return (isinstance(data, dict) and string(data.get("sessionId")) is not None
            and isinstance(data.get("messages"), list))  # fmt: skip


def older_draft(path: str, data: dict[str, Any]) -> SessionDraft:
    """Return the draft of a document's session.

    Args:
        path: The file.
        data: What it holds; ``is_older`` is true of it.
    """
    messages = [mapping(each) for each in data["messages"]]
    times = [at for each in messages if (at := epoch_ms(each.get("timestamp")))]
    started, ended = epoch_ms(data.get("startTime")), epoch_ms(data.get("lastUpdated"))
    times += [at for at in (started, ended) if at]
    draft = SessionDraft(
        data["sessionId"], path, KIND, started or min(times, default=0), max(times, default=0),
        records=records_of(data, data["messages"], "messages"),
    )  # fmt: skip
    at, names = draft.created_at, set[str]()
    for number, message in enumerate(messages, 1):
        at = epoch_ms(message.get("timestamp")) or at
        name = string(message.get("id"))
        if name is None or name in names:
            name = f"message-{number}"
        names.add(name)
        draft.messages.append(_message(message, name, at, number))
    models = [each.metadata["model"] for each in draft.messages if "model" in each.metadata]
    draft.model = models[-1] if models else None
    draft.title = first_prompt(draft.messages)
    draft.title_from = FIRST_PROMPT if draft.title else None
    project = string(data.get("projectHash")) or os.path.basename(
        os.path.dirname(os.path.dirname(path)))
    draft.metadata["backscroll"] = {"project_hash": project}
    activity = _activity(draft.messages)
    if activity is not None:
        draft.metadata["activity"] = activity
    return draft


def _message(message: dict[str, Any], name: str, at: int, number: int) -> MessageDraft:
    kind, content = message.get("type"), message.get("content")
    parts = _contents(content, name, at, number)
    if kind == "user":
        draft = MessageDraft(name, "user", at, at, {"origin": "human"}, parts)
    elif kind == KIND:
        draft = MessageDraft(name, "assistant", at, at)
        if string(message.get("model")):
            draft.metadata["model"] = {"provider_id": "unknown", "model_id": message["model"]}
        counts = mapping(message.get("tokens"))
        if counts:
            draft.metadata["usage"] = usage_of([counts.get(key) for key in _COUNTS])
        draft.parts = [*_thoughts(message, at, number), *parts, *_calls(message, name, at, number)]
        draft.updated_at = max([at, *(part.updated_at for part in draft.parts)])
    elif kind == "error":
        error = data_part("error", {"message": words_of(content)}, at, number)
        draft = MessageDraft(name, "system", at, at, {}, [error])
    else:
        event = {"name": str(kind or "message"), "details": message}
        draft = MessageDraft(name, "system", at, at, {}, [data_part("event", event, at, number)])
    if not draft.parts:
        draft.records = (number,)
    return draft


def _contents(content: object, name: str, at: int, number: int) -> list[PartDraft]:
    if isinstance(content, str):
        return [text_part(content, at, number)] if content else []
    items = content if isinstance(content, list) else []
    parts = [item if isinstance(item, dict) else {"text": str(item)} for item in items]
    return [part_of(part, f"{name}:{place}", at, number) for place, part in enumerate(parts)]


def _thoughts(message: dict[str, Any], at: int, number: int) -> list[PartDraft]:
    thoughts = message.get("thoughts")
    found: list[PartDraft] = []
    for thought in map(mapping, thoughts if isinstance(thoughts, list) else ()):
        lines = (string(thought.get("subject")), string(thought.get("description")))
        text = "\n".join(line for line in lines if line)
        found += [reasoning_part(text, at, number)] if text else []
    return found


def _calls(message: dict[str, Any], name: str, at: int, number: int) -> list[PartDraft]:
    calls = message.get("toolCalls")
    found: list[PartDraft] = []
    for place, call in enumerate(map(mapping, calls if isinstance(calls, list) else ())):
        call_id = string(call.get("id")) or f"{name}:call-{place}"
        part = call_part(call.get("name"), call_id, call.get("args"), at, number)
        result = call.get("result")
        if call.get("status") in _STATES or result:
            responses = [mapping(each) for each in result] if isinstance(result, list) else []
            settle(part, responses, call, epoch_ms(call.get("timestamp")) or at, number)
        found.append(part)
    return found


def _activity(messages: list[MessageDraft]) -> dict[str, Any] | None:
    """Return what the last message says: after a prompt, or open calls, an answer is awaited."""
    last = messages[-1] if messages else None
    if last is None or last.role == "system":
        return None
    is_open = any(part.tool_state == "input-available" for part in last.parts)
    if last.role == "user" or is_open:
        return {"state": "running", "from": "guessed", "since": last.updated_at}
    return None
