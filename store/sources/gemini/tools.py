"""Tool calls of Gemini CLI as AI SDK tool parts.

Source: the Gemini CLI format page, section 4.2 (``toolCalls``), and the common model's
table of states: success is an output; error and cancelled are errors.
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.diffs import hunks_of
from store.sources.base.drafts import PartDraft
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.gemini.content import parts_of

SHELL = "run_shell_command"
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,9})\s*$", re.M)
_CALLED_AT = re.compile(r"_(\d{13})(?:_\d+)?$")
_DENIED = re.compile(
    r"did not allow|denied by|denied execution|not allowed by|rejected by the user", re.I
)
_SIGNALLED = re.compile(r"^Signal: (?!\(none\)|0\s*$)(\S+)", re.M)
"""Older versions name no signal as 0."""


_WORDS = ("success", "error", "cancelled")


def call_part(
    call: dict[str, Any], at: int, fallback_id: str, records: tuple[int, ...]
) -> PartDraft:
    """Return the part of one of a message's ``toolCalls``.

    Args:
        call: ``{id, name, args, result?, status, timestamp, agentId?, ...}``.
        at: The message's time, epoch ms.
        fallback_id: The call's id where it has none.
        records: Of the message.
    """
    name = string(call.get("name")) or "unknown"
    call_id = string(call.get("id")) or fallback_id
    part = open_call(name, call_id, call.get("args"), at, records)
    status = call.get("status")
    ended = epoch_ms(call.get("timestamp")) or at
    if status in _WORDS:
        responses = _responses(call.get("result"))
        _settle(part, status, responses, call, ended)
    elif call.get("result"):
        responses = _responses(call["result"])
        failed = any("error" in mapping(one.get("response")) for one in responses)
        _settle(part, "error" if failed else "success", responses, call, ended)
    if string(status) and status not in _WORDS:
        metadata = part.data.setdefault("resultProviderMetadata", {})
        metadata.setdefault("backscroll", {})["word"] = status
    return part


def open_call(
    name: str, call_id: str, given: object, at: int, records: tuple[int, ...]
) -> PartDraft:
    """Return the part of a call that has no result yet.

    Args:
        name: The tool's name.
        call_id: The call's id.
        given: Its arguments.
        at: Epoch ms.
        records: Numbers of the records that it was made of.
    """
    kind = f"tool-{name}"
    data: dict[str, Any] = {
        "type": kind,
        "toolCallId": call_id,
        "state": "input-available",
        "input": given if given is not None else {},
    }
    return PartDraft(kind, data, at, at, call_id, "input-available", records)


def settle_by_response(part: PartDraft, response: dict[str, Any], at: int, record: int) -> None:
    """Put a ``functionResponse`` into the part of its call, where it has none yet.

    Args:
        part: The call's part.
        response: The ``functionResponse``.
        at: Epoch ms.
        record: The record's number.
    """
    part.records = (*part.records, record) if record not in part.records else part.records
    if part.tool_state == "input-available":
        status = "error" if "error" in mapping(response.get("response")) else "success"
        _settle(part, status, [response], {}, at)


def _responses(result: object) -> list[dict[str, Any]]:
    """Return the ``functionResponse`` objects, and other parts, of a call's result."""
    return [mapping(part.get("functionResponse")) or part for part in parts_of(result)]


def _settle(
    part: PartDraft, status: str, responses: list[dict[str, Any]], call: dict[str, Any], at: int
) -> None:
    output, failed = _output(responses)
    text = output if isinstance(output, str) else failed or ""
    extra: dict[str, Any] = {"status": _status(status, failed or text)}
    started = _CALLED_AT.search(part.tool_call_id or "")
    if at > part.created_at or started:
        extra["duration_ms"] = max(at - (int(started[1]) if started else part.created_at), 0)
    if part.type == f"tool-{SHELL}" and status == "success":
        code = _EXIT_CODE.search(text) if "Exit Code: " in text else None
        extra["exit_code"] = int(code[1]) if code else 0
        if extra["exit_code"] or ("Signal: " in text and _SIGNALLED.search(text)):
            extra["status"] = "error"
    structured = _structured(call)
    if structured:
        extra["structured"] = structured
    child = string(call.get("agentId"))
    if child:
        extra["child_session_source_id"] = child
    if status == "success":
        part.data["state"] = part.tool_state = "output-available"
        part.data["output"] = output
    else:
        part.data["state"] = part.tool_state = "output-error"
        shown = call.get("resultDisplay")
        part.data["errorText"] = failed or text or (shown if isinstance(shown, str) else status)
    part.data["resultProviderMetadata"] = {"backscroll": extra}
    part.updated_at = max(at, part.created_at)


def _status(status: str, text: str) -> str:
    if status == "cancelled":
        return "denied" if _DENIED.search(text) else "interrupted"
    return "ok" if status == "success" else "error"


def _output(responses: list[dict[str, Any]]) -> tuple[Any, str | None]:
    """Return a call's output, and its error where it names one.

    One text stays a text; several, or files beside it, become a list of AI SDK parts.
    """
    items: list[Any] = []
    failed = None
    for response in responses:
        if "response" not in response:
            items.append(file_data(response) or _plain(response))
            continue
        body = mapping(response["response"])
        error = body.get("error")
        if error is not None:
            failed = error if isinstance(error, str) else str(mapping(error).get("message", error))
        elif set(body) == {"output"}:
            items.append(body["output"])
        elif body:
            items.append(body)
        items += [file_data(part) or part for part in parts_of(response.get("parts"))
                  if response.get("parts")]  # fmt: skip
    if len(items) == 1 and not mapping(items[0]).get("mediaType"):
        return items[0], failed
    if not items:
        return "", failed
    return [{"type": "text", "text": item} if isinstance(item, str) else item
            for item in items], failed  # fmt: skip


def _plain(part: dict[str, Any]) -> Any:
    text = part.get("text")
    return text if isinstance(text, str) and set(part) == {"text"} else part


def file_data(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return an ``inlineData`` or ``fileData`` part as an AI SDK file part, else None."""
    inline, file = mapping(part.get("inlineData")), mapping(part.get("fileData"))
    if isinstance(inline.get("data"), str):
        media_type = string(inline.get("mimeType")) or "application/octet-stream"
        url = f"data:{media_type};base64,{inline['data']}"
    elif string(file.get("fileUri")):
        media_type = string(file.get("mimeType")) or "application/octet-stream"
        url = str(file["fileUri"])
    else:
        return None
    data = {"type": "file", "mediaType": media_type, "url": url}
    name = string(inline.get("displayName")) or string(file.get("displayName"))
    return data | {"filename": name} if name else data


def _structured(call: dict[str, Any]) -> dict[str, Any]:
    """Return what the program showed of a result, with a diff's hunks beside it."""
    shown = call.get("resultDisplay")
    found: dict[str, Any] = {}
    if isinstance(shown, dict):
        found |= shown
        hunks = hunks_of(shown.get("fileDiff"))
        if hunks:
            found["structuredPatch"] = hunks
    elif shown:
        found["resultDisplay"] = shown
    for name in ("displayName", "description"):
        if string(call.get(name)) and len(call[name]) < 300:
            found[name] = call[name]
    return found
