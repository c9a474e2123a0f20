"""Converts AI SDK parts of any agent to content blocks of the Messages API."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import unquote_to_bytes

from store.exports.calls import is_content, taken_name
from store.exports.steps import really_failed, text_of_file

Block = dict[str, Any]

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
NO_RESULT = "This call has no recorded result."


def plain_block(part: dict[str, Any]) -> Block | None:
    """Return a text, reasoning or file part as a block; None for parts not sent to a model."""
    kind = part.get("type")
    if kind == "text":
        text = part.get("text")
        return {"type": "text", "text": text} if isinstance(text, str) and text.strip() else None
    if kind == "reasoning":
        return _thinking(part)
    if kind == "file":
        return file_block(part)
    return None


def _thinking(part: dict[str, Any]) -> Block | None:
    """Return a thinking block, or None without a signature, which the API requires."""
    metadata = part.get("providerMetadata")
    anthropic = metadata.get("anthropic") if isinstance(metadata, dict) else None
    if not isinstance(anthropic, dict):
        return None
    if anthropic.get("redactedData"):
        return {"type": "redacted_thinking", "data": anthropic["redactedData"]}
    if anthropic.get("signature"):
        return {
            "type": "thinking",
            "thinking": part.get("text", ""),
            "signature": anthropic["signature"],
        }
    return None


def file_block(part: dict[str, Any]) -> Block:
    """Return a file part as an image or document block, or its name as a text block.

    Args:
        part: ``{type: "file", mediaType, url, filename?}``; data URLs include the content.
    """
    media_type, url = str(part.get("mediaType", "")), str(part.get("url", ""))
    data = _data_of(url)
    if data is not None and media_type in _IMAGES:
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": "image", "source": source}
    if data is not None and media_type == "application/pdf":
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": "document", "source": source}
    text = text_of_file(part)
    if text is not None:
        source = {"type": "text", "media_type": "text/plain", "data": text}
        title = {"title": str(part["filename"])} if part.get("filename") else {}
        return {"type": "document", "source": source, **title}
    name = part.get("filename") or (url if data is None else "file")
    return {"type": "text", "text": f"[{media_type or 'file'}: {name}]"}


def _data_of(url: str) -> str | None:
    """Return the base64 content of a data URL; None for other URLs."""
    if not url.startswith("data:") or "," not in url:
        return None
    head, _, body = url.partition(",")
    if head.endswith(";base64"):
        return body
    return base64.b64encode(unquote_to_bytes(body)).decode("ascii")


def call_block(part: dict[str, Any], call_id: str) -> Block:
    """Return a tool part as a tool_use block; its input is always an object."""
    kind = str(part.get("type"))
    name = str(part.get("toolName")) if kind == "dynamic-tool" else kind.removeprefix("tool-")
    given = part.get("input", part.get("rawInput"))
    tool_input = given if isinstance(given, dict) else {} if given is None else {"input": given}
    return {
        "type": "tool_use",
        "id": call_id,
        "name": taken_name(name),
        "input": tool_input,
    }


def result_block(part: dict[str, Any], call_id: str) -> Block:
    """Return the tool_result block of a tool part; a call without a result gets an error."""
    state = part.get("state")
    block: Block = {"type": "tool_result", "tool_use_id": call_id}
    if state == "output-available":
        block["content"] = _result_content(part.get("output"))
        return block | {"is_error": True} if really_failed(part) else block
    if state == "output-error":
        return block | {"content": str(part.get("errorText", "")), "is_error": True}
    if state == "output-denied":
        approval = part.get("approval")
        reason = approval.get("reason") if isinstance(approval, dict) else None
        return block | {"content": str(reason or "The call was denied."), "is_error": True}
    return block | {"content": NO_RESULT, "is_error": True}


def _result_content(output: object) -> Any:
    if isinstance(output, str):
        return output
    if is_content(output, also=("image", "document")):
        return [file_block(item) if item.get("type") == "file" else item for item in output]
    return json.dumps(output, ensure_ascii=False)
