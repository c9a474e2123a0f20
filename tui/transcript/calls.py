"""From a tool part to what it did, in words."""

from __future__ import annotations

import re
from typing import Any

from store.conversation.replies import reply_in
from tui.kit.text import one_line, one_row
from tui.transcript.call import Call, shortened
from tui.transcript.plain import as_dict, output_text, readable
from tui.transcript.tools import SPECIAL

_EXIT = re.compile(r"^Exit code (-?\d+)\n?")
_HEAD = re.compile(
    r"^(?:Chunk ID: [^\n]*\n)?Wall time: [^\n]*\n(?:Process [^\n]*\n)?"
    r"(?:Original token count: [^\n]*\n)?Output:\n"
)
"""What Codex puts before a command's output; duration and exit code are shown beside it."""
_UNSETTLED = frozenset({"input-streaming", "input-available", "approval-responded"})
_TELLING = (
    "command", "cmd", "argv", "file_path", "filePath", "path", "absolute_path", "notebook_path",
    "query", "pattern", "url", "subject", "description", "prompt", "question", "skill", "title",
    "name", "text", "message", "task_id", "bash_id", "shell_id", "id",
)
"""The argument that tells most, first found first."""


def tool_name(data: dict[str, Any]) -> str:
    """Return the name of the tool that a part calls."""
    kind = str(data.get("type", ""))
    return kind[5:] if kind.startswith("tool-") else str(data.get("toolName") or "tool")


def describe(
    data: dict[str, Any], root: str | None = None, times: tuple[int, int] = (0, 0)
) -> Call:
    """Return what a tool part did.

    Args:
        data: The part.
        root: The session's workspace; paths below it are shown from there.
        times: ``created_at`` and ``updated_at`` of the part, epoch ms.
    """
    name = tool_name(data)
    details = as_dict(as_dict(data.get("resultProviderMetadata")).get("backscroll"))
    given = data.get("input") if data.get("input") is not None else data.get("rawInput")
    call = Call(_shown_name(name), "", "ok", call_id=str(data.get("toolCallId") or ""))
    refused = as_dict(data.get("approval")).get("reason")
    call.body = output_text(data.get("errorText") or data.get("output") or refused)
    _ending(call, data, details, times)
    plain = name.lower().rsplit("__", 1)[-1]
    arguments = as_dict(given)
    call.what = shortened(_telling(arguments, given), root)
    call.said, result = reply_in(call.body)
    call.body = "" if call.said else result
    for names, fill in SPECIAL:
        if plain in names:
            fill(call, arguments, as_dict(details.get("structured")), root)
            break
    if result and not call.result and call.body != result:
        call.result = result
    if call.kind == "text" and call.body and not call.size:
        lines = call.body.count("\n") + 1
        call.size = f"{lines} lines" if lines > call.lead_lines else ""
    call.name, call.what, call.word, call.size = map(
        one_row, (call.name, call.what, call.word, call.size)
    )
    call.marks = [(one_row(text), ink) for text, ink in call.marks]
    return call


def _shown_name(name: str) -> str:
    if name.startswith("mcp__"):
        return one_line(" ".join(name[5:].split("__")))
    return one_line(name)


def _telling(arguments: dict[str, Any], given: Any) -> str:
    if not arguments:
        return given if isinstance(given, str) else readable(given)
    for name in _TELLING:
        value = arguments.get(name)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return _joined_command(value)
        if isinstance(value, str) and value.strip():
            return value
    return ", ".join(f"{name}: {readable(value)}" for name, value in arguments.items())


def _joined_command(words: list[str]) -> str:
    if len(words) == 3 and words[1] in ("-c", "-lc"):
        return words[2]
    return " ".join(words)


def _ending(
    call: Call, data: dict[str, Any], details: dict[str, Any], times: tuple[int, int]
) -> None:
    """Fill in status, word, duration, and drop what the output says twice."""
    state, status = str(data.get("state") or ""), details.get("status")
    code = details.get("exit_code")
    headed = _HEAD.match(call.body)
    if headed:
        call.body = call.body[headed.end():]
    stated = _EXIT.match(call.body)
    if stated:
        code = int(stated[1]) if code is None else code
        call.body = call.body[stated.end():]
    if state in _UNSETTLED or data.get("preliminary"):
        call.status, call.word = ("pending", "no result")
    elif state == "approval-requested":
        call.status, call.word = "waiting", "waits for approval"
    elif status == "denied" or state == "output-denied":
        call.status, call.word = "denied", "denied"
    elif status == "interrupted":
        call.status, call.word = "interrupted", "interrupted"
    elif state == "output-error" or status == "error" or code not in (None, 0):
        call.status = "failed"
        call.word = f"exit {code}" if code not in (None, 0) else "failed"
        call.from_end = True
    if isinstance(details.get("word"), str):
        # The agent's own word, of which nothing more is known.
        call.word = details["word"]
        if state == "output-error":
            call.status = "interrupted"
        elif call.status == "ok":
            call.status = "ended"
    elif details.get("guessed"):
        call.word += " (a guess)"
    took = details.get("duration_ms")
    if took is None and call.status not in ("pending", "waiting") and times[1] > times[0]:
        took = times[1] - times[0]
    call.milliseconds = took if isinstance(took, int | float) else None
