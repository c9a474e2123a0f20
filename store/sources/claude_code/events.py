"""System and attachment rows: what is shown as an event, and what is only kept as a record."""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import MessageDraft
from store.sources.base.notices import told_parts
from store.sources.base.plain_parts import data_part, text_part
from store.sources.base.requests import prompt_parts
from store.sources.claude_code.blocks import plain_part
from store.sources.claude_code.origins import origin_details
from store.sources.claude_code.printed import printed
from store.sources.claude_code.rows import (
    Row,
    content_blocks,
    mapping,
    number,
    string,
    text_of,
)

ENVELOPE = frozenset(
    [
        "parentUuid",
        "logicalParentUuid",
        "uuid",
        "timestamp",
        "type",
        "isSidechain",
        "sessionId",
        "session_id",
        "cwd",
        "version",
        "gitBranch",
        "userType",
        "entrypoint",
        "slug",
        "agentId",
        "forkedFrom",
        "subtype",
        "isMeta",
        "rendered",
        "renderedRole",
        "renderedBesideToolResult",
        "level",
        "toolUseID",
    ]
)
QUIET_ATTACHMENTS = frozenset(
    [
        "prompt_snapshot",
        "environment",
        "model",
        "deferred_tools_delta",
        "deferred_tools_record",
        "date",
        "agent_listing_delta",
        "skill_listing",
        "session_context",
        "remote_session_change",
        "auto_mode",
        "task_reminder",
        "todo_reminder",
        "hook_success",
        "command_permissions",
        "total_tokens_reminder",
        "nested_memory",
        "mcp_instructions_delta",
        "file",
        "opened_file_in_ide",
        "selected_lines_in_ide",
        "diagnostics",
        "ultrathink_effort",
    ]
)
"""Context that the program re-sends; its records stay with the message before."""
QUIET_SYSTEM = frozenset({"turn_duration", "away_summary"})


def is_quiet(row: Row) -> bool:
    """Return whether a row is kept as a record only."""
    if row.type == "progress":
        return True
    if row.type == "attachment":
        kind = string(mapping(row.data.get("attachment")).get("type"))
        return kind in QUIET_ATTACHMENTS
    if row.type != "system":
        return False
    subtype = string(row.data.get("subtype"))
    if subtype == "stop_hook_summary":
        return not (row.data.get("hookErrors") or row.data.get("preventedContinuation"))
    return subtype in QUIET_SYSTEM


def queued_prompt(row: Row) -> MessageDraft:
    """Return the user message of a prompt that was sent while the agent worked."""
    attachment = mapping(row.data.get("attachment"))
    kind = mapping(attachment.get("origin")).get("kind")
    mode = attachment.get("commandMode")
    blocks = content_blocks(attachment.get("prompt"))
    extra: dict[str, Any] = {"sent_while_working": True}
    typed = kind in (None, "human")
    if typed and mode == "bash":
        origin, line = "shell", text_of(blocks).strip()
        extra["shell"] = line
        # As the program writes a line that was not queued.
        blocks = [{"type": "text", "text": f"<bash-input>{line}</bash-input>"}]
    else:
        origin = "human" if typed and mode in (None, "prompt") else "notification"
    metadata = {"origin": origin, "backscroll": extra}
    parts = [plain_part(block, row.at, row.number) for block in blocks]
    if origin != "shell":
        parts = prompt_parts(parts) if origin == "human" else told_parts(parts)
    return MessageDraft(row.uuid, "user", row.at, row.at, metadata, parts)


def event_message(row: Row) -> MessageDraft:
    """Return the system message of any other row that is shown."""
    subtype = row.data.get("subtype") if row.type == "system" else None
    content = row.data.get("content")
    metadata: dict[str, Any] = {}
    if subtype == "api_error":
        part = data_part("retry", _retry(row), row.at, row.number)
    elif isinstance(content, str) and subtype in ("local_command", "informational"):
        part = text_part(content, row.at, row.number)
        if subtype == "local_command":
            metadata["origin"] = "command"
            metadata["backscroll"] = origin_details(row, "command", content)
            part.data["text"] = printed(content)
    else:
        part = data_part("event", _event(row), row.at, row.number)
    return MessageDraft(row.uuid, "system", row.at, row.at, metadata, [part])


def _retry(row: Row) -> dict[str, Any]:
    """Return an api_error row: one for each try that failed."""
    data = row.data
    error = mapping(data.get("error"))
    found = {
        "message": string(data.get("message"))
        or string(data.get("content"))
        or string(error.get("message"))
        or string(mapping(error.get("error")).get("message"))
        or string(data.get("error")),
        "status": data.get("status") or error.get("status"),
        "delay_ms": number(data.get("retryInMs")),
        "attempt": number(data.get("retryAttempt")),
        "max_attempts": number(data.get("maxRetries")),
    }
    return {key: value for key, value in found.items() if value is not None}


def _event(row: Row) -> dict[str, Any]:
    """Return a row without its envelope, under its name."""
    if row.type == "attachment":
        attachment = mapping(row.data.get("attachment"))
        name = string(attachment.get("type")) or "attachment"
        rest = {key: value for key, value in attachment.items() if key != "type"}
    else:
        name = string(row.data.get("subtype")) or row.type
        rest = {key: value for key, value in row.data.items() if key not in ENVELOPE}
    return {"name": name, **({"details": rest} if rest else {})}
