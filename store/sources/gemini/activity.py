"""What a session does, as far as its last message tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from store.sources.base.drafts import MessageDraft, PartDraft
from store.sources.base.guesses import may_go_on
from store.sources.base.values import mapping


def activity_of(messages: Sequence[MessageDraft]) -> dict[str, Any] | None:
    """Return a session's ``metadata_json.activity``; None where it ends with an answer.

    Nothing is written while an answer is made, a tool runs or an approval is open, so after a
    prompt, and after an answer that ends in calls, the next words are awaited. An answer that
    ends in words may be followed by its calls: it is written first without them.
    """
    last = next(
        (
            each for each in reversed(messages)
            if "hidden_at" not in each.metadata and not _is_notice(each)
        ),
        None,
    )  # fmt: skip
    if last is None:
        return None
    if last.role == "assistant" and any(_was_stopped(part) for part in last.parts):
        return {"state": "interrupted", "from": "stored", "since": last.updated_at}
    calls = last.role == "assistant" and (
        not any(part.type != "reasoning" for part in last.parts)
        or last.parts[-1].tool_state is not None
    )  # without words: its calls are written when they have ended
    if last.metadata.get("origin") == "human" or calls:
        return {"state": "running", "from": "guessed", "since": last.updated_at}
    if any(part.type == "data-error" for part in last.parts):
        return {"state": "error", "from": "stored", "since": last.created_at}
    return may_go_on(last.updated_at) if last.role == "assistant" else None


def _is_notice(message: MessageDraft) -> bool:
    """Return whether the program told its user something, which ends no turn."""
    return message.role == "system" and all(
        part.type == "data-event" for part in message.parts
    )


def _was_stopped(part: PartDraft) -> bool:
    """Return whether the user cancelled or refused a call, which ends the turn."""
    details = mapping(mapping(part.data.get("resultProviderMetadata")).get("backscroll"))
    return details.get("status") in ("interrupted", "denied")
