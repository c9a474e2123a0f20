"""Rows whose values have the contract's types, for formats that other programs read.

A host's columns and a session's JSON can hold anything: text where a time belongs, a list as
a tool's name. ``export --to json``, ``jsonl`` and ``ui-messages`` give these back as they
are; a format that means something by each value takes them from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from store.exports.encoding import encode
from store.exports.reading import MessageReading, Row, SessionReading

LATEST = 253_402_300_799_000
"""Epoch ms of the last second of the year 9999; programs cannot write a later time."""
_TIMES = ("created_at", "updated_at", "archived_at")
_TEXTS = (
    "type", "text", "state", "toolCallId", "toolName", "errorText", "mediaType", "url",
    "filename", "title", "sourceId",
)  # fmt: skip
_OBJECTS = ("providerMetadata", "callProviderMetadata", "resultProviderMetadata", "approval")
_OWN_NUMBERS = ("duration_ms", "exit_code")
_MOST_TOKENS = 2**53


def conforming(reading: SessionReading) -> SessionReading:
    """Return a reading whose rows have the contract's types.

    Args:
        reading: A session that nobody has begun to read.

    Returns:
        The same session; what fits no type became text, or is left out.
    """
    session = _row(reading.session)
    session["model"] = _model(session.get("model"))
    session["metadata"] = _metadata(session.get("metadata"))
    changed = replace(reading, session=session, messages=_messages(reading.messages))
    changed.remarks = reading.remarks
    return changed


def _messages(messages: Iterator[MessageReading]) -> Iterator[MessageReading]:
    for item in messages:
        message = _row(item.message)
        message["role"] = as_text(message.get("role"))
        message["metadata"] = _metadata(message.get("metadata"))
        yield MessageReading(message, [_part(part) for part in item.parts])


def _row(row: Row) -> Row:
    found = dict(row)
    for name in _TIMES:
        value = found.get(name)
        if value is not None or name != "archived_at":
            found[name] = _time(value)
    for name in ("agent", "workspace_root"):
        if name in found and found[name] is not None:
            found[name] = as_text(found[name])
    return found


def _time(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return 0
    return int(max(0, min(LATEST, value)))


def _part(row: Row) -> Row:
    part = _row(row)
    part["type"] = as_text(part.get("type"))
    given = part.get("data")
    data = dict(given) if isinstance(given, dict) else {"text": as_text(given)}
    for name in _TEXTS:
        if name in data and data[name] is not None:
            data[name] = as_text(data[name])
    for name in _OBJECTS:
        if name in data:
            data[name] = _extras(data[name])
    if part["type"] == "data-compaction":
        content = data.get("data")
        held = content if isinstance(content, dict) else {}
        data["data"] = held | {"summary": as_text(held.get("summary"))}
    if not isinstance(data.get("parts", []), list):
        del data["parts"]
    data.setdefault("type", part["type"])
    return part | {"data": data}


def _extras(value: object) -> dict[str, Any]:
    found = dict(value) if isinstance(value, dict) else {}
    own = found.get("backscroll")
    if own is not None:
        held = dict(own) if isinstance(own, dict) else {}
        for name in _OWN_NUMBERS:
            if not isinstance(held.get(name, 0), int | float):
                del held[name]
        found["backscroll"] = held
    return found


def _metadata(value: object) -> dict[str, Any]:
    found = dict(value) if isinstance(value, dict) else {}
    if "model" in found:
        found["model"] = _model(found["model"])
    if "usage" in found:
        found["usage"] = _usage(found["usage"])
    for name in ("source", "lineage", "backscroll", "user"):
        if name in found and not isinstance(found[name], dict):
            del found[name]
    for name in ("title", "origin", "git_branch", "agent"):
        if found.get(name) is not None:
            found[name] = as_text(found[name])
    return found


def _model(value: object) -> dict[str, str]:
    given = value if isinstance(value, Mapping) else {}
    return {str(name): as_text(item) for name, item in given.items() if item is not None}


def _usage(value: object) -> dict[str, Any]:
    given = value if isinstance(value, Mapping) else {}
    return {name: item for name, item in given.items() if _is_count(item)}


def _is_count(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(_is_count(item) for item in value.values())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= _MOST_TOKENS


def as_text(value: object) -> str:
    """Return a value as text: a string as it is, nothing as "", anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value)
