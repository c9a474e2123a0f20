"""Compactions: a user message with a ``compaction`` part, then the answer that sums up.

Source: the opencode format page, section 2.6. The model is sent what follows the newest
such pair, so the answer becomes the marker: its text is the summary. A compaction that
has no answer yet, or failed, cuts nothing off and stays an event.
"""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import MessageDraft
from store.sources.base.values import mapping, string
from store.sources.opencode.stored import StoredMessage


def mark_compactions(messages: list[StoredMessage], drafts: list[MessageDraft]) -> None:
    """Turn the answers that sum up into ``data-compaction`` messages.

    Args:
        messages: All of a session.
        drafts: What was made of each of them.
    """
    asked: dict[str, dict[str, Any]] = {}
    for message in messages:
        for part in message.parts:
            if part.data.get("type") == "compaction":
                asked[message.id] = part.data
    known = {draft.source_id for draft in drafts}
    for message, draft in zip(messages, drafts, strict=True):
        if message.data.get("summary") is True and draft.role == "assistant":
            request = asked.get(str(message.data.get("parentID")), {})
            _mark(message, draft, request, known)


def _mark(
    message: StoredMessage, draft: MessageDraft, request: dict[str, Any], known: set[str]
) -> None:
    texts = [part for part in draft.parts if part.type == "text" and part.data["text"].strip()]
    if not texts or message.data.get("error"):
        return
    tail = string(request.get("tail_start_id"))
    reason = message.data.get("compaction")
    data: dict[str, Any] = {
        "summary": "\n\n".join(part.data["text"] for part in texts),
        "tail_start_id": tail if tail in known else None,
        "auto": bool(request.get("auto", reason == "auto")),
    }
    if request.get("overflow"):
        data["overflow"] = True
    usage = mapping(draft.metadata.get("usage"))
    if usage.get("output"):
        data["summary_tokens"] = usage["output"]
    first = texts[0]
    first.type, first.data = "data-compaction", {"type": "data-compaction", "data": data}
    first.records = tuple(record for part in texts for record in part.records)
    draft.parts = [part for part in draft.parts if part is first or part not in texts]
    draft.metadata["compaction"] = True
