"""Tool parts with their four states, as AI SDK tool parts.

Source: the opencode format page, section 2.5. The part's state follows the program's own
word; what really failed is reported by ``resultProviderMetadata.backscroll.status``.
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.drafts import PartDraft
from store.sources.base.stated_calls import call_data, own_word
from store.sources.base.values import mapping, ms_or_0, string
from store.sources.opencode.stored import StoredPart

_DENIED = re.compile(
    r"(?:The user rejected permission|The user has specified a rule which prevents|"
    r"The user dismissed this question)"
)
_ABORTED = re.compile(r"\[?Tool execution (?:was )?(?:aborted|interrupted)")
_KILLED = re.compile(r"<(?:bash|shell)_metadata>|<metadata>")


def tool_part(part: StoredPart) -> PartDraft:
    """Return the part of a call in whatever state it is."""
    state = mapping(part.data.get("state"))
    name = string(part.data.get("tool")) or "unknown"
    call_id = string(part.data.get("callID")) or part.id
    word = str(state.get("status"))
    data = call_data(part.data, call_id)
    if part.data.get("metadata"):
        data["callProviderMetadata"] = part.data["metadata"]
    extra = _extra(name, word, state)
    if extra:
        data["resultProviderMetadata"] = {"backscroll": extra}
    times = mapping(state.get("time"))
    began = ms_or_0(times.get("start")) or part.created_at
    ended = ms_or_0(times.get("end")) or part.updated_at
    ended = max(began, ended)
    return PartDraft(data["type"], data, began, ended, call_id, data["state"], (part.record,))


def _extra(name: str, word: str, state: dict[str, Any]) -> dict[str, Any]:
    metadata, times = mapping(state.get("metadata")), mapping(state.get("time"))
    extra: dict[str, Any] = {}
    if word in ("completed", "error"):
        extra["status"] = _status(name, word, state, metadata)
        if ms_or_0(times.get("start")) and ms_or_0(times.get("end")):
            extra["duration_ms"] = max(0, ms_or_0(times["end"]) - ms_or_0(times["start"]))
    told = own_word(state)
    if told is not None:
        extra["word"] = told
    if type(metadata.get("exit")) is int:
        extra["exit_code"] = metadata["exit"]
    if string(state.get("title")):
        extra["title"] = state["title"]
    child = string(metadata.get("sessionId"))
    if child:
        extra["child_session_source_id"] = child
    if times.get("compacted"):
        extra["pruned_at"] = times["compacted"]
    path = string(metadata.get("outputPath"))
    if path:
        extra["attachment"] = re.split(r"[/\\]", path)[-1]
    kept = {
        key: value
        for key, value in metadata.items()
        if not (key == "output" and value == state.get("output"))
    }
    if kept:
        extra["structured"] = kept
    return extra


def _status(name: str, word: str, state: dict[str, Any], metadata: dict[str, Any]) -> str:
    """Return ``ok``, ``error``, ``denied`` or ``interrupted``: what really happened."""
    if word == "error":
        text = string(state.get("error")) or ""
        if _DENIED.match(text):
            return "denied"
        aborted = _ABORTED.match(text) or metadata.get("interrupted") is True
        return "interrupted" if aborted else "error"
    output = string(state.get("output")) or ""
    if "exit" in metadata:
        if metadata["exit"] is None:
            return "interrupted" if _KILLED.search(output) else "ok"
        return "ok" if metadata["exit"] == 0 else "error"
    failed = name == "invalid" or (name == "task" and re.match(r'<task [^>]*state="error"', output))
    return "error" if failed else "ok"
