"""What a session does, as far as its last message tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from store.sources.drafts import MessageDraft


def activity_of(messages: Sequence[MessageDraft]) -> dict[str, Any] | None:
    """Return a session's ``metadata_json.activity``; None where it ends with an answer.

    Nothing is written while an answer is made, so after a prompt one is awaited.
    """
    last = next((each for each in reversed(messages) if "hidden_at" not in each.metadata), None)
    if last is None:
        return None
    if last.metadata.get("origin") == "human":
        return {"state": "running", "from": "guessed", "since": last.created_at}
    if any(part.type == "data-error" for part in last.parts):
        return {"state": "error", "from": "stored", "since": last.created_at}
    return None
