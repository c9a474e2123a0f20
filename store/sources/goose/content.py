"""Content of Goose's messages to AI SDK parts, and responses to their requests.

Source: the Goose format page, section 2 (messages).
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import (
    call_part,
    data_part,
    is_open,
    reasoning_part,
    settle_call,
    text_part,
)
from store.sources.base.values import mapping, string

_DECLINED = (
    "The user has declined to run this tool", "Let the user know the tool call was skipped",
)  # fmt: skip
_TAGS = re.compile("[\U000e0000-\U000e007f]")
"""Characters of an invisible copy of ASCII; Goose itself drops them."""


def words(block: dict[str, Any]) -> str:
    """Return the text of a block, without characters that hide text in it."""
    text = block.get("text")
    return _TAGS.sub("", text) if isinstance(text, str) else ""


def is_for_reader(block: dict[str, Any]) -> bool:
    """Return whether a text block is not only for the model."""
    audience = mapping(block.get("annotations")).get("audience")
    return not isinstance(audience, list) or not audience or "user" in audience


def part_of(block: dict[str, Any], name: str, at: int, record: int) -> PartDraft | None:
    """Return the part of one block; None for one that says nothing.

    Args:
        block: The block.
        name: The call's id where the block has none.
        at: When its message was written, epoch ms.
        record: The number of its record.
    """
    kind = block.get("type")
    if kind == "text":
        return text_part(words(block), at, record)
    if kind in ("thinking", "reasoning", "redactedThinking"):
        return _reasoning(block, at, record)
    if kind in ("toolRequest", "frontendToolRequest"):
        return _call(block, name, at, record)
    if kind == "image" and string(block.get("data")):
        media_type = string(block.get("mimeType")) or "image/png"
        url = f"data:{media_type};base64,{block['data']}"
        file = {"type": "file", "mediaType": media_type, "url": url}
        return PartDraft("file", file, at, at, records=(record,))
    if kind == "systemNotification":
        return _notice(block, at, record)
    if kind == "conversationCompacted":
        return None
    if kind == "actionRequired" and _asked(block).get("actionType") == "elicitation":
        asked = _asked(block)
        question = {"question": str(asked.get("message") or ""), "id": asked.get("id"),
                    "schema": asked.get("requestedSchema")}  # fmt: skip
        return data_part("question", question, at, record)
    return data_part("event", {"name": str(kind or "block"), "details": block}, at, record)


def _asked(block: dict[str, Any]) -> dict[str, Any]:
    return mapping(block.get("data"))


def asks_for(block: dict[str, Any]) -> str | None:
    """Return the id of the call that a block asks to confirm; None for other blocks."""
    if block.get("type") == "toolConfirmationRequest":
        return string(block.get("id"))
    asked = _asked(block)
    is_asking = block.get("type") == "actionRequired" and (
        asked.get("actionType") == "toolConfirmation")
    return string(asked.get("id")) if is_asking else None


def _reasoning(block: dict[str, Any], at: int, record: int) -> PartDraft:
    kept = {key: block[key] for key in ("signature", "data") if string(block.get(key))}
    text = block.get("thinking", block.get("text"))
    return reasoning_part(text, at, record, "goose", kept)


def _notice(block: dict[str, Any], at: int, record: int) -> PartDraft:
    kind, said = string(block.get("notificationType")), block.get("msg")
    message = said if isinstance(said, str) else ""
    if kind == "creditsExhausted":
        return data_part("error", {"message": message or "no credits are left"}, at, record)
    return data_part("event", {"name": kind or "notification", "details": message}, at, record)


def _call(block: dict[str, Any], name: str, at: int, record: int) -> PartDraft:
    """Return a call; one that could not be parsed has no name, and has failed."""
    call = mapping(block.get("toolCall"))
    value, call_id = mapping(call.get("value")), string(block.get("id")) or name
    if call.get("status") == "error":
        data: dict[str, Any] = {
            "type": "dynamic-tool", "toolName": "unknown", "toolCallId": call_id,
            "state": "output-error", "input": {}, "errorText": str(call.get("error") or ""),
            "resultProviderMetadata": {"backscroll": {"status": "error", "invalid": True}},
        }  # fmt: skip
        return PartDraft("dynamic-tool", data, at, at, call_id, "output-error", (record,))
    return call_part(value.get("name"), call_id, value.get("arguments"), at, record)


def settle(part: PartDraft, block: dict[str, Any], at: int, record: int) -> None:
    """Put a ``toolResponse`` into the part of its request.

    Args:
        part: The request's part.
        block: The response.
        at: When it was written, epoch ms.
        record: The number of its record.
    """
    result = mapping(block.get("toolResult"))
    value = result.get("value")
    # Until version 1.10 the value was the list of blocks itself.
    content = value if isinstance(value, list) else mapping(value).get("content")
    blocks = [each for each in content if isinstance(each, dict)] if isinstance(
        content, list) else []
    text = "\n".join(words(each) for each in blocks if each.get("type") == "text")
    structured = mapping(value).get("structuredContent")
    extra = {} if structured is None else {"structured": structured}
    status, shown = "ok", _output(blocks, text)
    given = string(result.get("status"))
    if given not in (None, "success", "error"):
        extra["word"] = given
    if given == "error" or (value is None and result.get("error") is not None):
        status, shown = "error", str(result.get("error") or "")
    elif text.startswith(_DECLINED):
        status, shown = "denied", text
    elif mapping(value).get("isError") is True:
        status, shown = "error", text
    if status == "ok" and is_open(part) and "approval" in part.data:
        part.data["approval"] = {**part.data["approval"], "approved": True}
    settle_call(part, status, shown, at, record, extra)


def _output(blocks: list[dict[str, Any]], text: str) -> Any:
    """Return a response's text, or its blocks where images are among them.

    A text may stand twice, for the model and for the reader.
    """
    images = [each for each in blocks if each.get("type") == "image"]
    for_reader = [each for each in blocks if each.get("type") == "text"]
    if not images and len(for_reader) == len(blocks):
        texts = list(dict.fromkeys(map(words, for_reader)))
        return "\n".join(texts) if len(texts) < len(for_reader) else text
    return [
        {"type": "file", "mediaType": string(each.get("mimeType")) or "image/png",
         "url": f"data:{string(each.get('mimeType')) or 'image/png'};base64,{each.get('data')}"}
        if each.get("type") == "image" else each for each in blocks
    ]  # fmt: skip
