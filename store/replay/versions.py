"""How a part and a message were at a moment, worked out from the rows that they became.

A call that ran had its input and no result. Of a text that was written, as much is there as
time had gone by: the rows do not tell how fast it came. An answer that was not complete had no
usage yet.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from store.engine.values import decoded
from store.rows import MessageRow, PartRow, is_tool_type

_OF_RESULT = ("output", "errorText", "resultProviderMetadata", "preliminary", "rawOutput")
_OF_ANSWER = ("usage", "cost", "cost_usd", "finish_reason", "finishReason", "duration_ms")


def part_before(row: PartRow, share: float, at: int) -> PartRow:
    """Return a part as it was while it was made.

    Args:
        row: The part in the end.
        share: How much of its time it had had, 0 to 1.
        at: The moment, epoch ms.
    """
    data = decoded(row.data_json)
    state = row.tool_state
    if is_tool_type(row.type):
        for key in _OF_RESULT:
            data.pop(key, None)
        approval = data.get("approval")
        asks = state == "output-denied" and isinstance(approval, dict)
        state = "approval-requested" if asks else "input-available"
        if asks:
            data["approval"] = {"id": approval.get("id")} if isinstance(approval, dict) else {}
    elif isinstance(words := data.get("text"), str):
        data["text"] = words[: int(len(words) * share)]
    if state is not None or "state" in data or "text" in data:
        data["state"] = state if state is not None else "streaming"
    return replace(row, data_json=_json(data), tool_state=state, updated_at=at)


def message_before(row: MessageRow) -> MessageRow:
    """Return a message as it was before it was complete, without what it used."""
    metadata = decoded(row.metadata_json)
    for key in _OF_ANSWER:
        metadata.pop(key, None)
    own = metadata.get("backscroll")
    if isinstance(own, dict):
        metadata["backscroll"] = {
            key: value for key, value in own.items() if key not in _OF_ANSWER}
    return replace(row, metadata_json=_json(metadata))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
