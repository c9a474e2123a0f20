"""Parts of messages that are no calls."""

from __future__ import annotations

from store.sources.base.drafts import PartDraft
from store.sources.base.plain_parts import data_part
from store.sources.copilot.event import Event


def error_part(event: Event) -> PartDraft:
    """Return what went wrong in a request or a compaction."""
    data = event.data
    found = {
        "message": data.get("message") or data.get("error"),
        "status": data.get("statusCode"),
        "error_type": data.get("errorType"),
    }
    told = {key: value for key, value in found.items() if value is not None}
    return data_part("error", told, event.at, event.number)
