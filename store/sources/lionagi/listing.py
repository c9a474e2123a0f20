"""Which sessions a database of lionagi has, each with a sign of whether it moved.

``updated_at`` misses most writes (the common model page, finding 2), so the sign is made of
the session's rows, what its branches name, and whether the messages were written anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from store.engine.server_url import Root
from store.sources.base.databases import decoded, stamp_of_rows
from store.sources.base.protocol import Problem, Unit
from store.sources.base.row_reader import Later, Row, RowReader, bound_ids
from store.sources.base.servers.source import ToUnits
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
    "status_transitions": ("entity_id", "max(created_at)"),
}
"""Other tables with rows of a session: the column that names it, and what is newest."""


@dataclass(frozen=True, slots=True)
class Signs:
    """How a database tells that a row was written anew.

    Attributes:
        written: Returns an expression that differs then, for a table; None where the row
            itself has to be read.
        all_messages: Whether every message is looked at, or of sessions that have ended only
            the last ones.
    """

    written: Callable[[str], str] | None = None
    all_messages: bool = True

    def columns(self, reader: RowReader, table: str) -> str:
        """Return what to select of a table for its rows' signs."""
        if self.written is None:
            return "*"
        known = reader.readable(table)
        names = [f'"{name}"' for name in _NEEDED if name in known]
        return ", ".join([*names, f"{self.written(table)} AS written"])

    def of_message(self) -> str:
        """Return the expression for a message."""
        return "content" if self.written is None else self.written("messages")

    def of_side(self, table: str, newest: str) -> str:
        """Return the expression for a session's rows of another table."""
        return newest if self.written is None else f"sum({self.written(table)})"


def fetch_units(reader: RowReader, prefix: str, signs: Signs) -> ToUnits:
    """Fetch what tells the sessions, and whether they moved; return what makes units of it.

    Args:
        reader: Runs the statements.
        prefix: What the units' keys begin with, before the session's id.
        signs: What shows whether a row moved.
    """
    branch_rows = reader.later(f"SELECT {signs.columns(reader, 'branches')} FROM branches")
    progressions = reader.later("SELECT id, collection FROM progressions")
    side_rows = _sides(reader, signs)
    message_sql = f"SELECT id, {signs.of_message()} AS held FROM messages"
    message_rows = reader.later(message_sql) if signs.all_messages else None
    session_rows = reader.later(f"SELECT {signs.columns(reader, 'sessions')} FROM sessions")

    def units(place: Root, problems: list[Problem]) -> Iterator[Unit]:
        branches: dict[str, list[Row]] = {}
        for row in in_sequence(branch_rows(), "created_at", "id"):
            branches.setdefault(str(row["session_id"]), []).append(row)
        lists = {row["id"]: row["collection"] for row in progressions()}
        sides = _by_session(side_rows)
        checks = _checks(message_rows()) if message_rows is not None else None
        for row in in_sequence(session_rows(), "id"):
            name = str(row["id"])
            own = branches.pop(name, [])
            collections = [lists.get(one["progression_id"]) for one in (row, *own)]
            ids = [str(one) for text in collections for one in _ids(text)]
            ids += [str(one["system_msg_id"]) for one in own if one.get("system_msg_id")]
            known = checks
            if known is None:
                if row.get("status") not in ("running", None):
                    ids = ids[-_LAST:]
                known = _checks(reader.rows(
                    f"{message_sql} WHERE id {reader.any_of(1)}", bound_ids(ids)
                ))  # fmt: skip
            held = zlib.crc32(repr([known.get(one) for one in ids]).encode())
            sign = (sorted(row.items()), own, collections, sides.get(name), held)
            times = [row.get("updated_at"), row.get("last_message_at"), row.get("created_at")]
            at = max(utc_ms(time) or 0 for time in times)
            size = _BYTES_PER_MESSAGE * (1 + len(ids))
            yield Unit(f"{prefix}{name}", (stamp_of_rows(place, sign, at=at, size=size),), at)
        for name, left in branches.items():
            reason = f"{len(left)} branches of session {name}, which is not there"
            problems.append(Problem(str(place), 0, reason))

    return units


def _ids(collection: Any) -> list[Any]:
    found = decoded(collection)
    return found if isinstance(found, list) else []


def _sides(reader: RowReader, signs: Signs) -> dict[str, Later]:
    """Count the rows of other tables by session."""
    return {
        table: reader.later(
            f"SELECT {owner} AS name, count(*) AS count, {signs.of_side(table, newest)} AS newest"
            f" FROM {table} GROUP BY {owner}"
        )
        for table, (owner, newest) in _SIDES.items() if owner in reader.permitted(table)
    }  # fmt: skip


def _by_session(sides: Mapping[str, Later]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for table, rows in sides.items():
        for row in rows():
            if string(row["name"]) is not None:
                found.setdefault(row["name"], []).append((table, row["count"], row["newest"]))
    return found


def _checks(rows: Iterable[Row]) -> Mapping[str, int]:
    """Return a check sum by message."""
    return {
        str(row["id"]): zlib.crc32(str(row["held"]).encode("utf-8", "surrogatepass"))
        for row in rows
    }
