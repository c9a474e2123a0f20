"""Ids of events that say which message they are a copy of, where nothing else may say it.

OpenHands takes ids of hexadecimal digits and dashes.
"""

from __future__ import annotations

import re

_MARK = "bac5c011"
_LONGEST = 80
"""Bytes of the longest message id; the event's id is part of a file's name."""
_ID = re.compile(rf"{_MARK}((?:[0-9a-f]{{2}}){{1,{_LONGEST}}})-[0-9a-f]+")


def fits_in_event_id(message_id: str) -> bool:
    """Return whether a message's id is short enough to be part of an event's."""
    return 0 < len(_bytes(message_id)) <= _LONGEST


def event_id_of(message_id: str, number: int) -> str:
    """Return the id of an event.

    Args:
        message_id: The message that it is a copy of.
        number: Which of the message's events it is.
    """
    return f"{_MARK}{_bytes(message_id).hex()}-{number:x}"


def message_of_event(event_id: str) -> str | None:
    """Return the id of the message that an event is a copy of; None for other events."""
    found = _ID.fullmatch(event_id)
    return None if found is None else bytes.fromhex(found[1]).decode("utf-8", "replace")


def _bytes(message_id: str) -> bytes:
    return message_id.encode("utf-8", "surrogatepass")
