"""The hub's parts as AI SDK parts; what has no shape there as data parts.

Source: the table of part types in the hub's reference. A tool call may have several rows,
one per state (the hub format page): the newest tells its result, the others stay
among the part's records.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import PartDraft
from store.sources.base.stated_calls import call_data, file_data, own_word
from store.sources.base.values import mapping, ms_or_0, string
from store.sources.hub.stored import StoredMessage, StoredPart

_SILENT = "step-finish"
"""Tells of its message; it is no part of it."""


def parts_of(message: StoredMessage) -> list[PartDraft]:
    """Return the parts of a message, each call once, where its first row stands."""
    calls: dict[str, list[StoredPart]] = {}
    for part in message.parts:
        if part.type == "tool" and not _is_unreadable(part):
            calls.setdefault(call_id_of(part), []).append(part)
    found: list[PartDraft] = []
    for part in message.parts:
        if _is_unreadable(part):
            details = {"type": part.type, "text": part.data["unreadable"]}
            event = {"name": "unreadable part", "details": details}
            found.append(data_part("event", event, part))
        elif part.type == "tool":
            versions = calls.pop(call_id_of(part), None)
            if versions is not None:
                found.append(_tool_part(versions))
        elif part.type != _SILENT:
            found.append(_part_of(part))
    return found


def steps_of(message: StoredMessage) -> list[StoredPart]:
    """Return the parts that mark the model's steps."""
    return [
        part for part in message.parts if part.type == _SILENT and not _is_unreadable(part)]


def _is_unreadable(part: StoredPart) -> bool:
    """Return whether the row holds no JSON object, so that nothing of it has a name."""
    return part.data.keys() == {"unreadable"}


def call_id_of(part: StoredPart) -> str:
    """Return the id of the call that a row of a tool belongs to."""
    return string(part.data.get("callID")) or part.id


def data_part(name: str, data: dict[str, Any], part: StoredPart) -> PartDraft:
    """Return a ``data-<name>`` part made of a row.

    Args:
        name: What follows ``data-`` in its type.
        data: The part's own data.
        part: The row.
    """
    return _draft(part, {"type": f"data-{name}", "data": data})


def _draft(part: StoredPart, data: dict[str, Any]) -> PartDraft:
    ended = max(part.created_at, part.updated_at)
    return PartDraft(data["type"], data, part.created_at, ended, records=(part.record,))


def _part_of(part: StoredPart) -> PartDraft:
    if part.type in ("text", "reasoning"):
        return _words(part)
    if part.type == "file":
        return _draft(part, file_data(part.data))
    if part.type == "step-start":
        return _draft(part, {"type": "step-start"})
    if part.type in ("patch", "snapshot", "agent"):
        return data_part(part.type, part.data, part)
    details = {"details": part.data} if part.data else {}
    return data_part("event", {"name": part.type, **details}, part)


def _words(part: StoredPart) -> PartDraft:
    text, times = part.data.get("text"), mapping(part.data.get("time"))
    data: dict[str, Any] = {
        "type": part.type,
        "text": text if isinstance(text, str) else "",
        "state": "done",
    }
    began, ended = ms_or_0(times.get("start")), ms_or_0(times.get("end"))
    own: dict[str, Any] = {key: True for key in ("synthetic", "ignored") if part.data.get(key)}
    if part.type == "reasoning" and began and ended:
        own["duration_ms"] = max(0, ended - began)
    metadata = dict(mapping(part.data.get("metadata")))
    if own:
        metadata["backscroll"] = own
    if metadata:
        data["providerMetadata"] = metadata
    draft = _draft(part, data)
    if began:
        draft.created_at, draft.updated_at = began, max(began, ended)
    return draft


def _tool_part(versions: list[StoredPart]) -> PartDraft:
    """Return the part of a call; ``versions`` are its rows, oldest first."""
    first, newest = versions[0], versions[-1]
    state, call_id = mapping(newest.data.get("state")), call_id_of(newest)
    data = call_data(newest.data, call_id)
    extra = _extra(str(state.get("status")), state)
    if extra:
        data["resultProviderMetadata"] = {"backscroll": extra}
    times = mapping(state.get("time"))
    began = ms_or_0(times.get("start")) or first.created_at
    ended = ms_or_0(times.get("end")) or newest.updated_at
    records = tuple(part.record for part in reversed(versions))
    ended = max(began, ended)
    return PartDraft(data["type"], data, began, ended, call_id, data["state"], records)


def _extra(word: str, state: dict[str, Any]) -> dict[str, Any]:
    metadata, times = mapping(state.get("metadata")), mapping(state.get("time"))
    extra: dict[str, Any] = {}
    code = metadata.get("exit")
    if word in ("completed", "error"):
        failed = word == "error" or (type(code) is int and code != 0)
        extra["status"] = "error" if failed else "ok"
        if ms_or_0(times.get("start")) and ms_or_0(times.get("end")):
            extra["duration_ms"] = max(0, ms_or_0(times["end"]) - ms_or_0(times["start"]))
    told = own_word(state)
    if told is not None:
        extra["word"] = told
    if type(code) is int:
        extra["exit_code"] = code
    if string(state.get("title")):
        extra["title"] = state["title"]
    if times.get("compacted"):
        extra["compacted"] = True
    if metadata:
        extra["structured"] = metadata
    return extra
