"""What a thread's last turn came to, by its rows.

The words of the process (``running``) say whether it works or rests. How a turn ended is in
the rows only: an interactive process that got an error or an interruption rests like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from store.sources.base.drafts import MessageDraft
from store.sources.base.guesses import may_go_on
from store.sources.base.values import mapping

_GOES_ON = ("tool_use", "pause_turn")
_OPEN = ("input-streaming", "input-available", "approval-requested")
_ASIDE = ("command", "shell", "meta", "notification")


def activity_of(messages: Sequence[MessageDraft]) -> dict[str, Any] | None:
    """Return ``metadata_json.activity`` of a thread; None where its last turn ended well.

    Nothing of an answer is written while it streams, so after a prompt or a result the next
    words are awaited.
    """
    for message in reversed(messages):
        if "hidden_at" in message.metadata or "queued_at" in message.metadata:
            continue
        if message.metadata.get("compaction"):
            return None
        if message.role == "assistant":
            return _after_answer(message)
        details = mapping(message.metadata.get("backscroll"))
        if details.get("interrupt"):
            return _state("interrupted", message)
        if message.role == "user" and message.metadata.get("origin") not in _ASIDE:
            return _state("running", message)
    return None


def _after_answer(message: MessageDraft) -> dict[str, Any] | None:
    details = mapping(message.metadata.get("backscroll"))
    last = message.parts[-1] if message.parts else None
    if last is not None and last.type == "data-error":
        return _state("error", message)
    if details.get("aborted_at"):
        return _state("interrupted", message)
    is_call = last is not None and last.tool_state is not None
    is_open = any(part.tool_state in _OPEN for part in message.parts)
    if is_open or is_call or details.get("finish_reason") in _GOES_ON:
        return _state("running", message)
    if "finish_reason" not in details:
        # Versions that write each block when it ends store no reason; another may follow.
        return may_go_on(message.updated_at)
    return None


def _state(state: str, message: MessageDraft) -> dict[str, Any]:
    came = "guessed" if state == "running" else "stored"
    return {"state": state, "from": came, "since": message.updated_at}
