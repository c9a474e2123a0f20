"""Blocks of Claude.ai's messages to AI SDK parts, and results to their calls.

Source: the page of chat exports, "Claude.ai". Most exports have no ids of calls: a result is of
the first call before it in its message that has its name and no result.
"""

from __future__ import annotations

from typing import Any

import orjson

from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import (
    call_part,
    data_part,
    reasoning_part,
    settle_call,
    text_part,
)
from store.sources.base.values import mapping, string

_PAGE = ("title", "url", "text")


def parts_of(message: dict[str, Any], name: str, at: int, record: int) -> list[PartDraft]:
    """Return the parts of a message.

    Args:
        message: The message.
        name: Its id.
        at: When it was written, epoch ms.
        record: The number of its record.
    """
    content = message.get("content")
    blocks = list(map(mapping, content)) if isinstance(content, list) else []
    text = string(message.get("text"))
    if not blocks and text:
        # A copy that loses the calls; it counts only where there is nothing else.
        blocks = [{"type": "text", "text": text}]
    found: list[PartDraft] = []
    for place, block in enumerate(blocks):
        kind = block.get("type")
        if kind == "tool_result":
            _settle(found, block, f"{name}/{place}", at, record)
        elif kind == "tool_use":
            found.append(_call(block, f"{name}/{place}", at, record))
        elif kind == "text":
            found += _text(block, at, record)
        elif kind == "thinking":
            found.append(_thought(block, at, record))
        else:
            event = {"name": str(kind or "block"), "details": block}
            found.append(data_part("event", event, at, record))
    return found + _uploads(message, at, record)


def _text(block: dict[str, Any], at: int, record: int) -> list[PartDraft]:
    """Return a text, and each page that it cites once."""
    text = string(block.get("text"))
    found = [text_part(text, at, record)] if text else []
    cited = block.get("citations")
    pages: dict[str, str] = {}
    for each in map(mapping, cited if isinstance(cited, list) else ()):
        details = mapping(each.get("details"))
        url = string(details.get("url"))
        if url:
            pages.setdefault(url, string(details.get("title")) or url)
    for nth, (url, title) in enumerate(pages.items()):
        data = {"type": "source-url", "sourceId": f"{nth}", "url": url, "title": title}
        found.append(PartDraft("source-url", data, at, at, records=(record,)))
    return found


def _thought(block: dict[str, Any], at: int, record: int) -> PartDraft:
    kept = {key: block[key] for key in ("signature", "summaries", "cut_off", "truncated")
            if block.get(key)}  # fmt: skip
    return reasoning_part(block.get("thinking"), at, record, "claude-ai", kept)


def _call(block: dict[str, Any], name: str, at: int, record: int) -> PartDraft:
    call_id = string(block.get("id")) or name
    return call_part(block.get("name"), call_id, block.get("input"), at, record)


def _settle(
    parts: list[PartDraft], block: dict[str, Any], name: str, at: int, record: int
) -> None:
    """Put a result into its call among the parts; without one it becomes a call of its own."""
    wanted, kind = string(block.get("tool_use_id")), f"tool-{string(block.get('name'))}"
    waiting = [part for part in parts if part.tool_state == "input-available"]
    fitting = [part for part in waiting if part.tool_call_id == wanted] if wanted else (
        [part for part in waiting if part.type == kind] or waiting)  # fmt: skip
    if fitting:
        part = fitting[0]
    else:
        part = _call({"name": block.get("name"), "id": wanted}, name, at, record)
        parts.append(part)
    failed = block.get("is_error") is True
    output = _output(block.get("content"))
    if failed and not isinstance(output, str):
        output = orjson.dumps(output).decode()
    settle_call(part, "error" if failed else "ok", output, part.updated_at, record)


def _output(content: object) -> Any:
    """Return the words of a result; of a page its title and address too."""
    if not isinstance(content, list):
        return "" if content is None else content
    return "\n".join(map(_said, map(mapping, content)))


def _said(block: dict[str, Any]) -> str:
    if block.get("type") not in ("text", "knowledge"):
        return orjson.dumps(block, option=orjson.OPT_NON_STR_KEYS).decode()
    return "\n".join(filter(None, (string(block.get(key)) for key in _PAGE)))


def _uploads(message: dict[str, Any], at: int, record: int) -> list[PartDraft]:
    """Return what was attached: the text of documents, and of pictures the name alone."""
    attached, files = message.get("attachments"), message.get("files")
    found = []
    for each in map(mapping, attached if isinstance(attached, list) else ()):
        details = {"name": string(each.get("file_name")) or "",
                   "content": string(each.get("extracted_content")) or ""}  # fmt: skip
        found.append(data_part("event", {"name": "context", "details": details}, at, record))
    for each in map(mapping, files if isinstance(files, list) else ()):
        details = {"name": string(each.get("file_name")) or ""}
        event = {"name": "file, not in the export", "details": details}
        found.append(data_part("event", event, at, record))
    return found
