"""Parts of Qwen's messages to AI SDK parts, results to their calls, counts to our buckets.

Source: the Qwen Code format page, sections 2, 3 and 6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from store.sources.base.diffs import hunks_of
from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import (
    call_part,
    data_part,
    reasoning_part,
    settle_call,
    text_part,
)
from store.sources.base.values import mapping, number, string

SHELL = "tool-run_shell_command"
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,9})\s*$", re.M)
_DENIED = re.compile(r"did not allow|denied by|not allowed by|rejected by the user", re.I)


def part_of(part: dict[str, Any], name: str, at: int, record: int) -> PartDraft:
    """Return the part of one part of a message.

    Args:
        part: As it was recorded.
        name: The call's id where it has none.
        at: When its message was written, epoch ms.
        record: The number of its record.
    """
    text, call = part.get("text"), part.get("functionCall")
    if isinstance(call, dict):
        made = call_part(call.get("name"), string(call.get("id")) or name, call.get("args"), at,
                         record)  # fmt: skip
        if string(part.get("thoughtSignature")):
            made.data["callProviderMetadata"] = {"qwen": _kept(part)}
        return made
    if isinstance(text, str):
        if part.get("thought") is True:
            return reasoning_part(text, at, record, "qwen", _kept(part))
        return text_part(text, at, record)
    file = file_data(part)
    if file is not None:
        return PartDraft("file", file, at, at, records=(record,))
    return data_part("event", {"name": next(iter(part), "part"), "details": part}, at, record)


def _kept(part: dict[str, Any]) -> dict[str, Any]:
    signature = string(part.get("thoughtSignature"))
    return {"thoughtSignature": signature} if signature else {}


def file_data(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return inline data, or a file that is named, as a file part; None for other parts."""
    inline, named = mapping(part.get("inlineData")), mapping(part.get("fileData"))
    if isinstance(inline.get("data"), str):
        media_type = string(inline.get("mimeType")) or "application/octet-stream"
        url = f"data:{media_type};base64,{inline['data']}"
        return {"type": "file", "mediaType": media_type, "url": url}
    if string(named.get("fileUri")):
        media_type = string(named.get("mimeType")) or "application/octet-stream"
        return {"type": "file", "mediaType": media_type, "url": named["fileUri"]}
    return None


def words_of(value: object) -> str:
    """Return the text of a response: itself, or the texts of parts."""
    if isinstance(value, str):
        return value
    items = value if isinstance(value, list) else []
    texts = [item if isinstance(item, str) else mapping(item).get("text") for item in items]
    return "\n".join(text for text in texts if isinstance(text, str))


def settle(
    part: PartDraft, parts: Sequence[dict[str, Any]], told: dict[str, Any], at: int, record: int
) -> None:
    """Put a result into the part of its call; a second one is left out.

    Args:
        part: The call's part.
        parts: Of the result's message: the response, and files.
        told: What the program says of it: ``status``, ``resultDisplay``, ``durationMs``.
        at: When it was written, epoch ms.
        record: The number of its record.
    """
    response = next((r for p in parts if (r := mapping(mapping(p.get("functionResponse"))
                                                       .get("response")))), {})  # fmt: skip
    error, output = response.get("error"), response.get("output", response)
    text = words_of(error) or words_of(output)
    status = _status(told, error, text)
    took = number(told.get("durationMs")) or max(at - part.created_at, 0)
    extra: dict[str, Any] = {"duration_ms": max(took, 0)}
    code = _EXIT_CODE.search(text) if part.type == SHELL else None
    if code:
        extra["exit_code"] = int(code[1])
    display = mapping(told.get("resultDisplay"))
    hunks = hunks_of(display.get("fileDiff"))
    if hunks:
        name = {"file_path": display["fileName"]} if string(display.get("fileName")) else {}
        extra["structured"] = {**name, "structuredPatch": hunks}
    shown: Any = text
    if status == "ok":
        files = [file for each in parts if (file := file_data(each)) is not None]
        shown = text if isinstance(output, str | list) else output
        if files:
            shown = [*([{"type": "text", "text": text}] if text else []), *files]
    settle_call(part, status, shown, at, record, extra)


def _status(told: dict[str, Any], error: object, text: str) -> str:
    """Return the state of a call; subagents' results say none, only that they are an error."""
    word = told.get("status")
    if word == "cancelled":
        refused = told.get("executionStatus") == "not_started" or _DENIED.search(text)
        return "denied" if refused else "interrupted"
    if word == "success":
        return "ok"
    return "error" if word == "error" or error is not None else "ok"


def usage_of(counts: Sequence[object]) -> dict[str, int]:
    """Return a request's counts as our five buckets.

    Args:
        counts: Of the prompt, of which cached, of the answer, of its thoughts, and the total.
            The answer holds its thoughts unless the total adds them.
    """
    prompt, cached, answer, thoughts, total = (max(0, number(count)) for count in counts)
    cached = min(cached, prompt)
    if thoughts and total != prompt + answer + thoughts:
        thoughts = min(thoughts, answer)
        answer -= thoughts
    return {"input": prompt - cached, "output": answer, "reasoning": thoughts,
            "cache_read": cached, "cache_write": 0}  # fmt: skip
