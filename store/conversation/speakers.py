"""The name shown over a message: its role, or the trigger of an automatic turn."""

from __future__ import annotations

from collections.abc import Mapping

_ROLES = {"user": "You", "assistant": "Assistant", "system": "System"}
_TRIGGERS = {"api": "API", "mcp-event": "MCP event", "self-schedule": "Self-schedule"}
_LONGEST = 40


def speaker_of(role: str, metadata: Mapping[str, object]) -> str:
    """Return the name shown over a message.

    A user message with ``metadata.trigger`` was triggered by a schedule, a webhook, the API,
    the agent itself or an MCP event, and is named after that. Source: the contract's trigger
    envelope.

    Args:
        role: The message's role.
        metadata: Its decoded ``metadata_json``.

    Returns:
        Text that may come from the session; neutralise it before showing it.
    """
    trigger = metadata.get("trigger")
    if role == "user" and isinstance(trigger, Mapping):
        source = trigger.get("source")
        if isinstance(source, str) and source.strip():
            words = " ".join(source.replace("_", " ").split())
            return _TRIGGERS.get(source, words[:1].upper() + words[1:])[:_LONGEST]
        return "Trigger"
    return _ROLES.get(role, role)
