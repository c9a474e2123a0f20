"""Messages of versions up to 0.4 in the form of those after.

They hold their parts, and everything else in ``metadata``: ``time``, ``assistant``,
``error``, and ``tool`` with title, time and the rest of each call by its id. Source: stores
that version 0.1.174 wrote.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.values import mapping, string

Data = dict[str, Any]
_STATES = {"call": "running", "partial-call": "pending", "result": "completed"}


def is_first_form(data: Data) -> bool:
    """Return whether a message holds its own parts."""
    return isinstance(data.get("parts"), list) and isinstance(data.get("metadata"), dict)


def later_form(data: Data) -> tuple[Data, list[Data]]:
    """Return a message's info and its parts as later versions write them."""
    metadata = mapping(data.get("metadata"))
    info: Data = {key: data[key] for key in ("id", "role") if key in data}
    info |= mapping(metadata.get("assistant"))
    info["time"] = mapping(metadata.get("time"))
    if metadata.get("error"):
        info["error"] = metadata["error"]
    called = mapping(metadata.get("tool"))
    parts = [_part(part, called) for part in data["parts"] if isinstance(part, dict)]
    return info, parts


def _part(part: Data, called: Data) -> Data:
    kind = part.get("type")
    if kind == "file":
        return {**part, "mime": part.get("mediaType")}
    if kind == "tool-invocation":
        return _call(mapping(part.get("toolInvocation")), called)
    return part


def _call(given: Data, called: Data) -> Data:
    call_id = string(given.get("toolCallId")) or ""
    told = dict(mapping(called.get(call_id)))
    title, time = told.pop("title", None), told.pop("time", None)
    status = _STATES.get(str(given.get("state")), "running")
    state: Data = {"status": status, "input": given.get("args"), "metadata": told}
    if status == "completed" and told.get("error"):
        state |= {"status": "error", "error": told.get("message") or given.get("result")}
    elif status == "completed":
        state["output"] = given.get("result")
    state |= {key: value for key, value in (("title", title), ("time", time)) if value}
    return {"type": "tool", "tool": given.get("toolName"), "callID": call_id, "state": state}
