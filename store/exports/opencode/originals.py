"""Finds the rows that opencode itself wrote for a message, in the original records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from store.exports.kept_records import KeptRecords

Data = dict[str, Any]


@dataclass(slots=True)
class Original:
    """A message as opencode wrote it.

    Attributes:
        id: Its id at opencode.
        info: ``role``, ``time`` and the rest, without ids.
        parts: Its parts in order, without ids.
    """

    id: str
    info: Data
    parts: list[Data] = field(default_factory=list)


def original_of(kept: KeptRecords, message_id: str) -> Original | None:
    """Return a message as opencode wrote it; None for other agents or without kept records.

    Also None for versions up to 0.4, whose format current versions do not accept.
    """
    original: Original | None = None
    parts = []
    for record in kept.of(message_id).rows:
        kind, row = _classified(record)
        if kind == "message":
            original = Original(str(row.pop("id", "")), _without_ids(row))
        elif kind == "part":
            parts.append(_without_ids(row))
    if original is None or original.info.get("role") not in ("user", "assistant"):
        return None
    if not isinstance(original.info.get("time"), dict):
        return None
    original.parts = [part for part in parts if isinstance(part.get("type"), str)]
    return original


def _classified(row: Data) -> tuple[str, Data]:
    """Return a record's kind and content, from a database row or a file's object."""
    table = row.get("table")
    if table in ("message", "part") and isinstance(row.get("data"), dict):
        return str(table), {**row["data"], "id": row.get("id")}
    if table is not None:
        return "", {}
    if "messageID" in row:
        return "part", dict(row)
    return ("message", dict(row)) if "role" in row else ("", {})


def _without_ids(row: Data) -> Data:
    return {key: row[key] for key in row if key not in ("id", "sessionID", "messageID")}
