"""Tool calls and their results, as one AI SDK tool part each.

Source of the shapes and of the status rules: the Claude Code format page, section 3
(``user``, ``toolUseResult``) and section 8, item 11.
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.drafts import PartDraft
from store.sources.claude_code.blocks import file_data
from store.sources.claude_code.rows import Row, mapping, string

_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d+)")
_SIDE_FILE = re.compile(r"tool-results[/\\]([^/\\\s\"'<>]+)")
_DENIED = re.compile(
    r"The user doesn't want to |Permission for this (?:tool use|action) (?:was|has been) denied\b"
    r"|Permission to use .{1,4000} has been denied|The agent proposed a plan that was rejected\b"
    r"|User declined to |Claude requested permissions? to .{1,4000} haven't granted it\b"
    r"|(?:Hook )?PreToolUse:\S{1,200} (?:denied this tool|hook (?:blocking )?error)\b",
    re.S,
)
"""How the result of a call begins that a person, a rule or a hook did not let run."""
_AGENTS = ("tool-Task", "tool-Agent")
_KNOWN_WORDS = (
    "completed", "async_launched", "teammate_spawned", "remote_launched", "sub_agent_entered",
)  # fmt: skip
"""How the result of an agent's call says that it went as it should."""
_DENYING = ("reject", "deny", "denied")


def call_part(block: dict[str, Any], row: Row) -> PartDraft:
    """Return the part of a tool call that has no result yet."""
    name = string(block.get("name")) or "unknown"
    call_id = string(block.get("id")) or row.uuid
    tool_input = block.get("input")
    kind = f"tool-{name}"
    data: dict[str, Any] = {
        "type": kind,
        "toolCallId": call_id,
        "state": "input-available",
        "input": tool_input if tool_input is not None else {},
    }
    if block.get("type") != "tool_use":
        data["providerExecuted"] = True
    return PartDraft(kind, data, row.at, row.at, call_id, "input-available", (row.number,))


def settle(part: PartDraft, block: dict[str, Any], row: Row) -> None:
    """Put a result into the part of its call.

    Args:
        part: The call's part; a second result for the same call is left out.
        block: The tool_result block.
        row: The user row that holds it; its ``toolUseResult`` belongs to the block where
            the row has no other.
    """
    part.records = (*part.records, row.number)
    if part.tool_state != "input-available":
        return
    text = result_text(block.get("content"))
    structured = row.data.get("toolUseResult") if len(row.blocks) == 1 else None
    status = _status(block, row, text, structured)
    extra: dict[str, Any] = {"status": status, "duration_ms": max(row.at - part.created_at, 0)}
    if part.type == "tool-Bash":
        code = _exit_code(status, text, structured)
        if code is not None:
            extra["exit_code"] = code
    attachment = _side_file(text, structured)
    if attachment:
        extra["attachment"] = attachment
    if structured is not None:
        extra["structured"] = _without_files(structured)
    word = string(mapping(structured).get("status")) if part.type in _AGENTS else None
    if word and word not in _KNOWN_WORDS:
        extra["word"] = word
    decision = row.data.get("permissionDecision")
    if isinstance(decision, dict) and decision.get("decision") != "accept":
        extra["permission"] = decision
    _set_state(part, status, text, block.get("content"))
    part.data["resultProviderMetadata"] = {"backscroll": extra}
    part.updated_at = max(row.at, part.created_at)


def _set_state(part: PartDraft, status: str, text: str, content: object) -> None:
    data = part.data
    if status == "ok":
        state, data["output"] = "output-available", result_output(content)
    elif status == "denied":
        state = "output-denied"
        data["approval"] = {"id": part.tool_call_id, "approved": False, "reason": text}
    else:
        state, data["errorText"] = "output-error", text
    data["state"] = part.tool_state = state


def _status(block: dict[str, Any], row: Row, text: str, structured: object) -> str:
    """Return ``ok``, ``error``, ``denied`` or ``interrupted``."""
    if not block.get("is_error"):
        return "interrupted" if mapping(structured).get("interrupted") is True else "ok"
    if row.data.get("toolDenialKind") is not None:
        return "denied" if row.data.get("toolDenialBeforeRun") else "interrupted"
    if "[Request interrupted by user" in text[:300]:
        return "interrupted"
    decision = mapping(row.data.get("permissionDecision")).get("decision")
    if decision in _DENYING or structured == "User rejected tool use":
        return "denied"
    if _DENIED.match(text):
        return "denied"
    return "interrupted" if mapping(structured).get("interrupted") is True else "error"


def _exit_code(status: str, text: str, structured: object) -> int | None:
    if status == "ok":
        return None if mapping(structured).get("backgroundTaskId") else 0
    found = _EXIT_CODE.match(text.removeprefix("<tool_use_error>"))
    return int(found[1][:9]) if found else None


def _side_file(text: str, structured: object) -> str | None:
    """Return the name of the ``tool-results/`` file that holds the whole output."""
    path = mapping(structured).get("persistedOutputPath")
    if isinstance(path, str) and path:
        return re.split(r"[/\\]", path)[-1]
    found = _SIDE_FILE.search(text) if "tool-results" in text else None
    return found[1] if found else None


def result_text(content: object) -> str:
    """Return the text of a result: a string, or its text blocks joined by newlines."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [block.get("text") for block in content if isinstance(block, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""


def result_output(content: object) -> Any:
    """Return a result as a tool part's output.

    A string stays one; a list of blocks stays one, its images and documents as AI SDK
    file parts (``{type: "file", mediaType, url}`` with a data URL) that can be shown.
    """
    if not isinstance(content, list):
        return content if content is not None else ""
    return [(file_data(block) or block) if isinstance(block, dict) else block for block in content]


def structured_of(row: Row) -> Any:
    """Return what a row tells of its only result, where that is more than its words."""
    told = row.data.get("toolUseResult") if len(row.blocks) == 1 else None
    return _without_files(told) if isinstance(told, dict | list) else None


def _without_files(structured: Any) -> Any:
    """Leave out the base64 copies of files that the output holds already."""
    if not isinstance(structured, dict):
        if isinstance(structured, list):
            return result_output(structured)
        return structured
    file = structured.get("file")
    if isinstance(file, dict) and "base64" in file:
        kept = {key: value for key, value in file.items() if key != "base64"}
        return {**structured, "file": kept}
    return structured
