"""``--to ui-messages``: the AI SDK's UIMessage array, for ``useChat``.

Each element is ``{"id", "role", "metadata"?, "parts": [UIMessagePart, ...]}``; the stored
parts are unchanged. A message that was recorded from a stream has the SDK's id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from store.engine.database import Database
from store.exports.reading import MessageReading, Row, SessionReading, View, read_session
from store.models import UIMessage
from store.queries.sessions import resolve
from store.recorder.reading import sdk_message
from store.text.exact_json import encode_for_output


def write_ui_messages(reading: SessionReading) -> Iterator[str]:
    """Yield the array in pieces, one line per message."""
    between = "["
    for item in reading.messages:
        yield f"{between}\n{encode_for_output(ui_message(item))}"
        between = ","
    yield "[]\n" if between == "[" else "\n]\n"


def ui_messages(db: Database, session: str, view: View = "display") -> list[UIMessage]:
    """Return the UIMessages of a session.

    Args:
        db: The store.
        session: The session's id, source id or an unambiguous beginning of one.
        view: Which messages, and in which order.

    Raises:
        NotFound: The store has no such session.
    """
    reading = read_session(db, resolve(db, session).id, view, in_pieces=True)
    return [cast(UIMessage, ui_message(item)) for item in reading.messages]


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
