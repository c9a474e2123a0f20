"""Events that are shown: errors, retries, compactions, words between agents, the rest."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import orjson

from store.sources.base.drafts import PartDraft
from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.notices import review_text
from store.sources.base.plain_parts import data_part
from store.sources.base.values import mapping, string
from store.sources.codex.items import message_text
from store.sources.codex.origins import origin_of
from store.sources.codex.rollout import Line
from store.sources.codex.tools import unwrapped

_ERRORS = frozenset(["error"])
_RETRIES = frozenset(["stream_error"])
_EVENTS = frozenset(
    ["warning", "entered_review_mode", "exited_review_mode", "thread_goal_updated", "model_reroute"]
)
_QUIET = re.compile(
    r"(?:task|turn|undo|item|hook)_(?:started|complete|completed)|turn_(?:aborted|diff)"
    r"|(?:agent|user)_message|agent_reasoning\w*|plan_update|token_count|thread_\w+"
    r"|session_configured|context_compacted|shutdown_complete|raw_response_item"
    r"|terminal_interaction|view_image_tool_call|guardian_assessment|skills_update_available"
    r"|mcp_\w+|collab_\w+|realtime_\w+|\w+_(?:begin|end|delta|updated|request|response)"
)
"""Events that say nothing which items, answers and calls do not say."""
_KNOWN_TYPES = frozenset(
    ["session_meta", "turn_context", "token_usage_record", "world_state", "event_msg"]
)


def is_unknown(line: Line) -> bool:
    """Return whether a line is of a type, or an event of a kind, that newer versions write."""
    if line.type != "event_msg":
        return bool(line.type) and line.type not in _KNOWN_TYPES and bool(line.payload)
    return bool(line.kind) and _QUIET.fullmatch(line.kind) is None


def is_shown(line: Line) -> bool:
    """Return whether an event is a message of its own."""
    return line.kind in _ERRORS or line.kind in _RETRIES or line.kind in _EVENTS


def is_failure(line: Line) -> bool:
    """Return whether an event says that a response, or a try at one, came to nothing."""
    return line.kind in _ERRORS or line.kind in _RETRIES


def part_of(line: Line, record: tuple[int, ...]) -> PartDraft:
    """Return the part of an event that is shown."""
    if line.kind in _ERRORS:
        return data_part("error", error(line.payload), line.at, *record)
    if line.kind in _RETRIES:
        return data_part("retry", error(line.payload), line.at, *record)
    rest: object = {key: value for key, value in line.payload.items() if key != "type"}
    output = line.payload.get("review_output")
    if isinstance(output, dict):
        rest = review_text(output)
    name = line.kind if line.type == "event_msg" else line.type
    data = {"name": name, **({"details": rest} if rest else {})}
    return data_part("event", data, line.at, *record)


def error(given: object) -> dict[str, Any]:
    """Return a failure as ``{message, error_type?, status?, details?}``.

    An API's answer is JSON in the message; what it says is taken out.
    """
    if isinstance(given, str):
        return {"message": given}
    data = mapping(given)
    message = string(data.get("message")) or "error"
    found: dict[str, Any] = {"message": _api_message(message)}
    info = data.get("codex_error_info")
    if isinstance(info, str):
        found["error_type"] = info
    elif isinstance(info, dict) and info:
        kind, details = next(iter(info.items()))
        found["error_type"] = kind
        status = mapping(details).get("http_status_code")
        if type(status) is int:
            found["status"] = status
    details = string(data.get("additional_details"))
    if details:
        found["details"] = details
    if found["message"] != message:
        found["raw"] = message
    return found


def _api_message(text: str) -> str:
    if not text.lstrip().startswith("{"):
        return text
    try:
        data = mapping(parse_value(text))
    except LineError:
        return text
    inner = data.get("error")
    return string(mapping(inner).get("message")) or string(inner) or string(
        data.get("message")
    ) or text  # fmt: skip


def compaction(line: Line, *, auto: bool) -> dict[str, Any]:
    """Return the data of a compaction.

    The next request holds the person's prompts of before, then the summary. Source: rollouts of
    version 0.171.0, which name that history. Where a rollout does not name it, all prompts are
    taken to be kept: that is assumed, not seen.

    Args:
        line: Its payload is ``{message, replacement_history?}``; the message is empty where the
            API compacted and gave back something encrypted.
        auto: Whether it happened in the middle of a turn.
    """
    payload = line.payload
    data: dict[str, Any] = {
        "summary": string(payload.get("message")) or "",
        "tail_start_id": None,
        "auto": auto,
        "kept_prompts": "all",
    }
    history = payload.get("replacement_history")
    if isinstance(history, list):
        data["kept_items"] = len(history)
        data["kept_prompts"] = sum(
            _is_prompt(line, mapping(item), data["summary"]) for item in history)
    return data


def _is_prompt(line: Line, item: dict[str, Any], summary: str) -> bool:
    if item.get("type", "message") != "message" or item.get("role") != "user":
        return False
    text = message_text(item)
    return text != summary and origin_of(replace(line, payload=item), text)[0] == "human"


def agent_message(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what one agent wrote to another."""
    content = payload.get("content")
    text = content if isinstance(content, str) else message_text(payload)
    found = {"from": payload.get("author"), "to": payload.get("recipient"), "text": text}
    return {key: value for key, value in found.items() if value is not None}


def item_alone(item: dict[str, Any]) -> dict[str, Any]:
    """Return what tells more of a call that is not there."""
    rest = {key: value for key, value in item.items() if key != "type"}
    return {"name": str(item.get("type")), "details": rest}


def orphan(payload: dict[str, Any]) -> dict[str, Any]:
    """Return an output that is without its call."""
    output = unwrapped(payload.get("output"))
    text = output if isinstance(output, str) else orjson.dumps(output, default=str).decode()
    return {"tool_call_id": payload.get("call_id"), "is_error": False, "text": text}
