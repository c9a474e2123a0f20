"""Parts as AI SDK parts; what has no shape there as data parts.

Source: the opencode format page, section 2.5.
"""

from __future__ import annotations

from typing import Any

from store.conversation.wrapping import bare_aside, unwrapped_file
from store.sources.base.drafts import PartDraft
from store.sources.base.stated_calls import file_data
from store.sources.base.values import mapping, ms_or_0, string
from store.sources.opencode.stored import StoredPart
from store.sources.opencode.tools import tool_part

_IDS = ("id", "sessionID", "messageID", "type")


def part_of(part: StoredPart) -> PartDraft | None:
    """Return a part; None for a ``step-finish``, which is about its message."""
    kind = part.data.get("type")
    if kind == "step-finish":
        return None
    if kind == "tool":
        return tool_part(part)
    if kind == "text" and part.data.get("synthetic"):
        file = unwrapped_file(str(part.data.get("text")))
        if file is not None:
            return _draft(part, file)
    if kind in ("text", "reasoning"):
        return _words(part, kind)
    if kind == "step-start":
        return _draft(part, {"type": "step-start"})
    if kind == "file":
        return _draft(part, file_data(part.data))
    return data_part(*_data(part), part)


def data_part(name: str, data: dict[str, Any], part: StoredPart) -> PartDraft:
    """Return a ``data-<name>`` part made of a stored one.

    Args:
        name: What follows ``data-`` in its type.
        data: The part's own data.
        part: The stored part.
    """
    return _draft(part, {"type": f"data-{name}", "data": data})


def _draft(part: StoredPart, data: dict[str, Any]) -> PartDraft:
    ended = max(part.created_at, part.updated_at)
    return PartDraft(data["type"], data, part.created_at, ended, records=(part.record,))


def _words(part: StoredPart, kind: str) -> PartDraft:
    text, times = part.data.get("text"), mapping(part.data.get("time"))
    data: dict[str, Any] = {
        "type": kind,
        "text": text if isinstance(text, str) else "",
        "state": "done",
    }
    if part.data.get("synthetic"):
        data["text"] = bare_aside(data["text"])
    began, ended = ms_or_0(times.get("start")), ms_or_0(times.get("end"))
    own: dict[str, Any] = {key: True for key in ("synthetic", "ignored") if part.data.get(key)}
    if kind == "reasoning" and began and ended:
        own["duration_ms"] = max(0, ended - began)
    metadata = {key: value for key, value in mapping(part.data.get("metadata")).items()}
    metadata.pop("backscroll", None)
    if own:
        metadata["backscroll"] = own
    if metadata:
        data["providerMetadata"] = metadata
    draft = _draft(part, data)
    if began:
        draft.created_at, draft.updated_at = began, max(began, ended)
    return draft


def _data(part: StoredPart) -> tuple[str, dict[str, Any]]:
    rest = {key: value for key, value in part.data.items() if key not in _IDS}
    kind = part.data.get("type")
    if kind == "retry":
        return "retry", retry_of(rest)
    if kind == "patch":
        return "patch", rest
    if kind == "snapshot":
        return "snapshot", rest
    if kind == "agent":
        return "agent", rest
    if kind == "subtask":
        return "agent", {"name": rest.pop("agent", None), **rest}
    details = {"details": rest} if rest else {}
    return "event", {"name": string(kind) or "part", **details}


def retry_of(rest: dict[str, Any]) -> dict[str, Any]:
    """Return a try that failed: ``{attempt, message, status?, name?}``."""
    error = mapping(rest.get("error"))
    said = mapping(error.get("data")) or error
    found = {
        "attempt": rest.get("attempt"),
        "message": string(said.get("message")) or string(rest.get("error")),
        "status": said.get("statusCode"),
        "name": string(error.get("name")) or string(error.get("type")),
    }
    return {key: value for key, value in found.items() if value is not None}
