"""Stored messages as messages of a session.

Source: the opencode format page, section 2.4. Each model step is a message of its own, as
the program keeps it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from store.conversation.wrapping import unwrapped_file
from store.sources.base.drafts import MessageDraft, PartDraft, Role
from store.sources.base.values import mapping, ms_or_0, number, string
from store.sources.opencode.parts import data_part, part_of
from store.sources.opencode.stored import StoredMessage, StoredPart

# ``input`` is without what came from or went to the cache, ``output`` as the program counts
# it (opencode format page, section 2.7). A message's own numbers are those of its last step,
# so they count only where no step was written.
Usage = dict[str, int]


def usage_of(message: StoredMessage) -> tuple[Usage | None, float | None]:
    """Return the tokens and the cost in dollars; None where there are none."""
    steps = [part.data for part in message.parts if part.data.get("type") == "step-finish"]
    if not steps:
        return _own(message.data)
    usage: Usage = {}
    for step in steps:
        for name, count in buckets(step.get("tokens")).items():
            usage[name] = usage.get(name, 0) + count
    costs = [cost for step in steps if (cost := _cost(step)) is not None]
    return usage, sum(costs) if costs else None


def _own(data: dict[str, Any]) -> tuple[Usage | None, float | None]:
    usage, cost = buckets(data.get("tokens")), _cost(data)
    return (usage if any(usage.values()) else None), (cost or None)


def buckets(tokens: Any) -> Usage:
    """Return the program's token counts as the five buckets."""
    counts = mapping(tokens)
    cache = mapping(counts.get("cache"))
    return {
        "input": number(counts.get("input")),
        "output": number(counts.get("output")),
        "reasoning": number(counts.get("reasoning")),
        "cache_read": number(cache.get("read")),
        "cache_write": number(cache.get("write")),
    }


def _cost(data: dict[str, Any]) -> float | None:
    cost = data.get("cost")
    known = isinstance(cost, int | float) and not isinstance(cost, bool)
    return float(cost) if known and cost is not None else None


_ASSISTANT = {
    "finish": "finish_reason",
    "parentID": "answers",
    "mode": "mode",
    "structured": "structured",
    "shell": "shell",
}
_USER = {"tools": "tools", "format": "format", "variant": "variant"}


def message_draft(message: StoredMessage) -> MessageDraft:
    """Return a message with its parts."""
    word = message.data.get("role")
    role: Role = word if word in ("user", "assistant") else "system"
    parts = [made for part in message.parts if (made := part_of(part)) is not None]
    silent = [part.record for part in message.parts if part.data.get("type") == "step-finish"]
    draft = MessageDraft(
        message.id, role, message.created_at, _last_moved(message), parts=parts,
        records=(*message.records, *silent),
    )  # fmt: skip
    if role == "assistant":
        _describe_answer(draft, message)
    else:
        _describe_prompt(draft, message, role)
    if string(message.data.get("system")):
        draft.metadata["system_prompt_digest"] = digest_of(message.data["system"])
    if string(message.data.get("agent")):
        draft.metadata["agent"] = message.data["agent"]
    if "unreadable" in message.data:
        draft.parts.insert(0, _event("unreadable message", message))
    elif word is None and not message.data:
        _extra(draft)["orphan"] = True
    return draft


def _last_moved(message: StoredMessage) -> int:
    times = [part.updated_at for part in message.parts]
    completed = ms_or_0(mapping(message.data.get("time")).get("completed"))
    return max([message.created_at, message.updated_at, completed, *times])


def _extra(draft: MessageDraft) -> dict[str, Any]:
    extra: dict[str, Any] = draft.metadata.setdefault("backscroll", {})
    return extra


def model_of(data: dict[str, Any]) -> dict[str, Any] | None:
    """Return a model as ``{provider_id, model_id, variant?}``.

    Args:
        data: Holds ``providerID``, ``modelID`` or ``id``, and perhaps ``variant``.
    """
    name = string(data.get("modelID")) or string(data.get("id"))
    if name is None:
        return None
    model = {"provider_id": string(data.get("providerID")) or "unknown", "model_id": name}
    if string(data.get("variant")):
        model["variant"] = data["variant"]
    return model


def _describe_answer(draft: MessageDraft, message: StoredMessage) -> None:
    data, metadata = message.data, draft.metadata
    model = model_of({key: data.get(key) for key in ("modelID", "providerID", "variant")})
    model = model or model_of(mapping(data.get("model")))
    if model:
        metadata["model"] = model
    usage, cost = usage_of(message)
    if usage is not None:
        metadata["usage"] = usage
    if cost is not None:
        metadata["cost_usd"] = cost
    started = next((p.data["snapshot"] for p in message.parts if p.data.get("snapshot")), None)
    if isinstance(started, str):
        metadata["snapshot_id"] = started
    extra = {name: data[key] for key, name in _ASSISTANT.items() if data.get(key)}
    cwd = string(mapping(data.get("path")).get("cwd"))
    if cwd:
        extra["cwd"] = cwd
    if extra:
        _extra(draft).update(extra)
    if data.get("error"):
        _add_error(draft, message)


def _add_error(draft: MessageDraft, message: StoredMessage) -> None:
    error = mapping(message.data.get("error"))
    said = mapping(error.get("data"))
    found = {
        "name": string(error.get("name")) or "UnknownError",
        "message": string(said.get("message")) or string(message.data.get("error")) or "",
        "status": said.get("statusCode"),
        "retryable": said.get("isRetryable"),
        "provider": said.get("providerID"),
    }
    found = {key: value for key, value in found.items() if value is not None}
    draft.parts.append(data_part("error", found, _whole(message)))
    _extra(draft)["error"] = found["name"]
    if found["name"] == "MessageAbortedError":
        completed = ms_or_0(mapping(message.data.get("time")).get("completed"))
        _extra(draft)["aborted_at"] = completed or draft.updated_at


def _whole(message: StoredMessage) -> StoredPart:
    """Return a stand-in for a part that the message's own record makes."""
    record = message.records[0] if message.records else 0
    return StoredPart(message.id, {}, message.updated_at, message.updated_at, record)


def _event(name: str, message: StoredMessage) -> PartDraft:
    text = message.data.get("unreadable")
    return data_part("event", {"name": name, "details": {"text": text}}, _whole(message))


def _describe_prompt(draft: MessageDraft, message: StoredMessage, role: Role) -> None:
    data = message.data
    if role == "user":
        draft.metadata["origin"] = _origin(message)
    if data.get("queued"):
        draft.metadata["queued_at"] = data["queued"]
    model = model_of(mapping(data.get("model")))
    if model:
        draft.metadata["model"] = model
    extra = {name: data[key] for key, name in _USER.items() if data.get(key)}
    summary = mapping(data.get("summary"))
    extra |= {f"summary_{key}": summary[key] for key in ("title", "body") if summary.get(key)}
    if role == "system" and data.get("role") not in (None, "system"):
        extra["role"] = data["role"]
    if extra:
        _extra(draft).update(extra)


def _origin(message: StoredMessage) -> str:
    """Return what a user message is: human, command, shell or meta."""
    kinds = [part.data.get("type") for part in message.parts]
    texts = [part.data for part in message.parts if part.data.get("type") == "text"]
    if "compaction" in kinds:
        return "meta"
    if "subtask" in kinds:
        return "command"
    if any(unwrapped_file(str(text.get("text"))) for text in texts if text.get("synthetic")):
        return "human"
    if kinds and len(texts) == len(kinds) and all(text.get("synthetic") for text in texts):
        shell = any("tool was executed by the user" in str(text.get("text")) for text in texts)
        return "shell" if shell else "meta"
    return "human"


def digest_of(prompt: str) -> str:
    """Return the name of a system prompt."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
