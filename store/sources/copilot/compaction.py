"""``session.compaction_complete``: a summary, and what it used."""

from __future__ import annotations

from typing import Any

from store.sources.base.drafts import MessageDraft
from store.sources.base.plain_parts import data_part
from store.sources.base.values import number, string
from store.sources.copilot.event import Event
from store.sources.copilot.usage import compaction_usage, unanswered


def compaction_messages(event: Event) -> list[MessageDraft]:
    """Return the marker of a compaction, and what its request used where that is reported."""
    data = event.data
    body: dict[str, Any] = {
        "summary": string(data.get("summaryContent")) or "",
        "tail_start_id": None,
        "auto": data.get("trigger") != "manual",
    }
    for name, key in (("pre_tokens", "preCompactionTokens"),
                      ("post_tokens", "postCompactionTokens")):  # fmt: skip
        if number(data.get(key)):
            body[name] = number(data[key])
    part = data_part("compaction", body, event.at, event.number)
    marker = MessageDraft(event.id, "system", event.at, event.at, {"compaction": True}, [part])
    used = compaction_usage(event)
    if used is None:
        return [marker]
    return [marker, unanswered(f"{event.id}:usage", used, {"initiator": "compaction"})]
