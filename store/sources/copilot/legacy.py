"""``session.import_legacy``: a session of the first versions, whole in one event.

They kept a session as the list of its chat messages; a newer version that resumes one puts
that list into the first event of its log. The messages are reported here as the events that
they would be now.

Source: the program's own schema of its events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.values import epoch_ms, mapping, string
from store.sources.copilot.event import Event


def legacy_events(event: Event) -> Iterator[Event]:
    """Yield the events that an imported session would consist of.

    None has a time of its own: all have that of the session's start.
    """
    session = mapping(event.data.get("legacySession"))
    at = epoch_ms(session.get("startTime")) or event.at
    messages = session.get("chatMessages")
    for place, message in enumerate(messages if isinstance(messages, list) else ()):
        told = _told(mapping(message))
        if told is not None:
            kind, data = told
            yield Event(f"{event.id}:{place}", kind, data, at, event.number, event.agent)


def _told(message: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return the type and the data of the event that a chat message would be."""
    text = _words(message.get("content"))
    role = message.get("role")
    if role == "user":
        return "user.message", {"content": text}
    if role in ("system", "developer"):
        return "system.message", {"content": text}
    if role == "assistant":
        calls = message.get("tool_calls")
        asked = [_request(mapping(call)) for call in calls] if isinstance(calls, list) else []
        return "assistant.message", {"content": text, "toolRequests": asked}
    if role == "tool":
        data = {"toolCallId": message.get("tool_call_id"), "success": True,
                "result": {"content": text}}  # fmt: skip
        return "tool.execution_complete", data
    return None


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [mapping(part).get("text") for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def _request(call: dict[str, Any]) -> dict[str, Any]:
    function = mapping(call.get("function")) or mapping(call.get("custom"))
    given = function.get("arguments", function.get("input"))
    if isinstance(given, str):
        try:
            given = parse_value(given)
        except LineError:
            given = {"input": given}
    name = string(function.get("name"))
    return {"toolCallId": call.get("id"), "name": name, "arguments": given}
