"""Describes a tool call in one line: the command, the file, the query; never raw JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from store.conversation.calls import asks_a_person, describe
from store.conversation.replies import Reply, reply_in, untagged
from store.text.figures import count_of

_TELLING_KEYS = (
    "command", "cmd", "file_path", "filePath", "absolute_path", "notebook_path", "path", "pattern",
    "query", "url", "subject", "description", "prompt", "skill", "name",
)  # fmt: skip
SHORT_ARGUMENT = 60
"""Of longer arguments only the name is shown."""
_STATES = {
    "input-streaming": "being written",
    "input-available": "no result yet",
    "approval-requested": "waits for approval",
    "approval-responded": "approval given",
    "output-available": "ok",
    "output-error": "failed",
    "output-denied": "denied",
}


_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.M)
"""Matches the files of a patch of Codex or opencode (``apply_patch``)."""


def tool_name(data: Mapping[str, Any]) -> str:
    """Return the tool's name at its agent."""
    named = data.get("toolName")
    return named if isinstance(named, str) else str(data.get("type", "tool")).removeprefix("tool-")


def tool_subject(data: Mapping[str, Any], workspace: str | None = None) -> str:
    """Return the subject of a call on one line; empty if unknown.

    Args:
        data: The part.
        workspace: The session's folder; it is removed from paths below it.
    """
    subject = _subject(data.get("input", data.get("rawInput")))
    return subject.replace(f"{workspace.rstrip('/')}/", "") if workspace else subject


def _subject(given: Any) -> str:
    if isinstance(given, str):
        return _one_line(given)
    if not isinstance(given, Mapping):
        return ""
    pattern, place = given.get("pattern"), given.get("path")
    if isinstance(pattern, str) and isinstance(place, str) and place:
        return _one_line(f"{pattern} in {place}")
    for key in _TELLING_KEYS:
        value = given.get(key)
        if isinstance(value, str) and value:
            return _one_line(value)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return _one_line(_command(value))
    for key in ("input", "patch", "patchText"):
        files = _PATCHED.findall(given[key]) if isinstance(given.get(key), str) else []
        if files:
            return _one_line(", ".join(files))
    for key, word in (("todos", "todo"), ("plan", "step"), ("questions", "question")):
        if isinstance(given.get(key), list):
            return count_of(len(given[key]), word)
    return ", ".join(_argument(name, value) for name, value in given.items())


def _argument(name: Any, value: Any) -> str:
    """Return an argument's name, with its value if that is short."""
    shown = ""
    if isinstance(value, bool):
        shown = str(value).lower()
    elif isinstance(value, str | int | float):
        shown = _one_line(str(value))
    return f"{name}: {shown}" if 0 < len(shown) <= SHORT_ARGUMENT else str(name)


def tool_state(data: Mapping[str, Any]) -> str:
    """Return a call's state in words, with exit code and duration if known."""
    extras = tool_extras(data)
    state = _STATES.get(str(data.get("state")), str(data.get("state", "")))
    if isinstance(extras.get("word"), str):
        state = extras["word"]
    elif extras.get("status") in ("denied", "interrupted"):
        state = str(extras["status"])
    elif has_failed(data):
        state = _STATES["output-error"]
    words = [f"{state} (a guess)" if extras.get("guessed") else state]
    if isinstance(extras.get("exit_code"), int) and extras["exit_code"] != 0:
        words.append(f"exit {extras['exit_code']}")
    if isinstance(extras.get("duration_ms"), int | float):
        words.append(f"{extras['duration_ms'] / 1000:.1f} s")
    return ", ".join(word for word in words if word)


def has_failed(data: Mapping[str, Any]) -> bool:
    """Return whether a call failed, even if its agent marked it as completed."""
    settled = data.get("state") in ("output-available", "output-error")
    return settled and (
        data.get("state") == "output-error" or tool_extras(data).get("status") == "error"
    )


def reply_and_output(data: Mapping[str, Any]) -> Reply:
    """Return a person's words in a call's result, and the rest of its output as text.

    Answers to an agent's questions have the questions before them.
    """
    output = tool_output(data).strip("\n")
    call = dict(data)
    answers = describe(call).answers if asks_a_person(call) else ""
    if answers:
        return Reply(answers, "" if untagged(output) in answers else output)
    return reply_in(output, succeeded=data.get("state") == "output-available")


def tool_output(data: Mapping[str, Any]) -> str:
    """Return the output or error as text; values other than text and files as JSON."""
    from store.text.exact_json import encode

    if isinstance(data.get("errorText"), str):
        return str(data["errorText"])
    output = data.get("output")
    if output is None:
        approval = data.get("approval")
        reason = approval.get("reason") if isinstance(approval, Mapping) else None
        return reason if isinstance(reason, str) else ""
    if isinstance(output, str):
        return output
    lines = _block_lines(output)
    return encode(output) if lines is None else "\n".join(lines)


def _block_lines(output: Any) -> list[str] | None:
    """Return the lines of text and file blocks; None for any other output."""
    if not isinstance(output, list) or not output:
        return None
    lines = []
    for block in output:
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "text" and isinstance(block.get("text"), str):
            lines.append(block["text"])
        elif kind == "file":
            lines.append(f"[{block.get('mediaType') or 'file'}]")
        else:
            return None
    return lines


def tool_extras(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's ``resultProviderMetadata.backscroll``; empty without it."""
    metadata = data.get("resultProviderMetadata")
    extras = metadata.get("backscroll") if isinstance(metadata, Mapping) else None
    return extras if isinstance(extras, Mapping) else {}


def _command(words: list[str]) -> str:
    shell = words[:1] and words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh")
    return words[2] if shell and len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)


def _one_line(text: str) -> str:
    return " ".join(text[:2000].split())
