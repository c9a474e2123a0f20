"""Tool calls and their results, as one AI SDK tool part each.

``state`` follows the agent's own word: a call that has an output is ``output-available``.
What really happened (exit code, failure, refusal) is under
``resultProviderMetadata.backscroll``. Source: the Codex format page, sections 3.2 and 3.6,
and rollouts of versions 0.98.0 and 0.171.0.
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.drafts import PartDraft
from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.values import mapping, number, string
from store.sources.codex.items import file_data
from store.sources.codex.rollout import Line

Hunk = dict[str, Any]
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def structured_patch(changes: object) -> dict[str, Any]:
    """Return ``{filePath, files, structuredPatch}`` of a patch's changes; empty without any.

    Args:
        changes: By path ``{type: add | delete, content}`` or ``{type: update,
            unified_diff, move_path}``; before 0.100 ``{add: {content}}`` and so on.
    """
    hunks: list[Hunk] = []
    files: list[dict[str, str]] = []
    for path, given in mapping(changes).items():
        kind, change = _change(mapping(given))
        entry = {"path": path, "change": kind}
        if isinstance(change.get("move_path"), str):
            entry["moved_to"] = change["move_path"]
        files.append(entry)
        hunks += [{"file": path, **hunk} for hunk in _hunks(kind, change)]
    if not files:
        return {}
    return {"filePath": files[0]["path"], "files": files, "structuredPatch": hunks}


def _change(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    kind = given.get("type")
    if isinstance(kind, str):
        return kind, given
    for kind in ("add", "delete", "update"):
        if isinstance(given.get(kind), dict):
            return kind, given[kind]
    return "unknown", given


def _hunks(kind: str, change: dict[str, Any]) -> list[Hunk]:
    content, diff = change.get("content"), change.get("unified_diff")
    if kind in ("add", "delete") and isinstance(content, str):
        lines = content.split("\n")
        if lines and not lines[-1]:
            lines.pop()
        sign, count = ("+", len(lines)) if kind == "add" else ("-", len(lines))
        old, new = (0, count) if kind == "add" else (count, 0)
        return [_hunk((min(old, 1), old, min(new, 1), new), [sign + line for line in lines])]
    return _unified(diff) if isinstance(diff, str) else []


def _unified(diff: str) -> list[Hunk]:
    hunks: list[Hunk] = []
    for line in diff.split("\n"):
        found = _HUNK.match(line)
        if found:
            old, new = int(found[1]), int(found[3])
            hunks.append(_hunk((old, int(found[2] or 1), new, int(found[4] or 1)), []))
        elif hunks and line[:1] in ("+", "-", " ", "\\"):
            hunks[-1]["lines"].append(line)
    return hunks


def _hunk(numbers: tuple[int, int, int, int], lines: list[str]) -> Hunk:
    names = ("oldStart", "oldLines", "newStart", "newLines")
    return {**dict(zip(names, numbers, strict=True)), "lines": lines}


CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "tool_search_call": "arguments",
}
"""Types of calls that an output of their own answers, and where their input stands."""
HOSTED = {
    "web_search_call": ("web_search", "action"),
    "image_generation_call": ("image_generation", "revised_prompt"),
}
"""Calls that the API carried out itself."""
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.M)
_WALL = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds$", re.M)
_HEAD = 400
_BLOCKS = ("text", "image", "audio", "resource", "resource_link")
"""Content blocks of the Model Context Protocol."""
_ABORTED = re.compile(
    r"(?:Wall time: [^\n]*\n)?aborted(?: by user)?\b"
    r"|request_user_input was cancelled before receiving a response"
)
_FAILED = (
    "unsupported call:",
    "unsupported custom tool call:",
    "apply_patch verification failed",
    "failed to parse function arguments",
    "execution error:",
    "exec_command failed",
    "write_stdin failed",
    "Failed to apply patch",
    "tool call error",
    "error: ",
)
_DENIED = re.compile(
    r"exec command rejected by user|patch rejected|rejected by user|user rejected"
    r"|(?:exec_command failed: )?CreateProcess \{ message: \"Rejected\("
    r"|approval policy is \w+; reject command"
)


def call_part(line: Line) -> PartDraft:
    """Return the part of a call that has no result yet."""
    payload = line.payload
    name = string(payload.get("name")) or line.kind.removesuffix("_call")
    call_id = string(payload.get("call_id")) or string(payload.get("id")) or _placed(line)
    kind = f"tool-{name}"
    openai = {
        key: payload[key] for key in ("namespace",) if string(payload.get(key))
    }  # fmt: skip
    if string(payload.get("id")):
        openai["itemId"] = payload["id"]
    if line.kind != "function_call":
        openai["type"] = line.kind
    given = _input(payload.get(CALLS[line.kind]), line.kind)
    state = "approval-requested" if _asks(given) else "input-available"
    data: dict[str, Any] = {
        "type": kind, "toolCallId": call_id, "state": state, "input": given,
    }  # fmt: skip
    if state == "approval-requested":
        data["approval"] = {"id": call_id}
    if openai:
        data["callProviderMetadata"] = {"openai": openai}
    return _with_word(PartDraft(kind, data, line.at, line.at, call_id, state), payload)


def is_open(part: PartDraft) -> bool:
    """Return whether a call has no output yet."""
    return part.tool_state in ("input-available", "approval-requested")


def _asks(given: object) -> bool:
    """Return whether a call leaves the sandbox, for which Codex asks its user first."""
    arguments = mapping(given)
    return (
        arguments.get("sandbox_permissions") == "require_escalated"
        or arguments.get("with_escalated_permissions") is True
    )


def hosted_part(line: Line) -> PartDraft:
    """Return the part of a call that the API carried out itself."""
    name, key = HOSTED[line.kind]
    payload = line.payload
    given = payload.get(key)
    call_id = string(payload.get("id")) or _placed(line)
    output: Any = {"status": payload.get("status") or "completed"}
    result = string(payload.get("result"))
    if line.kind == "image_generation_call" and result:
        url = result if result.startswith("data:") else f"data:image/png;base64,{result}"
        output = [{"type": "file", "mediaType": "image/png", "url": url}]
    data = {
        "type": f"tool-{name}",
        "toolCallId": call_id,
        "state": "output-available",
        "providerExecuted": True,
        "input": given if isinstance(given, dict) else {"prompt": given} if given else {},
        "output": output,
        "callProviderMetadata": {"openai": {"itemId": call_id, "type": line.kind}},
    }
    part = PartDraft(f"tool-{name}", data, line.at, line.at, call_id, "output-available")
    return _with_word(part, payload)


_KNOWN_WORDS = (
    "completed", "failed", "declined", "in_progress", "inProgress", "incomplete", "searching",
    "generating",
)  # fmt: skip


def _with_word(part: PartDraft, told: dict[str, Any]) -> PartDraft:
    """Note a call's state where it is in a word of which nothing is known."""
    said = told.get("status")
    if isinstance(said, str) and said and said not in _KNOWN_WORDS:
        _extra(part)["word"] = said
    return part


def _placed(line: Line) -> str:
    return f"call-{line.place[0]}-{line.place[1]}"


def _input(given: object, kind: str) -> Any:
    if kind == "custom_tool_call":
        return {"input": given}
    if isinstance(given, str):
        try:
            value = parse_value(given)
        except LineError:
            return {"input": given} if given else {}
        return value if isinstance(value, dict) else {"input": value}
    return given if given is not None else {}


def settle(part: PartDraft, line: Line) -> None:
    """Put an output into the part of its call; a second one is left out."""
    if not is_open(part):
        return
    part.data.pop("approval", None)
    raw = line.payload.get("output", line.payload.get("tools"))
    output, succeeded, told = _output(raw)
    if isinstance(output, str) and _is_of_server(part):
        output = _blocks(output)
    text = output if isinstance(output, str) else ""
    extra = _extra(part)
    code = told.get("exit_code") if told else exit_code(text)
    if type(code) is int:
        extra.setdefault("exit_code", code)
    status = status_of(text, succeeded)
    if extra.get("status") not in ("denied", "interrupted"):
        failed = extra.get("status") == "error" or extra.get("exit_code") not in (None, 0)
        extra["status"] = "error" if status == "ok" and failed else status
    seconds = told.get("duration_seconds", _wall_seconds(text))
    if isinstance(seconds, int | float) and 0 <= seconds < 1e9:
        extra.setdefault("duration_ms", round(seconds * 1000))
    extra.setdefault("duration_ms", max(line.at - part.created_at, 0))
    child = _child(part, text)
    if child:
        extra["child_session_source_id"] = child
    part.updated_at = max(line.at, part.created_at)
    if extra["status"] == "denied":
        part.data["state"] = part.tool_state = "output-denied"
        part.data["approval"] = {"id": part.tool_call_id, "approved": False, "reason": text}
        return
    part.data["state"] = part.tool_state = "output-available"
    part.data["output"] = output


def _extra(part: PartDraft) -> dict[str, Any]:
    extra: dict[str, Any] = part.data.setdefault("resultProviderMetadata", {}).setdefault(
        "backscroll", {}
    )
    return extra


_RESULT = frozenset(
    ["content", "isError", "is_error", "structuredContent", "structured_content", "_meta", "meta"]
)
"""The fields of an MCP server's answer."""


def _output(raw: object) -> tuple[Any, bool | None, dict[str, Any]]:
    """Return an output, whether it says that it went well, and its metadata."""
    if isinstance(raw, str):
        return _from_text(raw)
    if isinstance(raw, dict):
        if (inner := _inside(raw)) is not None:
            return inner
        succeeded = raw.get("success")
        content = raw.get("content", raw.get("content_items", raw))
        whole = content is raw or isinstance(content, str)
        output = content if whole else _output(content)[0]
        return output, succeeded if isinstance(succeeded, bool) else None, {}
    if isinstance(raw, list):
        items = [item for item in raw if isinstance(item, dict)]
        if items and len(items) == len(raw):
            return [_output_item(item) for item in items], None, {}
        return raw, None, {}
    return ("" if raw is None else raw), None, {}


def unwrapped(raw: object) -> object:
    """Return an output without the JSON that some versions put around it."""
    return _output(raw)[0]


def _inside(value: dict[str, Any]) -> tuple[Any, bool | None, dict[str, Any]] | None:
    """Take an output out of ``{"output", "metadata"}``; None where it is something else."""
    told = value.get("metadata")
    if value.keys() != {"output", "metadata"} or not isinstance(told, dict):
        return None
    inner = value["output"]
    return inner if isinstance(inner, str) else _output(inner)[0], None, told


def _from_text(text: str) -> tuple[Any, bool | None, dict[str, Any]]:
    """Take an output out of the JSON text that some versions put it in.

    Versions around 0.40 write ``{"output", "metadata": {"exit_code", "duration_seconds"}}``,
    and an MCP server's answer as it came.
    """
    if not text.startswith("{"):
        return text, None, {}
    try:
        value = parse_value(text)
    except LineError:
        return text, None, {}
    if not isinstance(value, dict):
        return text, None, {}
    if (inner := _inside(value)) is not None:
        return inner
    content = value.get("content")
    if value.keys() <= _RESULT and isinstance(content, list) and len(value) > 1:
        failed = value.get("isError", value.get("is_error"))
        return _output(content)[0], False if failed is True else None, {}
    return text, None, {}


def _output_item(item: dict[str, Any]) -> dict[str, Any]:
    text = item.get("text")
    if item.get("type") in ("input_text", "output_text", "text") and isinstance(text, str):
        return {"type": "text", "text": text}
    return file_data(item) or item


def _is_of_server(part: PartDraft) -> bool:
    """Return whether a call went to an MCP server."""
    openai = mapping(mapping(part.data.get("callProviderMetadata")).get("openai"))
    return "__" in part.type or "namespace" in openai


def _blocks(text: str) -> Any:
    """Return the content blocks of an MCP server that are written as JSON; else the text."""
    if not text.startswith("[{"):
        return text
    try:
        found = parse_value(text)
    except LineError:
        return text
    blocks = found if isinstance(found, list) else []
    if not all(isinstance(one, dict) and one.get("type") in _BLOCKS for one in blocks):
        return text
    return _output(blocks)[0]


def _wall_seconds(text: str) -> float | None:
    """Return the time that an output's head tells."""
    found = _WALL.search(text[:_HEAD].partition("Output:\n")[0])
    return float(found[1]) if found else None


def exit_code(text: str) -> int | None:
    """Return the exit code that an output's head tells."""
    head = text[:_HEAD].partition("Output:\n")
    found = _EXIT.search(head[0]) or (_EXIT.match(head[2]) if head[1] else None)
    return int(found[1]) if found else None


def status_of(text: str, succeeded: bool | None) -> str:
    """Return ``ok``, ``error``, ``denied`` or ``interrupted`` as an output's words tell it."""
    if _ABORTED.match(text):
        return "interrupted"
    if _DENIED.match(text):
        return "denied"
    return "error" if succeeded is False or text.startswith(_FAILED) else "ok"


def _child(part: PartDraft, text: str) -> str | None:
    """Return the thread that a spawn_agent call started."""
    if part.type != "tool-spawn_agent" or not text.startswith("{"):
        return None
    try:
        return string(mapping(parse_value(text)).get("agent_id"))
    except LineError:
        return None


_ENDS = {
    "exec_command_end": "CommandExecution",
    "patch_apply_end": "FileChange",
    "mcp_tool_call_end": "McpToolCall",
}


def item_of(line: Line) -> dict[str, Any] | None:
    """Return what an event tells about a call, as an item with ``type`` and ``id``."""
    if line.kind == "item_completed":
        return mapping(line.payload.get("item"))
    if line.kind in _ENDS:
        return {**line.payload, "type": _ENDS[line.kind], "id": line.payload.get("call_id")}
    return None


def enrich(part: PartDraft, item: dict[str, Any]) -> None:
    """Add what an item tells about a call: exit code, duration, patch, child session."""
    extra = _extra(part)
    code = item.get("exit_code")
    if type(code) is int:
        extra["exit_code"] = code
    elif item.get("type") == "FileChange" and item.get("status") == "completed":
        extra.setdefault("exit_code", 0)
    duration = _duration(item.get("duration"))
    if duration is not None:
        extra["duration_ms"] = duration
    _with_word(part, item)
    declined = item.get("status") == "declined"
    failed = item.get("status") == "failed" or item.get("success") is False
    if extra.get("status") != "interrupted":
        if declined:
            extra["status"] = "denied"
        elif failed or (type(code) is int and code != 0):
            extra["status"] = "error"
    structured = _structured(item)
    if structured:
        extra["structured"] = {**extra.get("structured", {}), **structured}
    receivers = item.get("receiver_thread_ids")
    if item.get("tool") == "spawn_agent" and isinstance(receivers, list) and receivers:
        child = string(receivers[0])
        if child:
            extra["child_session_source_id"] = child


_ITEMS = frozenset({
    "UserMessage", "HookPrompt", "AgentMessage", "Plan", "Reasoning", "CommandExecution",
    "DynamicToolCall", "FileChange", "McpToolCall", "CollabAgentToolCall", "SubAgentActivity",
    "WebSearch", "ImageView", "ImageGeneration", "Sleep", "EnteredReviewMode", "ExitedReviewMode",
    "ContextCompaction",
})  # fmt: skip
"""Types of items; what those say of calls is in the fields that are read."""


def is_known(item: dict[str, Any]) -> bool:
    """Return whether an item is of a type that newer versions have not brought."""
    return item.get("type") in _ITEMS


def _structured(item: dict[str, Any]) -> dict[str, Any]:
    if not is_known(item):
        return {"item": item}
    if item.get("type") == "FileChange":
        return structured_patch(item.get("changes"))
    kept = {"aggregated_output": "stdout", "command": "command", "cwd": "cwd", "result": "result",
            "error": "error", "receiver_agents": "agents", "prompt": "prompt"}  # fmt: skip
    return {name: item[key] for key, name in kept.items() if item.get(key) not in (None, "", [])}


def _duration(value: object) -> int | None:
    if isinstance(value, dict):
        return number(value.get("secs")) * 1000 + number(value.get("nanos")) // 1_000_000
    return None
