"""Removes values of wrong types from a session, for the exports for agents.

A host's rows may contain anything. A value of the wrong type is treated as missing, so that
it does not make the whole export fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from store.exports.reading import MessageReading, Row, SessionReading

LATEST = 253_370_764_800_000
"""Epoch ms in the year 9999; later times have no date in some time zones."""
_TEXTS = (
    "type", "text", "mediaType", "url", "filename", "toolCallId", "toolName", "state", "errorText",
)  # fmt: skip
_MOST_TOKENS = 2**53
_OBJECTS = (
    "approval", "providerMetadata", "callProviderMetadata", "resultProviderMetadata",
)  # fmt: skip


def typed(reading: SessionReading, *, damaged: bool = False) -> SessionReading:
    """Return a reading of the same session with only values of the right types.

    Args:
        reading: A session whose messages were not read yet.
        damaged: Whether to keep parts that are not objects, to show them unchanged.
    """
    messages = _messages(reading, damaged)
    return replace(reading, session=_session(reading.session), messages=messages)


def milliseconds(value: object) -> int:
    """Return a valid time in epoch ms; 0 if the value is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(min(max(value, 0), LATEST)) if value == value else 0


def _session(row: Row) -> Row:
    folder = row["workspace_root"]
    return row | {
        "created_at": milliseconds(row["created_at"]),
        "updated_at": milliseconds(row["updated_at"]),
        "workspace_root": folder if isinstance(folder, str) and folder else None,
        "model": _model(row.get("model")) or {},
        "metadata": row["metadata"] if isinstance(row["metadata"], dict) else {},
    }


def _messages(reading: SessionReading, damaged: bool) -> Iterator[MessageReading]:
    for item in reading.messages:
        row = item.message
        times = {key: milliseconds(row[key]) for key in ("created_at", "updated_at")}
        message = row | times | {"role": str(row["role"]), "metadata": _metadata(row["metadata"])}
        parts = (_part(one) or (one if damaged else None) for one in item.parts)
        yield MessageReading(message, [part for part in parts if part is not None])


def _metadata(value: object) -> dict[str, Any]:
    metadata = dict(value) if isinstance(value, dict) else {}
    wanted = {"origin": str, "agent": str, "usage": dict}
    for key, kind in wanted.items():
        if key in metadata and not isinstance(metadata[key], kind):
            del metadata[key]
    if "model" in metadata:
        metadata["model"] = _model(metadata["model"])
    if "usage" in metadata:
        metadata["usage"] = {
            key: value for key, value in metadata["usage"].items() if _is_count(value)
        }
    return metadata


def _is_count(value: object) -> bool:
    if isinstance(value, dict):
        return all(_is_count(item) for item in value.values())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= _MOST_TOKENS


def _model(value: object) -> dict[str, Any] | None:
    if not isinstance(value, dict) or not isinstance(value.get("model_id"), str):
        return None
    provider = value.get("provider_id")
    return {**value, "provider_id": provider if isinstance(provider, str) else "unknown"}


def _part(row: Row) -> Row | None:
    data = row["data"]
    if not isinstance(data, dict) or not isinstance(data.get("type"), str):
        return None
    data = {key: value for key, value in data.items() if _fits(key, value)}
    if data["type"] in ("text", "reasoning") and "text" not in data:
        return None
    extras = data.get("resultProviderMetadata", {})
    if "backscroll" in extras:
        data["resultProviderMetadata"] = extras | {"backscroll": _own(extras["backscroll"])}
    if data["type"] == "data-compaction":
        content = data.get("data")
        summary = content.get("summary") if isinstance(content, dict) else None
        held = content if isinstance(content, dict) else {}
        given = isinstance(summary, str | int | float) and summary is not False
        data["data"] = held | {"summary": str(summary) if given else ""}
    output = data.get("output")
    if isinstance(output, list):
        data["output"] = [_content(item) for item in output]
    return row | {
        "data": data, "type": data["type"], "created_at": milliseconds(row["created_at"]),
        "updated_at": milliseconds(row["updated_at"]),
    }  # fmt: skip


def _own(value: object) -> dict[str, Any]:
    held = value if isinstance(value, dict) else {}
    return {
        key: item for key, item in held.items()
        if key not in ("duration_ms", "exit_code") or isinstance(item, int | float)
    }


def _content(item: Any) -> Any:
    if not isinstance(item, dict) or item.get("type") not in ("text", "file"):
        return item
    return {key: value for key, value in item.items() if key not in _TEXTS or _fits(key, value)}


def _fits(key: str, value: object) -> bool:
    if key in _TEXTS:
        return isinstance(value, str)
    if key == "parts":
        return isinstance(value, list)
    return key not in _OBJECTS or isinstance(value, dict)
