"""``--to ui-messages``: the AI SDK's UIMessage array, for ``useChat``.

Each element is ``{"id", "role", "metadata"?, "parts": [UIMessagePart, ...]}``; the stored
parts are unchanged. A message that was recorded from a stream has the SDK's id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from store.exports.reading import MessageReading, Row, SessionReading
from store.recorder.reading import sdk_message
from store.text.exact_json import encode_for_output


def write_ui_messages(reading: SessionReading) -> Iterator[str]:
    """Yield the array in pieces, one line per message."""
    between = "["
    for item in reading.messages:
        yield f"{between}\n{encode_for_output(ui_message(item))}"
        between = ","
    yield "[]\n" if between == "[" else "\n]\n"


def ui_message(item: MessageReading) -> dict[str, Any]:
    """Return one UIMessage, without a recorder's own metadata."""
    metadata = item.message["metadata"]
    return sdk_message(
        item.message["id"], item.message["role"], metadata if isinstance(metadata, dict) else {},
        (_part(row) for row in item.parts),
    )


def _part(row: Row) -> Any:
    data = row["data"]
    return data if isinstance(data, dict) else {"type": row["type"], "data": data}
