"""Gives back, from stored rows, the UIMessage that the stream built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from store.engine.database import Database
from store.recorder.json_text import parse
from store.recorder.partial_json import MISSING, PartialJson
from store.recorder.parts import SETTLED_KEYS
from store.rows import MessageRow, PartRow

OWN_KEY = "backscroll"
"""The key of ``metadata_json`` under which a recorder keeps what the stream did not send.

``sdk_message_id``: the stream's id of the message. ``usage_added``: ``metadata_json.usage``
(always the sum over the steps) is no key of the stream's; ``stream_usage``: what the stream
has there, where that is another value. ``usage``: the sum in rows of older versions, whose
``metadata_json.usage`` is the stream's.
``metadata``: the stream's metadata where it is no object (or uses this key);
``empty_metadata``: it was ``{}``. ``finish_reason``, ``error``, ``aborted_at``,
``abort_reason``, ``protocol_error``, ``interrupted_at``: how it ended. ``continues``: the
user answered an approval or a tool call, and the next stream goes on with this message.
``settled``: what an abort ended, by the position of the part in its message: the values
that the SDK has for it. ``next_index``: the index of the next part, after a step was reset.
"""


def own_of(metadata: object) -> dict[str, Any]:
    """Return what a recorder keeps of its own in a message's decoded ``metadata_json``."""
    own = metadata.get(OWN_KEY) if isinstance(metadata, Mapping) else None
    return own if isinstance(own, dict) else {}


def sdk_metadata(metadata: Mapping[str, Any]) -> Any:
    """Return the metadata as the SDK has it, ``MISSING`` where it has none.

    Args:
        metadata: The decoded ``metadata_json`` of a message.
    """
    own = own_of(metadata)
    if "metadata" in own:
        return own["metadata"]
    ours = {OWN_KEY} if own else set()
    if own.get("usage_added"):
        ours.add("usage")
    found = {key: value for key, value in metadata.items() if key not in ours}
    if "stream_usage" in own:
        found["usage"] = own["stream_usage"]
    return found if found or own.get("empty_metadata") else MISSING


def sdk_part(data: dict[str, Any]) -> dict[str, Any]:
    """Return a stored part as the SDK has it.

    While a tool input streams, its text is stored as it comes and its value at a slower
    pace; the value is made from the text here.
    """
    raw = data.get("rawInput")
    streams = data.get("state") == "input-streaming" and isinstance(raw, str)
    if not streams or data.get("inputEncoding") == "text":
        return data
    value = PartialJson(str(raw)).value()
    kept = {key: held for key, held in data.items() if key != "input"}
    return kept if value is MISSING else kept | {"input": value}


def sdk_message(
    row_id: str, role: str, metadata: Mapping[str, Any], parts: Iterable[dict[str, Any]]
) -> dict[str, Any]:
    """Return the UIMessage of decoded columns; its id is the stream's, else the row's.

    Args:
        row_id: The row's id.
        role: The message's role.
        metadata: Its decoded metadata.
        parts: Its decoded parts, in order.
    """
    own = own_of(metadata)
    message: dict[str, Any] = {"id": own.get("sdk_message_id", row_id), "role": role}
    given = sdk_metadata(metadata)
    if given is not MISSING:
        message["metadata"] = given
    settled = own.get("settled")
    before = settled if isinstance(settled, dict) else {}
    return message | {"parts": [
        sdk_part(_unsettled(data, before.get(str(position))))
        for position, data in enumerate(parts)
    ]}


def _unsettled(data: dict[str, Any], before: object) -> dict[str, Any]:
    """Return a part as it was before an abort settled it, which the SDK does not do."""
    if not isinstance(before, dict):
        return data
    return {key: value for key, value in data.items() if key not in SETTLED_KEYS} | before


def ui_message(row: MessageRow, parts: Iterable[PartRow]) -> dict[str, Any]:
    """Return the UIMessage of a message's rows, parts in the order of their index."""
    decoded = (parse(part.data_json) for part in parts)
    return sdk_message(row.id, row.role, parse(row.metadata_json), decoded)


def read_ui_message(db: Database, message_id: str) -> dict[str, Any] | None:
    """Return a stored message as a UIMessage, or None."""
    found = db.connection.execute(
        "SELECT role, metadata_json FROM chat_messages WHERE id = $1", {"1": message_id}
    ).fetchone()
    if found is None:
        return None
    rows = db.connection.execute(
        'SELECT data_json FROM chat_parts WHERE message_id = $1 ORDER BY "index"',
        {"1": message_id},
    ).fetchall()
    parts = (parse(row[0]) for row in rows)
    return sdk_message(message_id, found[0], parse(found[1]), parts)
