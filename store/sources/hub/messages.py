"""The hub's messages as messages of a session.

Source: the shapes of ``messages.data`` in the hub's reference; ``cost`` and ``tokens`` of an
assistant row are the sum over its ``step-finish`` parts, so these count only where the row
has none.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft, Role
from store.sources.base.values import mapping, ms_or_0, number, string
from store.sources.hub.parts import data_part, parts_of, steps_of
from store.sources.hub.stored import StoredMessage, StoredPart

_ASSISTANT = {"finish": "finish_reason", "parentID": "answers"}
_USER = {"tools": "tools", "format": "format"}


def message_draft(message: StoredMessage) -> MessageDraft:
    """Return a message with its parts."""
    role: Role = "system"
    if message.role in ("user", "assistant"):
        role = "user" if message.role == "user" else "assistant"
    steps = steps_of(message)
    times = [part.updated_at for part in message.parts]
    completed = ms_or_0(mapping(message.data.get("time")).get("completed"))
    draft = MessageDraft(
        message.id, role, message.created_at,
        max([message.created_at, message.updated_at, completed, *times]),
        parts=parts_of(message), records=(*message.records, *(step.record for step in steps)),
    )  # fmt: skip
    if role == "assistant":
        _describe_answer(draft, message, steps)
    else:
        _describe_prompt(draft, message)
    if string(message.data.get("agent")):
        draft.metadata["agent"] = message.data["agent"]
    if "unreadable" in message.data:
        details = {"text": message.data["unreadable"]}
        event = {"name": "unreadable message", "details": details}
        draft.parts.insert(0, data_part("event", event, _whole(message)))
    elif not message.role:
        _extra(draft)["orphan"] = True
    elif message.role not in ("user", "assistant", "system"):
        _extra(draft)["role"] = message.role
    return draft


def _extra(draft: MessageDraft) -> dict[str, Any]:
    extra: dict[str, Any] = draft.metadata.setdefault("backscroll", {})
    return extra


def _whole(message: StoredMessage) -> StoredPart:
    """Return a stand-in for a part that the message's own row makes."""
    record = message.records[0] if message.records else 0
    at = message.created_at
    return StoredPart(message.id, "", {}, at, max(at, message.updated_at), record)


def model_of(data: dict[str, Any]) -> dict[str, Any] | None:
    """Return ``{provider_id, model_id}`` of something with ``providerID`` and ``modelID``."""
    name = string(data.get("modelID"))
    if name is None:
        return None
    return {"provider_id": string(data.get("providerID")) or "unknown", "model_id": name}


def _describe_answer(draft: MessageDraft, message: StoredMessage, steps: list[StoredPart]) -> None:
    data, metadata = message.data, draft.metadata
    model = model_of(data)
    if model:
        metadata["model"] = model
    told = [data] if isinstance(data.get("tokens"), dict) else [step.data for step in steps]
    if any(isinstance(one.get("tokens"), dict) for one in told):
        metadata["usage"] = usage_sum(told)
    costs = [data] if _is_number(data.get("cost")) else [step.data for step in steps]
    spent = [float(one["cost"]) for one in costs if _is_number(one.get("cost"))]
    if spent:
        metadata["cost_usd"] = sum(spent)
    snapshots = [part.data.get("snapshot") for part in message.parts if part.type == "step-start"]
    if snapshots and string(snapshots[0]):
        metadata["snapshot_id"] = snapshots[0]
    extra = {name: data[key] for key, name in _ASSISTANT.items() if data.get(key)}
    cwd = string(mapping(data.get("path")).get("cwd"))
    if cwd:
        extra["cwd"] = cwd
    if len(steps) > 1:
        extra["steps"] = [step.data for step in steps]
    if extra:
        _extra(draft).update(extra)
    if data.get("error"):
        draft.parts.append(_error(draft, message))


def usage_sum(told: list[dict[str, Any]]) -> dict[str, int]:
    """Return the sum of the hub's token counts as the five buckets.

    Args:
        told: Objects with ``tokens{input, output, reasoning?, cache?{read, write}}``.
    """
    usage = dict.fromkeys(("input", "output", "reasoning", "cache_read", "cache_write"), 0)
    for one in told:
        tokens = mapping(one.get("tokens"))
        cache = mapping(tokens.get("cache"))
        for bucket in ("input", "output", "reasoning"):
            usage[bucket] += number(tokens.get(bucket))
        usage["cache_read"] += number(cache.get("read"))
        usage["cache_write"] += number(cache.get("write"))
    return usage


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _error(draft: MessageDraft, message: StoredMessage) -> PartDraft:
    error = mapping(message.data.get("error"))
    name = string(error.get("code")) or string(error.get("name")) or "error"
    text = string(error.get("message")) or string(message.data.get("error")) or ""
    _extra(draft)["error"] = name
    return data_part("error", {"name": name, "message": text}, _whole(message))


def _describe_prompt(draft: MessageDraft, message: StoredMessage) -> None:
    data = message.data
    model = model_of(mapping(data.get("model")))
    if model:
        draft.metadata["model"] = model
    if draft.role == "user":
        draft.metadata["origin"] = _origin(message)
    text = string(data.get("content"))
    if text is not None:
        part = _whole(message)
        words = {"type": "text", "text": text, "state": "done"}
        draft.parts.insert(
            0, PartDraft("text", words, part.created_at, part.updated_at, records=(part.record,))
        )
    extra = {name: data[key] for key, name in _USER.items() if data.get(key)}
    summary = mapping(data.get("summary"))
    for key in ("title", "body", "diffs"):
        if summary.get(key):
            extra[f"summary_{key}"] = summary[key]
    if extra:
        _extra(draft).update(extra)


def _origin(message: StoredMessage) -> str:
    """Return whether a person wrote a user message, or the hub did."""
    if any(part.type == "compaction" for part in message.parts):
        return "meta"
    texts = [part.data for part in message.parts if part.type == "text"]
    made = texts and len(texts) == len(message.parts)
    return "meta" if made and all(text.get("synthetic") for text in texts) else "human"
