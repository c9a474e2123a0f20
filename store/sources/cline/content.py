"""Content blocks of sessions and tasks to AI SDK parts, and results to their calls.

Source: the Cline format page, sections 2.3 and 3.3.
"""

from __future__ import annotations

import json
import re
from typing import Any

from store.conversation.wrapping import bare_aside, unwrapped_file
from store.sources.base.drafts import PartDraft
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.plain_parts import (
    call_part,
    data_part,
    reasoning_part,
    settle_call,
    text_part,
)
from store.sources.base.values import mapping, string

_INPUT = re.compile(r"\s*<user_input(?: [^<>]*)?>")
_INPUT_END = "</user_input>"
_NOTICE, _NOTICE_END = "<mode_notice>", "</mode_notice>"
_REJECTED = "This tool call was rejected by the user"
_ABORTED = "Command was aborted"
_EXIT = re.compile(r"(?:Command exited|Command failed) with (?:exit )?code (\d{1,9})")


def typed(text: str) -> str:
    """Return what a person typed, without the tags that the program put around it."""
    begin = _INPUT.match(text)
    if begin is not None:
        inner, end, rest = text[begin.end() :].rpartition(_INPUT_END)
        text = inner + rest if end else rest
    before, notice, rest = text.partition(_NOTICE)
    after = rest.partition(_NOTICE_END)
    return before + after[2].lstrip() if notice and after[1] else text


def read_typed(part: PartDraft) -> None:
    """Take the tags off a text that a person typed, and those that our export put around it."""
    if part.type != "text":
        return
    text = bare_aside(typed(part.data["text"]))
    file = unwrapped_file(text)
    if file is not None:
        part.type, part.data = "file", file
    else:
        part.data["text"] = text


def part_of(block: dict[str, Any], name: str, at: int, record: int) -> PartDraft:
    """Return the part of one block.

    Args:
        block: The block.
        name: The call's id where the block has none.
        at: When its message was written, epoch ms.
        record: The number of its record.
    """
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return text_part(text if isinstance(text, str) else "", at, record)
    if kind in ("thinking", "redacted_thinking"):
        kept = {key: block[key] for key in ("signature", "data") if string(block.get(key))}
        thought = str(block.get("thinking") or "")
        return reasoning_part(thought, at, record, "cline", kept)
    if kind == "tool_use":
        given = block.get("input")
        call_id = string(block.get("id")) or name
        return call_part(string(block.get("name")), call_id, given, at, record)
    if kind in ("image", "media") and string(block.get("data")):
        media = string(block.get("mediaType")) or "image/png"
        file = {"type": "file", "mediaType": media, "url": f"data:{media};base64,{block['data']}"}
        return PartDraft("file", file, at, at, records=(record,))
    if kind == "file":
        details = {"name": str(block.get("path") or ""), "content": str(block.get("content") or "")}
        return data_part("event", {"name": "context", "details": details}, at, record)
    return data_part("event", {"name": str(kind or "block"), "details": block}, at, record)


def settle(part: PartDraft, status: str, output: Any, at: int, record: int) -> None:
    """Put a result into the part of its call, with its exit code and how long it took.

    Args:
        part: The call's part.
        status: ``ok``, ``error``, ``interrupted`` or ``denied``.
        output: The result; its words where it failed.
        at: When it was written, epoch ms.
        record: The number of its record.
    """
    extra = {"duration_ms": max(at - part.created_at, 0)}
    code = _EXIT.search(output) if isinstance(output, str) and status == "error" else None
    if code is not None:
        extra["exit_code"] = int(code[1])
    settle_call(part, status, output, at, record, extra)


def result_of(block: dict[str, Any]) -> tuple[str, str]:
    """Return how a session's call ended, and the words of its result.

    A failed tool does not say so in ``is_error``: each file or command has its own
    ``success``, in a list or in JSON that is a string.
    """
    content = block.get("content")
    said = _decoded(content)
    entries = [mapping(each) for each in said] if isinstance(said, list) else [mapping(said)]
    failed = [each for each in entries if each.get("success") is False]
    words = _words(said, content)
    if block.get("is_error") is True:
        return ("denied" if _REJECTED in words else "error"), words
    if failed:
        aborted = any(_ABORTED in str(each.get("error")) for each in failed)
        return ("interrupted" if aborted else "error"), words
    only = entries[0] if isinstance(said, dict) else {}
    if "error" in only and only.get("success") is not True and only["error"]:
        return "error", words
    return "ok", words


def _decoded(content: object) -> Any:
    """Return JSON that is a string as what it says; anything else as it is."""
    if not isinstance(content, str) or content[:1] not in ("{", "["):
        return content
    try:
        return parse_json(content.encode("utf-8", "replace"), may_be_wrapped=False)[0]
    except LineError:
        return content


def _words(said: Any, content: object) -> str:
    if isinstance(said, dict):
        one = said.get("text", said.get("result"))
        return _entry(said) if isinstance(one, str) or "error" in said else _plain(content)
    if isinstance(said, list):
        entries = [mapping(each) for each in said]
        many = len(entries) > 1
        return "\n".join(
            f"{each['query']}\n{_entry(each)}" if many and string(each.get("query"))
            else _entry(each) for each in entries
        )  # fmt: skip
    return _plain(content)


def _entry(entry: dict[str, Any]) -> str:
    """Return the words of one file's or command's result."""
    result = entry.get("result", entry.get("text"))
    shown, error = _plain(result), _plain(entry.get("error"))
    return shown if not error or error in shown else "\n".join(filter(None, (error, shown)))


def _plain(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
