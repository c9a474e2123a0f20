"""Shell lines that a person types, and what they print.

The program tells them as a call that was requested by its user: ``tool.user_requested``,
then ``tool.execution_complete`` with ``isUserRequested``.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import MessageDraft
from store.sources.base.plain_parts import text_part
from store.sources.base.values import mapping, string
from store.sources.copilot.event import Event


def typed(event: Event) -> MessageDraft:
    """Return the line that was typed."""
    given = mapping(event.data.get("arguments"))
    command = string(given.get("command")) or string(event.data.get("toolName")) or ""
    metadata = {"origin": "shell", "backscroll": {"shell": command}}
    part = text_part(command, event.at, event.number)
    return MessageDraft(event.id, "user", event.at, event.at, metadata, [part])


def printed(event: Event, typed_id: str) -> MessageDraft:
    """Return what a line printed; a line that failed has it as its error."""
    data = event.data
    error = mapping(data.get("error"))
    text = string(mapping(data.get("result")).get("content")) or string(error.get("message")) or ""
    extra: dict[str, Any] = {"output": True}
    code = mapping(data.get("shellExecution")).get("exitCode")
    if isinstance(code, int):
        extra["exit_code"] = code
    metadata = {"origin": "shell", "backscroll": extra}
    name = f"{typed_id}:output"
    part = text_part(text, event.at, event.number)
    return MessageDraft(name, "user", event.at, event.at, metadata, [part])
