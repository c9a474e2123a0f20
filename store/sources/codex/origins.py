"""What a user message says: a person's words, a shell line, or the program's own.

Source: rollouts of versions 0.98.0 and 0.171.0. Today's messages name the kinds of their
content; older ones are recognised by how they begin, and by the ``user_message`` event that
follows what a person typed.
"""

from __future__ import annotations

import re
from typing import Any

from store.sources.base.requests import request_of, without_context
from store.sources.base.values import mapping
from store.sources.codex.rollout import Line

_STARTS = (
    ("<environment_context>", "meta"),
    ("# AGENTS.md instructions", "meta"),
    ("<user_instructions>", "meta"),
    ("<INSTRUCTIONS>", "meta"),
    ("<permissions instructions>", "meta"),
    ("<skill>", "meta"),
    ("<skills_instructions>", "meta"),
    ("<model_switch>", "meta"),
    ("<collaboration_mode>", "meta"),
    ("<turn_aborted>", "meta"),
    ("<hook_prompt", "meta"),
    ("<goal_context>", "meta"),
    ("<recommended_plugins>", "meta"),
    ("<not_from_user>", "meta"),
    ("<user_shell_command>", "shell"),
    ("<subagent_notification>", "notification"),
    ("<user_action>", "notification"),
)
_SHELL = re.compile(r"<command>\n?(.*?)\n?</command>", re.S)
ABORTED = "<turn_aborted>"


def kinds_of(line: Line) -> list[str]:
    """Return the kinds that a message's content items are said to have."""
    said = mapping(line.payload.get("internal_chat_message_metadata_passthrough"))
    kinds = said.get("content_item_kinds")
    return [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []


def origin_of(line: Line, text: str) -> tuple[str, bool]:
    """Return ``human``, ``shell``, ``notification`` or ``meta``, and whether that is certain."""
    kinds = kinds_of(line)
    if any(kind.startswith("user.") for kind in kinds):
        return "human", True
    start = without_context(text).lstrip()
    for beginning, origin in _STARTS:
        if start.startswith(beginning):
            return origin, True
    if any(kind.endswith("notification") for kind in kinds):
        return "notification", True
    if start and not request_of(start):
        return "meta", True
    known = [kind for kind in kinds if kind != "unknown"]
    return ("meta", True) if known else ("human", False)


def origin_details(origin: str, text: str) -> dict[str, Any]:
    """Return what the transcript wants to know beside the origin.

    Returns:
        ``shell`` (the line that was typed), or ``interrupt`` for the mark of one.
    """
    if origin == "shell":
        found = _SHELL.search(text)
        return {"shell": found[1] if found else ""}
    return {"interrupt": True} if text.lstrip().startswith(ABORTED) else {}
