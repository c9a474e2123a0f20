"""Response items to AI SDK parts: text, reasoning, files, and what has no shape there."""

from __future__ import annotations

import os
import re
from typing import Any

from store.conversation.wrapping import bare_aside, unwrapped_file
from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import data_part, text_part
from store.sources.base.values import mapping, string

_IMAGE_OPEN = re.compile(
    r"<image(?: name=(?:\[(?P<label>[^\]]*)\]|[^ >]*))?(?: path=\"(?P<path>[^\"]*)\")?>"
)
_IMAGE_CLOSE = "</image>"
_DATA_URL = re.compile(r"data:([^;,]+)[;,]")


def _words(
    text: str, at: int, record: tuple[int, ...], openai: dict[str, Any] | None
) -> PartDraft:
    part = text_part(text, at, *record)
    if openai:
        part.data["providerMetadata"] = {"openai": openai}
    return part


def content_items(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a message's content items; a string is one text."""
    content = payload.get("content")
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []


def message_text(payload: dict[str, Any]) -> str:
    """Return the texts of a message, joined."""
    texts = [item.get("text") for item in content_items(payload)]
    return "\n".join(text for text in texts if isinstance(text, str))


def untagged_text(payload: dict[str, Any]) -> str:
    """Return the texts of a message, joined, without the tags around images, as events have it."""
    items = content_items(payload)
    texts = [item["text"] for index, item in enumerate(items)
             if isinstance(item.get("text"), str) and not _is_image_tag(items, index)]  # fmt: skip
    return "\n".join(texts)


def message_parts(payload: dict[str, Any], at: int, record: tuple[int, ...]) -> list[PartDraft]:
    """Return the parts of a message; the tags around an image go, its name stays.

    Args:
        payload: The item's payload.
        at: Epoch ms.
        record: The line's number.
    """
    items, parts = content_items(payload), list[PartDraft]()
    openai = {
        name: payload[key]
        for name, key in (("itemId", "id"), ("phase", "phase"))
        if string(payload.get(key)) and payload.get("role") == "assistant"
    }
    for index, item in enumerate(items):
        kind, text = item.get("type"), item.get("text")
        if kind in ("input_text", "output_text", "text") and isinstance(text, str):
            file = unwrapped_file(text) if kind == "input_text" else None
            if file is not None:
                parts.append(PartDraft("file", file, at, at, records=record))
            elif not _is_image_tag(items, index):
                said = bare_aside(text) if kind == "input_text" else text
                parts.append(_words(said, at, record, openai))
        elif kind == "refusal":
            parts.append(_words(str(item.get("refusal") or ""), at, record, openai))
        else:
            file = file_data(item, _image_name(items, index))
            if file is not None:
                parts.append(PartDraft("file", file, at, at, records=record))
            else:
                parts.append(data_part("event", {"name": str(kind), "item": item}, at, *record))
    return parts


def _is_image_tag(items: list[dict[str, Any]], index: int) -> bool:
    text = items[index]["text"]
    after = items[index + 1].get("type") if index + 1 < len(items) else None
    before = items[index - 1].get("type") if index else None
    if text == _IMAGE_CLOSE:
        return before == "input_image"
    return after == "input_image" and _IMAGE_OPEN.fullmatch(text) is not None


def _image_name(items: list[dict[str, Any]], index: int) -> str | None:
    tag = items[index - 1].get("text") if index else None
    found = _IMAGE_OPEN.fullmatch(tag) if isinstance(tag, str) else None
    if found is None:
        return None
    return os.path.basename(found["path"]) if found["path"] else found["label"]


def file_data(item: dict[str, Any], name: str | None = None) -> dict[str, Any] | None:
    """Return an image, audio or file item as an AI SDK file part; None for other items."""
    kind = item.get("type")
    key, default = {
        "input_image": ("image_url", "image/png"),
        "input_audio": ("audio_url", "audio/wav"),
        "input_file": ("file_data", "application/octet-stream"),
    }.get(str(kind), ("", ""))
    given = item.get(key) if key else None
    url = string(mapping(given).get("url")) or string(given) or string(item.get("file_url"))
    if url is None:
        return None
    found = _DATA_URL.match(url)
    part = {"type": "file", "mediaType": found[1] if found else default, "url": url}
    filename = string(item.get("filename")) or name
    if filename:
        part["filename"] = filename
    return part


def reasoning_part(payload: dict[str, Any], at: int, record: tuple[int, ...]) -> PartDraft:
    """Return a reasoning item; what is encrypted stays in ``providerMetadata``.

    Args:
        payload: The item's payload.
        at: Epoch ms.
        record: The line's number.
    """
    texts = [*_texts(payload.get("summary")), *_texts(payload.get("content"))]
    openai = {
        name: payload[key]
        for name, key in (("itemId", "id"), ("reasoningEncryptedContent", "encrypted_content"))
        if string(payload.get(key))
    }
    data: dict[str, Any] = {"type": "reasoning", "text": "\n\n".join(texts), "state": "done"}
    if openai:
        data["providerMetadata"] = {"openai": openai}
    return PartDraft("reasoning", data, at, at, records=record)


def _texts(items: object) -> list[str]:
    found = items if isinstance(items, list) else []
    texts = [item.get("text") for item in found if isinstance(item, dict)]
    return [text for text in texts if isinstance(text, str) and text]
