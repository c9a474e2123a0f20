"""What a turn is: the one rule that the list, details, tree, transcript and JSON share.

A turn begins with a message of the user that asks for something. What the program put in,
and commands and shell lines that it carried out by itself, begin none. The same rule as
SQL is ``Form.starts_turn``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_TURN = ("command", "meta", "notification", "shell")
"""Values of ``metadata_json.origin`` whose user rows begin no turn; a missing one does."""


def starts_turn(role: str, metadata: Mapping[str, Any]) -> bool:
    """Say whether a message begins a turn.

    Args:
        role: The message's.
        metadata: Its decoded ``metadata_json``. Whether it is hidden makes no difference.
    """
    if role != "user" or isinstance(metadata.get("queued_at"), int | float):
        return False
    if metadata.get("queue_canceled_at") is not None:
        return False
    origin = metadata.get("origin")
    return not isinstance(origin, str) or origin not in NO_TURN
