"""JSON values of a session as readable text, never as raw JSON where words will do."""

from __future__ import annotations

import re
from typing import Any

from store.text import figures
from store.text.neutral import without_colour
from store.text.stored_json import DamagedJson, as_dict, loads

_ERROR_TAG = re.compile(r"</?tool_use_error>")
_WRAPPER = re.compile(r"</?(?:local-command|bash|command)-[a-z]+>")
_MEDIA = re.compile(r"^[\w.+-]+/[\w.+-]+$")


def decode(text: str) -> Any:
    """Decode JSON from a store; text that is not JSON is returned as it is."""
    try:
        return loads(text)
    except DamagedJson:
        return text


def readable(value: Any, depth: int = 0) -> str:
    """Return a value as lines of text: strings as they are, objects as ``name: value``."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    pad = "  " * depth
    if isinstance(value, list):
        if all(isinstance(item, str | int | float) for item in value):
            return "\n".join(pad + readable(item) for item in value)
        return "\n".join(f"{pad}- {readable(item, depth + 1).lstrip()}" for item in value)
    return "\n".join(_named(pad, str(name), item, depth) for name, item in value.items())


def _named(pad: str, name: str, item: Any, depth: int) -> str:
    text = readable(item, depth + 1)
    if "\n" in text or (isinstance(item, dict | list) and item):
        inner = text if isinstance(item, dict | list) else _indented(text, depth + 1)
        return f"{pad}{name}:\n{inner}"
    return f"{pad}{name}: {text.strip()}"


def _indented(text: str, depth: int) -> str:
    pad = "  " * depth
    return "\n".join(pad + line for line in text.split("\n"))


def output_text(output: Any) -> str:
    """Return what a tool gave back as text: a string, content blocks, streams, an object."""
    if isinstance(output, str):
        return without_colour(_ERROR_TAG.sub("", output)).rstrip()
    if isinstance(output, list):
        return without_colour("\n".join(_block_text(block) for block in output)).rstrip()
    if isinstance(output, dict):
        for name in ("content", "output", "stdout", "text", "result"):
            inner = output.get(name)
            if name in output and isinstance(inner, str | list) and inner:
                rest = output.get("stderr") if name == "stdout" else None
                return "\n".join(filter(None, (output_text(inner), output_text(rest))))
        return without_colour(readable(output)).rstrip()
    return readable(output)


def _block_text(block: Any) -> str:
    if not isinstance(block, dict):
        return readable(block)
    kind = block.get("type")
    if isinstance(block.get("text"), str):
        return str(block["text"])
    if kind in ("image", "file", "document", "media"):
        return "[" + media_line(block) + "]"
    return readable(block)


def media_line(block: dict[str, Any]) -> str:
    """Return type, name and size of an image or file, for one line."""
    source = as_dict(block.get("source"))
    media = block.get("mediaType") or source.get("media_type") or block.get("mimeType") or ""
    url = str(block.get("url") or "")
    data = block.get("data") or source.get("data") or ""
    if url.startswith("data:"):
        head, _, data = url[5:].partition(",")
        media, url = media or head.split(";")[0], ""
    name = block.get("filename") or block.get("name") or url.rsplit("/", 1)[-1]
    kind = media if _MEDIA.match(str(media)) else str(block.get("type") or "file")
    size = figures.size(len(data) * 3 // 4) if isinstance(data, str) and data else ""
    return "  ".join(str(item) for item in (name, kind, size) if item)


def strip_tags(text: str) -> str:
    """Drop the tags that wrap what a command printed."""
    return without_colour(_WRAPPER.sub("", text)).strip("\n")
