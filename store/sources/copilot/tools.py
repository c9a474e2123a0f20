"""Tool calls of Copilot CLI as AI SDK tool parts.

Source: the Copilot section of the format page: ``success`` says what the program made of a
call, so that a command that exits with 3 is a success; its exit code is beside it.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.diffs import hunks_of
from store.sources.base.drafts import PartDraft
from store.sources.base.values import mapping, string
from store.sources.copilot.event import Event

_DENIED_CODES = ("denied", "rejected")
_BROKEN_OFF_CODES = ("interrupted", "aborted", "cancelled")
_OPEN = ("input-available", "approval-requested")
_BROKEN_OFF = "Broken off before a result was there"
_DENIED_STARTS = ("The user rejected", "Permission denied by", "The tool call required approval")


def call_part(name: str, call_id: str, given: object, event: Event) -> PartDraft:
    """Return the part of a call that has no result yet.

    Args:
        name: The tool's name.
        call_id: The call's id.
        given: Its arguments.
        event: The event that reports it.
    """
    kind = f"tool-{name}"
    data: dict[str, Any] = {
        "type": kind,
        "toolCallId": call_id,
        "state": "input-available",
        "input": given if given is not None else {},
    }
    return PartDraft(kind, data, event.at, event.at, call_id, "input-available", (event.number,))


def settle(part: PartDraft, event: Event, started: int | None) -> None:
    """Put ``tool.execution_complete`` into the part of its call; a second one is left out.

    Args:
        part: The call's part.
        event: What completed it.
        started: When it began to run, epoch ms.
    """
    part.records = (*part.records, event.number)
    if part.tool_state not in _OPEN and part.data.get("errorText") != _BROKEN_OFF:
        return
    part.data.pop("errorText", None)
    data, result = event.data, mapping(event.data.get("result"))
    error = data.get("error")
    failure = string(mapping(error).get("message")) or string(error)
    text = result.get("content")
    output = text if isinstance(text, str) else failure or ""
    begun = started if started is not None else part.created_at
    extra: dict[str, Any] = {"status": "ok", "duration_ms": max(event.at - begun, 0)}
    code = mapping(data.get("shellExecution")).get("exitCode")
    if isinstance(code, int):
        extra["exit_code"] = code
        extra["status"] = "error" if code else "ok"
    structured = _structured(data, result)
    if structured:
        extra["structured"] = structured
    if data.get("success") is False:
        _fail(part, extra, mapping(error).get("code"), failure or output)
    else:
        part.data["state"] = part.tool_state = "output-available"
        part.data["output"] = _output(result, output)
    part.data["resultProviderMetadata"] = {"backscroll": extra}
    part.updated_at = max(event.at, part.created_at)


def _fail(part: PartDraft, extra: dict[str, Any], code: object, text: str) -> None:
    if code in _DENIED_CODES or text.startswith(_DENIED_STARTS):
        extra["status"] = "denied"
        part.data["state"] = part.tool_state = "output-denied"
        part.data["approval"] = {"id": part.tool_call_id, "approved": False, "reason": text}
        return
    extra["status"] = "interrupted" if code in _BROKEN_OFF_CODES else "error"
    part.data["state"] = part.tool_state = "output-error"
    part.data["errorText"] = text


def is_settled(part: PartDraft) -> bool:
    """Return whether a call has its result."""
    return part.tool_state not in _OPEN


def ask_approval(part: PartDraft, event: Event) -> None:
    """Mark a call that waits for its user's word."""
    if part.tool_state == "input-available":
        part.data["state"] = part.tool_state = "approval-requested"
        part.data["approval"] = {"id": string(event.data.get("requestId")) or event.id}
        part.updated_at = max(event.at, part.updated_at)


def answer_approval(part: PartDraft) -> None:
    """Mark a call that no longer waits; its result says how it ended."""
    if part.tool_state == "approval-requested":
        part.data["state"] = part.tool_state = "input-available"
        del part.data["approval"]


def interrupt(part: PartDraft, event: Event, started: int | None) -> bool:
    """Settle a call that a person interrupted; return whether it had no result.

    Args:
        part: The call's part.
        event: The event that ended it.
        started: When the call began, epoch ms.
    """
    if part.tool_state not in _OPEN:
        return False
    part.data.pop("approval", None)
    begun = started if started is not None else part.created_at
    extra = {"status": "interrupted", "duration_ms": max(event.at - begun, 0)}
    part.data["state"] = part.tool_state = "output-error"
    part.data["errorText"] = _BROKEN_OFF
    part.data["resultProviderMetadata"] = {"backscroll": extra}
    part.updated_at = max(event.at, part.created_at)
    return True


def _structured(data: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Return what the program shows of a result, with a diff's hunks beside it."""
    found: dict[str, Any] = {}
    detailed = string(result.get("detailedContent"))
    if detailed and detailed != result.get("content"):
        found["detailedContent"] = detailed
        edited = data.get("fileEdits") or "\n-" in detailed or "\n+" in detailed
        hunks = hunks_of(detailed) if edited else []
        changed = any(line[:1] in "+-" for hunk in hunks for line in hunk["lines"])
        if hunks and changed:
            found["structuredPatch"] = hunks
    if data.get("fileEdits"):
        found["fileEdits"] = data["fileEdits"]
    return found


def _output(result: dict[str, Any], text: str) -> Any:
    """Return the output: a text, or a list where images are in it."""
    contents = result.get("contents")
    files = [file for item in contents if (file := file_data(mapping(item)))] if isinstance(
        contents, list
    ) else []  # fmt: skip
    return [{"type": "text", "text": text}, *files] if files else text


def file_data(item: dict[str, Any]) -> dict[str, Any] | None:
    """Return an attachment, or an image of a result, as an AI SDK file part."""
    name = string(item.get("displayName"))
    media_type = string(item.get("mimeType")) or "application/octet-stream"
    if isinstance(item.get("data"), str):
        url = f"data:{media_type};base64,{item['data']}"
    elif string(item.get("path")) or string(item.get("filePath")):
        url = f"file://{item.get('path') or item.get('filePath')}"
    else:
        return None
    data = {"type": "file", "mediaType": media_type, "url": url}
    return data | {"filename": name} if name else data
