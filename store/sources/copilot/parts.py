"""Parts of messages that are no calls."""

from __future__ import annotations

from typing import Any

from store.sources.copilot.event import Event
from store.sources.drafts import PartDraft


def text_part(text: str, event: Event) -> PartDraft:
    """Return a finished text part."""
    data = {"type": "text", "text": text, "state": "done"}
    return PartDraft("text", data, event.at, event.at, records=(event.number,))


def data_part(kind: str, data: dict[str, Any], event: Event) -> PartDraft:
    """Return a ``data-<kind>`` part."""
    name = f"data-{kind}"
    return PartDraft(
        name, {"type": name, "data": data}, event.at, event.at, records=(event.number,)
    )


def error_part(event: Event) -> PartDraft:
    """Return what went wrong in a request or a compaction."""
    data = event.data
    found = {
        "message": data.get("message") or data.get("error"),
        "status": data.get("statusCode"),
        "error_type": data.get("errorType"),
    }
    return data_part("error", {k: v for k, v in found.items() if v is not None}, event)
