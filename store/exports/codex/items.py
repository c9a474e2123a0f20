"""Converts AI SDK parts of any agent to response items."""

from __future__ import annotations

import json
import re
from typing import Any

from store.exports.calls import is_content, taken_name

Item = dict[str, Any]

_IMAGE_OPEN = re.compile(r"<image\b[^>]*>")
_IMAGE_CLOSE = "</image>"
_NO_NAME = re.compile(r"[^\w. #()-]+")
NO_RESULT = "aborted"
"""The output that Codex writes for a call without one."""


def content_item(part: dict[str, Any], role: str) -> Item | None:
    """Return a text or file part as message content; None for parts not sent to a model."""
    text = part.get("text")
    if part.get("type") == "text":
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": kind, "text": text} if isinstance(text, str) and text.strip() else None
    if part.get("type") != "file":
        return None
    media_type, url = str(part.get("mediaType", "")), str(part.get("url", ""))
    if media_type.startswith("image/") and url.startswith("data:") and role == "user":
        return {"type": "input_image", "image_url": url}
    name = part.get("filename") or (url if not url.startswith("data:") else "file")
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": kind, "text": f"[{media_type or 'file'}: {name}]"}


def content_items(part: dict[str, Any], role: str) -> list[Item]:
    """Return a text or file part as message content, with tags around a user's image."""
    item = content_item(part, role)
    if item is None:
        return []
    if item["type"] != "input_image":
        return [item]
    name = _NO_NAME.sub(" ", str(part.get("filename") or "image")).strip() or "image"
    opening, closing = f"<image name=[{name}]>", _IMAGE_CLOSE
    return [{"type": "input_text", "text": opening}, item, {"type": "input_text", "text": closing}]


def is_tag(items: list[Item], place: int) -> bool:
    """Return whether an item is only the tag before or after an image."""
    text = str(items[place].get("text", ""))
    before, behind = items[max(0, place - 1)], items[min(place + 1, len(items) - 1)]
    if text == _IMAGE_CLOSE:
        return before.get("type") == "input_image"
    return bool(_IMAGE_OPEN.fullmatch(text)) and behind.get("type") == "input_image"


def reasoning_item(part: dict[str, Any]) -> Item | None:
    """Return reasoning as an item, or None without encrypted content, which the API requires."""
    metadata = part.get("providerMetadata")
    openai = metadata.get("openai") if isinstance(metadata, dict) else None
    encrypted = openai.get("reasoningEncryptedContent") if isinstance(openai, dict) else None
    if not isinstance(encrypted, str):
        return None
    text = part.get("text")
    summary = [{"type": "summary_text", "text": text}] if isinstance(text, str) and text else []
    return {
        "type": "reasoning",
        "summary": summary,
        "content": None,
        "encrypted_content": encrypted,
    }


def call_items(part: dict[str, Any], call_id: str) -> tuple[Item, Item]:
    """Return a tool part as a call and its output."""
    kind = str(part.get("type"))
    name = str(part.get("toolName")) if kind == "dynamic-tool" else kind.removeprefix("tool-")
    name = taken_name(name)
    given = part.get("input", part.get("rawInput"))
    openai = _openai(part)
    output = {"call_id": call_id, "output": _output(part)}
    if openai.get("type") == "custom_tool_call" and isinstance(given, dict):
        text = given.get("input")
        call = {"type": "custom_tool_call", "call_id": call_id, "name": name,
                "input": text if isinstance(text, str) else json.dumps(text)}  # fmt: skip
        return call, {"type": "custom_tool_call_output", **output}
    arguments = given if isinstance(given, dict) else {} if given is None else {"input": given}
    call = {"type": "function_call", "name": name, "call_id": call_id,
            "arguments": json.dumps(arguments, ensure_ascii=False)}  # fmt: skip
    if isinstance(openai.get("namespace"), str):
        call["namespace"] = openai["namespace"]
    return call, {"type": "function_call_output", **output}


def _openai(part: dict[str, Any]) -> dict[str, Any]:
    metadata = part.get("callProviderMetadata")
    openai = metadata.get("openai") if isinstance(metadata, dict) else None
    return openai if isinstance(openai, dict) else {}


def _output(part: dict[str, Any]) -> Any:
    state = part.get("state")
    if state == "output-error":
        return str(part.get("errorText", ""))
    if state == "output-denied":
        approval = part.get("approval")
        reason = approval.get("reason") if isinstance(approval, dict) else None
        return str(reason or "rejected by user")
    if state != "output-available":
        return NO_RESULT
    output = part.get("output")
    if isinstance(output, str):
        return output
    if is_content(output):
        return [content_item(item, "user") or {"type": "input_text", "text": ""} for item in output]
    return json.dumps(output, ensure_ascii=False)
