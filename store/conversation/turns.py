"""The definition of a turn, shared by list, details, tree, transcript and JSON.

A turn starts with a user message that asks for something. Messages inserted by the program,
and commands and shell lines that it ran itself, do not start one. ``Form.starts_turn`` is the
same rule in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NO_TURN = ("command", "meta", "notification", "shell")
"""Values of ``metadata_json.origin`` with which a user message does not start a turn."""


def starts_turn(role: str, metadata: Mapping[str, Any]) -> bool:
    """Return whether a message starts a turn.

    Args:
        role: The message's role.
        metadata: Its decoded ``metadata_json``; hidden messages count too.
    """
    if role != "user" or isinstance(metadata.get("queued_at"), int | float):
        return False
    if metadata.get("queue_canceled_at") is not None:
        return False
    origin = metadata.get("origin")
    return not isinstance(origin, str) or origin not in NO_TURN
