"""Converts AI SDK parts of any agent to opencode's parts."""

from __future__ import annotations

from typing import Any

from store.exports.calls import is_content
from store.exports.steps import really_failed
from store.rows import is_tool_type
from store.text.exact_json import encode

Data = dict[str, Any]

NO_RESULT = "This call has no recorded result."


def is_tool(part: Data) -> bool:
    """Return whether a part is a tool call."""
    kind = part.get("type")
    return isinstance(kind, str) and is_tool_type(kind)


def part_of(part: Data, began: int, ended: int) -> Data | None:
    """Return an opencode part; None if opencode has no such kind of part.

    Args:
        part: The part's ``data``.
        began: Start time, epoch ms; for a call, the time of the call.
        ended: End time, epoch ms; for a call, the time of its result.
    """
    kind, time = part.get("type"), {"start": began, "end": max(began, ended)}
    if is_tool(part):
        return _tool(part, time)
    if kind in ("text", "reasoning"):
        return _words(part, time)
    if kind == "file":
        return file_of(part)
    if kind == "step-start":
        return {"type": "step-start"}
    data = part.get("data")
    if kind == "data-patch" and isinstance(data, dict):
        files, name = data.get("files"), data.get("hash")
        if isinstance(name, str) and isinstance(files, list):
            return {"type": "patch", "hash": name, "files": [str(file) for file in files]}
    return None


def _words(part: Data, time: Data) -> Data | None:
    text = part.get("text")
    blank = not isinstance(text, str) or not text.strip()
    if blank and (part["type"] == "text" or not text):
        return None
    made: Data = {"type": part["type"], "text": text, "time": time}
    metadata = part.get("providerMetadata")
    if isinstance(metadata, dict):
        own = metadata.get("backscroll")
        rest = {key: value for key, value in metadata.items() if key != "backscroll"}
        if rest:
            made["metadata"] = rest
        if isinstance(own, dict) and part["type"] == "text" and own.get("synthetic"):
            made["synthetic"] = True
    return made


def file_of(part: Data) -> Data:
    """Return a file part: ``{type, mime, url, filename?}``."""
    made = {
        "type": "file",
        "mime": str(part.get("mediaType") or "application/octet-stream"),
        "url": str(part.get("url") or ""),
    }
    if isinstance(part.get("filename"), str):
        made["filename"] = part["filename"]
    return made


def _tool(part: Data, time: Data) -> Data:
    kind = str(part.get("type"))
    name = str(part.get("toolName")) if kind == "dynamic-tool" else kind.removeprefix("tool-")
    given = part.get("input", part.get("rawInput"))
    given = given if isinstance(given, dict) else {} if given is None else {"input": given}
    made = {"type": "tool", "tool": name, "callID": str(part.get("toolCallId") or "call")}
    state, own = part.get("state"), _own(part)
    told = own.get("exit_code") not in (None, 0) or not really_failed(part)
    if state == "output-available" and told:
        text, files = _result(part.get("output"))
        metadata = {"exit": own["exit_code"]} if type(own.get("exit_code")) is int else {}
        title = own.get("title")
        done: Data = {
            "status": "completed",
            "input": given,
            "output": text,
            "title": title if isinstance(title, str) else "",
            "metadata": metadata,
            "time": time,
        }
        if files:
            done["attachments"] = files
        return {**made, "state": done}
    error = part.get("errorText")
    if state == "output-available":
        error = _result(part.get("output"))[0] or None
    if not isinstance(error, str):
        approval = part.get("approval")
        reason = approval.get("reason") if isinstance(approval, dict) else None
        denied = reason or "The user rejected this call." if state == "output-denied" else None
        error = str(denied or NO_RESULT)
    return {**made, "state": {"status": "error", "input": given, "error": error, "time": time}}


def _own(part: Data) -> Data:
    extras = part.get("resultProviderMetadata")
    own = extras.get("backscroll") if isinstance(extras, dict) else None
    return own if isinstance(own, dict) else {}


def _result(output: Any) -> tuple[str, list[Data]]:
    """Return a result's text and its files."""
    if isinstance(output, str):
        return output, []
    if not is_content(output):
        return "" if output is None else encode(output), []
    files = [file_of(one) for one in output if one["type"] == "file"]
    texts = [one["text"] for one in output if one["type"] == "text"]
    return "\n".join(texts), files
