"""Content of prompts, answers and results to AI SDK parts.

Source: the Kimi format page, section A.3.
"""

from __future__ import annotations

import json
import re
from typing import Any

from store.conversation.wrapping import bare_aside, unwrapped, unwrapped_file
from store.sources.base.content_blocks import blocks_of, text_of
from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import data_part, reasoning_part, settle_call, text_part
from store.sources.base.stated_calls import file_data
from store.sources.base.values import mapping, number, string

_SHELL = "tool-Bash"
_EXIT_CODE = re.compile(r"failed with exit code: (\d{1,9})")
_INTERRUPTED = "Interrupted by user"
_APPROVED = "approved"
_MEDIA = re.compile(r"data:([\w.+-]+/[\w.+-]+)[;,]")


def part_of(block: dict[str, Any], at: int, record: int) -> PartDraft:
    """Return the part of one block.

    Args:
        block: The block.
        at: When it was written, epoch ms.
        record: The number of its record.
    """
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return text_part(text if isinstance(text, str) else "", at, record)
    if kind == "think":
        kept = {key: block[key] for key in ("encrypted", "reasoningKey") if string(block.get(key))}
        return reasoning_part(block.get("think"), at, record, "kimi", kept)
    file = _file(block)
    if file is not None:
        return PartDraft("file", file, at, at, records=(record,))
    return data_part("event", {"name": str(kind or "part"), "details": block}, at, record)


def is_told(part: PartDraft) -> bool:
    """Return whether our export says that a text is a program's."""
    return part.type == "text" and unwrapped(part.data["text"])[0] == "not_from_user"


def as_sent(part: PartDraft) -> PartDraft:
    """Return a part of a prompt without the tags that our export puts around it."""
    if part.type != "text":
        return part
    text = bare_aside(part.data["text"])
    file = unwrapped_file(text)
    if file is not None:
        part.type, part.data = "file", file
    else:
        part.data["text"] = text
    return part


def _file(block: dict[str, Any]) -> dict[str, Any] | None:
    """Return a picture, a sound or a video; None for any other block."""
    kind = string(block.get("type")) or ""
    if not kind.endswith("_url"):
        return None
    stem = kind.removesuffix("_url")
    held = block.get(kind, block.get(f"{stem}Url"))
    url = string(mapping(held).get("url")) or string(held)
    if url is None:
        return None
    media = _MEDIA.match(url)
    return file_data({"mime": media[1] if media else f"{stem}/*", "url": url})


def settle(
    part: PartDraft, result: dict[str, Any], decision: str | None, at: int, record: int
) -> None:
    """Put a result into the part of its call.

    Args:
        part: The call's part.
        result: ``{output, isError, note, durationMs}``.
        decision: What the person said when asked for the call; None where nobody was.
        at: When it was written, epoch ms.
        record: The number of its record.
    """
    output = result.get("output")
    text = output if isinstance(output, str) else text_of(output)
    failed = result.get("isError") is True
    took = number(result.get("durationMs")) or at - part.created_at
    extra: dict[str, Any] = {"duration_ms": max(took, 0)}
    if part.type == _SHELL:
        code = _EXIT_CODE.search(text) if failed else None
        if code or not failed:
            extra["exit_code"] = int(code[1]) if code else 0
    if string(result.get("note")):
        extra["note"] = result["note"]
    status = "ok"
    if failed:
        ended = text.rstrip().rstrip(".").endswith(_INTERRUPTED)
        denied = decision is not None and decision != _APPROVED
        status = "denied" if denied else "interrupted" if ended else "error"
    settle_call(part, status, text if failed else _output(output, text), at, record, extra)


def _output(output: object, text: str) -> Any:
    """Return a result's text, or its parts where files are in it."""
    if output is None or isinstance(output, str):
        return text
    if not isinstance(output, list):
        return json.dumps(output, ensure_ascii=False)
    blocks = blocks_of(output)
    if all(block.get("type") == "text" for block in blocks):
        return text
    return [_file(block) or block for block in blocks]
