"""Content blocks of Amp's messages to AI SDK parts, and runs to their calls.

Source: the Amp format page, section 2.
"""

from __future__ import annotations

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
from store.sources.base.values import mapping, string

_FENCE = "```"
_REJECTED = "This tool call was rejected by the user"
"""How an error begins that is a person's refusal, their words after it."""


def part_of(block: dict[str, Any], name: str, at: int, record: int) -> PartDraft:
    """Return the part of one block.

    Args:
        block: The block.
        name: The call's id where the block has none.
        at: When its message was written, epoch ms.
        record: The number of its record.
    """
    kind = block.get("type")
    text = block.get("text")
    if kind == "text":
        return text_part(text if isinstance(text, str) else "", at, record)
    if kind == "thinking":
        kept = {key: block[key] for key in ("signature", "provider") if block.get(key)}
        return reasoning_part(block.get("thinking"), at, record, "amp", kept)
    if kind == "tool_use":
        return _call(block, name, at, record)
    file = _image(block)
    if file is not None:
        return PartDraft("file", file, at, at, records=(record,))
    return data_part("event", {"name": str(kind or "block"), "details": block}, at, record)


def _call(block: dict[str, Any], name: str, at: int, record: int) -> PartDraft:
    part = call_part(block.get("name"), string(block.get("id")) or name, block.get("input"),
                     at, record)  # fmt: skip
    if block.get("complete") is False:
        part.data["state"] = part.tool_state = "input-streaming"
    return part


def _image(block: dict[str, Any]) -> dict[str, Any] | None:
    source = mapping(block.get("source"))
    if block.get("type") != "image":
        return None
    media_type = string(source.get("mediaType")) or "image/png"
    data, url = string(source.get("data")), string(source.get("url"))
    if data is None and url is None:
        return None
    file = {"type": "file", "mediaType": media_type,
            "url": url or f"data:{media_type};base64,{data}"}  # fmt: skip
    path = string(block.get("sourcePath"))
    return {**file, "filename": path.rsplit("/", 1)[-1]} if path else file


def settle(part: PartDraft, run: dict[str, Any], at: int, record: int) -> None:
    """Put a ``run`` into the part of its call.

    Args:
        part: The call's part.
        run: What the call's result says.
        at: When it was written, epoch ms.
        record: The number of its record.
    """
    if part.data.pop("preliminary", None):
        part.tool_state = "input-available"
    said = string(run.get("status")) or "done"
    progress, result = mapping(run.get("progress")), run.get("result")
    extra: dict[str, Any] = {}
    child = string(progress.get("threadID")) or string(mapping(run.get("~debug")).get("threadID"))
    if child:
        extra["child_session_source_id"] = child
    if said == "in-progress":
        _show_progress(part, progress, extra, at, record)
    elif said == "done":
        code = mapping(result).get("exitCode")
        if type(code) is int:
            extra["exit_code"] = code
        hunks = hunks_of(_unfenced(mapping(result).get("diff")))
        if hunks:
            extra["structured"] = {"structuredPatch": hunks}
        settle_call(part, "ok", _output(result), at, record, extra)
    elif said == "rejected-by-user":
        settle_call(part, "denied", string(run.get("reason")) or "", at, record, extra)
    else:
        error = run.get("error")
        words = mapping(error).get("message", error if isinstance(error, str) else None)
        stopped = said.startswith("cancel")
        status = "interrupted" if stopped else "error"
        shown = result if result is not None else progress.get("output", progress)
        if said != "error" and not stopped and shown:
            settle_call(part, "ok", _output(shown), at, record, {**extra, "word": said})
            return
        text = string(words) or string(run.get("reason")) or said
        status = "denied" if text.startswith(_REJECTED) else status
        settle_call(part, status, text, at, record, extra)


def _show_progress(
    part: PartDraft, progress: dict[str, Any], extra: dict[str, Any], at: int, record: int
) -> None:
    """Show what a call that still runs has written so far."""
    part.records = tuple(dict.fromkeys((*part.records, record)))
    if string(progress.get("output")):
        part.data |= {"state": "output-available", "output": progress["output"],
                      "preliminary": True}  # fmt: skip
    part.data["resultProviderMetadata"] = {"backscroll": extra}
    part.tool_state, part.updated_at = part.data["state"], max(at, part.created_at)


def _output(result: object) -> Any:
    """Return a result's own words, where it has some; else the result as it is."""
    bag = mapping(result)
    for key in ("output", "content", "diff"):
        if isinstance(bag.get(key), str):
            return _unfenced(bag[key]) if key == "diff" else bag[key]
    return "" if result is None else result


def _unfenced(diff: object) -> str | None:
    """Return a diff without the fence that is around it."""
    if not isinstance(diff, str):
        return None
    lines = diff.strip().split("\n")
    if len(lines) > 1 and lines[0].startswith(_FENCE) and lines[-1] == _FENCE:
        return "\n".join(lines[1:-1])
    return diff
