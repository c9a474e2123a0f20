"""Helpers for AI SDK parts: an answer's steps, calls and results, files, prompts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from store.conversation.wrapping import wrapped, wrapped_file
from store.rows import is_tool_type

Part = dict[str, Any]
NO_RESULT = "This call has no recorded result."
SUMMARY = "The conversation so far was compacted. This is the summary of it:\n\n"


@dataclass(slots=True)
class Step:
    """A step of an answer: content, then the calls that follow it.

    Attributes:
        said: Text, reasoning and file parts.
        calls: Tool parts.
    """

    said: list[Part] = field(default_factory=list)
    calls: list[Part] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a call.

    Attributes:
        failed: Whether the call failed, by its state or its exit code.
        files: File parts beside the text.
    """

    text: str
    failed: bool
    files: tuple[Part, ...] = ()


def steps_of(parts: Iterable[Part]) -> Iterator[Step]:
    """Yield the steps of an answer; a new one starts when content follows a call."""
    step = Step()
    for part in parts:
        kind = str(part.get("type"))
        if is_tool(part):
            step.calls.append(part)
            continue
        if kind not in ("text", "reasoning", "file", "step-start"):
            continue
        if step.calls:
            yield step
            step = Step()
        if kind == "file" or (kind != "step-start" and str(part.get("text") or "").strip()):
            step.said.append(part)
    if step.said or step.calls:
        yield step


def is_aside(metadata: object, role: str) -> bool:
    """Return whether a user message is from the program instead of a person."""
    origin = metadata.get("origin") if isinstance(metadata, dict) else None
    return role == "user" and origin in ("meta", "notification")


def as_aside(parts: Iterable[Part]) -> list[Part]:
    """Return parts with their texts in a ``not_from_user`` tag."""
    return [
        {**part, "text": wrapped(part["text"], "not_from_user")}
        if part.get("type") == "text" and isinstance(part.get("text"), str) and part["text"].strip()
        else part
        for part in parts
    ]


def handed_over(parts: Iterable[object]) -> str | None:
    """Return a prompt's text, to pass to an agent on the command line.

    None if it has other content, such as a picture, which a command line cannot pass.
    """
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    words = [text for text in texts if isinstance(text, str)]
    said = "\n\n".join(text for text in words if text.strip())
    return said if said and len(words) == len(texts) else None


def is_tool(part: Part) -> bool:
    """Return whether a part is a tool call."""
    kind = part.get("type")
    return isinstance(kind, str) and is_tool_type(kind)


def call_name(part: Part) -> str:
    """Return the name of the tool that a part calls."""
    kind = str(part.get("type"))
    if kind == "dynamic-tool":
        return str(part.get("toolName") or "tool")
    return kind.removeprefix("tool-") or "tool"


def call_input(part: Part) -> dict[str, Any]:
    """Return a call's input as an object, which agents require."""
    given = part.get("input", part.get("rawInput"))
    if isinstance(given, dict):
        return given
    return {} if given is None else {"input": given}


def call_result(part: Part) -> Result:
    """Return the result of a call; a call without one gets an error."""
    state = part.get("state")
    if state == "output-available":
        return _output(part.get("output"), really_failed(part))
    if state == "output-error":
        return Result(str(part.get("errorText", "")), True)
    if state == "output-denied":
        approval = part.get("approval")
        reason = approval.get("reason") if isinstance(approval, dict) else None
        return Result(str(reason or "The call was denied."), True)
    return Result(NO_RESULT, True)


def really_failed(part: Part) -> bool:
    """Return whether a completed call has failed, for instance by its exit code."""
    extras = part.get("resultProviderMetadata")
    own = extras.get("backscroll") if isinstance(extras, dict) else None
    if not isinstance(own, dict):
        return False
    failed = own.get("status") in ("error", "denied", "interrupted")
    return failed or own.get("exit_code") not in (None, 0)


def _output(output: object, failed: bool) -> Result:
    if isinstance(output, str):
        return Result(output, failed)
    if isinstance(output, list) and output and all(_is_content(item) for item in output):
        texts = [item["text"] for item in output if item["type"] == "text"]
        files = tuple(item for item in output if item["type"] == "file")
        return Result("\n".join(texts), failed, files)
    return Result(json.dumps(output, ensure_ascii=False), failed)


def _is_content(item: object) -> bool:
    return isinstance(item, dict) and (
        (item.get("type") == "text" and isinstance(item.get("text"), str))
        or (item.get("type") == "file" and "url" in item)
    )


def inline_data(part: Part) -> tuple[str, str] | None:
    """Return media type and base64 content of a file part; None without inline content."""
    media_type = str(part.get("mediaType") or "application/octet-stream")
    url = str(part.get("url", ""))
    if not url.startswith("data:") or "," not in url:
        return None
    head, _, body = url.partition(",")
    if head.endswith(";base64"):
        return media_type, body
    return media_type, base64.b64encode(unquote_to_bytes(body)).decode("ascii")


def text_of_file(part: Part) -> str | None:
    """Return the content of a text file part; None for others or without inline content."""
    inline = inline_data(part) if part.get("type") == "file" else None
    if inline is None or not inline[0].startswith("text/"):
        return None
    try:
        return base64.b64decode(inline[1]).decode("utf-8")
    except ValueError:
        return None


def with_file_texts(parts: Iterable[Part]) -> list[Part]:
    """Return a prompt's parts with text files as tagged text, for agents without file support.

    The agent's source turns them into file parts again.
    """
    return [_as_text(part) for part in parts]


def _as_text(part: Part) -> Part:
    text = text_of_file(part)
    if text is None:
        return part
    name = part.get("filename")
    media_type = str(part["mediaType"]).partition(";")[0].strip()
    words = wrapped_file(name if isinstance(name, str) else "", media_type, text)
    return {"type": "text", "text": words, "providerMetadata": {"backscroll": {"synthetic": True}}}


def file_name(part: Part) -> str:
    """Return a line to show in place of a file that an agent cannot be given."""
    url = str(part.get("url", ""))
    name = part.get("filename") or ("file" if url.startswith("data:") else url)
    return f"[{part.get('mediaType') or 'file'}: {name}]"


def compaction_summary(parts: Iterable[Part]) -> str | None:
    """Return the summary in a compaction message; None for other messages."""
    for part in parts:
        data = part.get("data")
        if part.get("type") == "data-compaction" and isinstance(data, dict):
            return str(data.get("summary") or "")
    return None
