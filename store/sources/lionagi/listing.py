"""Which sessions a database of lionagi has, each with a sign of whether it moved.

``updated_at`` misses most writes (the common model page, finding 2), so the sign is made of
the session's rows, what its branches name, and whether the messages were written anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from store.engine.server_url import Root
from store.sources.base.databases import decoded, stamp_of_rows
from store.sources.base.protocol import Problem, Unit
from store.sources.base.row_reader import Row, RowReader, bound_ids
from store.sources.base.values import string, utc_ms
from store.sources.lionagi.stored import in_sequence

_LAST = 2
"""Messages at the end of a session that are looked at where not all are."""
_BYTES_PER_MESSAGE = 2048
_NEEDED = (
    "id", "session_id", "created_at", "updated_at", "last_message_at", "progression_id",
    "system_msg_id", "status",
)  # fmt: skip
_SIDES = {
    "session_signals": ("session_id", "max(seq)"),
    "session_controls": ("session_id", "max(applied_at)"),
    "run_tags": ("session_id", "max(tag)"),
    "approvals": ("session_id", "group_concat(status)"),
}
"""Other tables with rows of a session: the column that names it, and what is newest."""


@dataclass(frozen=True, slots=True)
class Signs:
    """How a database tells that a row was written anew.

    Attributes:
        written: An expression that differs then; None where the row itself has to be read.
        all_messages: Whether every message is looked at, or of sessions that have ended only
            the last ones.
    """

    written: str | None = None
    all_messages: bool = True

    def columns(self, reader: RowReader, table: str) -> str:
        """Return what to select of a table for its rows' signs."""
        if self.written is None:
            return "*"
        known = reader.columns(table)
        names = [f'"{name}"' for name in _NEEDED if name in known]
        return ", ".join([*names, f"{self.written} AS written"])

    def of_message(self) -> str:
        """Return the expression for a message."""
        return self.written or "content"

    def of_side(self, newest: str) -> str:
        """Return the expression for a session's rows of another table."""
        return newest if self.written is None else f"sum({self.written})"


def list_units(
    reader: RowReader, place: Root, prefix: str, signs: Signs, problems: list[Problem]
) -> Iterator[Unit]:
    """Yield a unit for each session; its key is the prefix and the session's id.

    Args:
        reader: Runs the statements.
        place: The database: its path, or its address without a password.
        prefix: What the units' keys begin with.
        signs: What shows whether a row moved.
        problems: Takes what is damaged.
    """
    branches: dict[str, list[Row]] = {}
    found = reader.rows(f"SELECT {signs.columns(reader, 'branches')} FROM branches")
    for row in in_sequence(found, "created_at", "id"):
        branches.setdefault(str(row["session_id"]), []).append(row)
    progressions = reader.rows("SELECT id, collection FROM progressions")
    lists = {row["id"]: row["collection"] for row in progressions}
    sides = _sides(reader, signs)
    checks = _checks(reader, signs, None) if signs.all_messages else None
    sessions = reader.rows(f"SELECT {signs.columns(reader, 'sessions')} FROM sessions")
    for row in in_sequence(sessions, "id"):
        name = str(row["id"])
        own = branches.pop(name, [])
        collections = [lists.get(one["progression_id"]) for one in (row, *own)]
        ids = [str(one) for text in collections for one in _ids(text)]
        ids += [str(one["system_msg_id"]) for one in own if one.get("system_msg_id")]
        if checks is None and row.get("status") not in ("running", None):
            ids = ids[-_LAST:]
        known = checks if checks is not None else _checks(reader, signs, ids)
        held = zlib.crc32(repr([known.get(one) for one in ids]).encode())
        sign = (sorted(row.items()), own, collections, sides.get(name), held)
        times = [row.get("updated_at"), row.get("last_message_at"), row.get("created_at")]
        at = max(utc_ms(time) or 0 for time in times)
        size = _BYTES_PER_MESSAGE * (1 + len(ids))
        yield Unit(f"{prefix}{name}", (stamp_of_rows(place, sign, at=at, size=size),), at)
    for name, left in branches.items():
        reason = f"{len(left)} branches of session {name}, which is not there"
        problems.append(Problem(str(place), 0, reason))


def _ids(collection: Any) -> list[Any]:
    found = decoded(collection)
    return found if isinstance(found, list) else []


def _sides(reader: RowReader, signs: Signs) -> dict[str, list[Any]]:
    """Count the rows of other tables by session."""
    found: dict[str, list[Any]] = {}
    for table, (owner, newest) in _SIDES.items():
        if owner in reader.columns(table):
            sql = (
                f"SELECT {owner} AS name, count(*) AS count, {signs.of_side(newest)} AS newest"
                f" FROM {table} GROUP BY {owner}"
            )
            for row in reader.rows(sql):
                if string(row["name"]) is not None:
                    held = (table, row["count"], row["newest"])
                    found.setdefault(row["name"], []).append(held)
    return found


def _checks(reader: RowReader, signs: Signs, ids: list[str] | None) -> Mapping[str, int]:
    """Return a check sum by message: of all, or of those named."""
    sql = f"SELECT id, {signs.of_message()} AS held FROM messages"
    if ids is None:
        found = reader.rows(sql)
    else:
        found = reader.rows(f"{sql} WHERE id {reader.any_of(1)}", bound_ids(ids))
    return {
        str(row["id"]): zlib.crc32(str(row["held"]).encode("utf-8", "surrogatepass"))
        for row in found
    }
