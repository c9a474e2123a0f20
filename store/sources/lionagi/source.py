"""The lionagi source: its database, and how a session is listed and read."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

from store.sources.database_source import DatabaseSource
from store.sources.databases import Row, columns, decoded, rows, stamp_of_rows
from store.sources.lionagi.session import KIND, session_drafts
from store.sources.lionagi.stored import read_stored
from store.sources.protocol import Problem, Reading, Unit
from store.sources.values import string, utc_ms

_COLUMNS = {
    "sessions": frozenset({"id", "progression_id", "updated_at"}),
    "branches": frozenset({"id", "session_id", "progression_id"}),
    "progressions": frozenset({"id", "collection"}),
    "messages": frozenset({"id", "content", "lion_class", "role"}),
    "message_types": frozenset({"type_id", "lion_class"}),
}
_LARGE = 32 << 20
"""In a database of more bytes only the last messages of sessions that have ended are
looked at for having been written anew ..."""
_LAST = 2
_BYTES_PER_MESSAGE = 2048


class LionagiSource(DatabaseSource):
    """Fulfils ``store.sources.protocol.Source`` and ``FollowedSource``; reads only."""

    kind = KIND
    label = "lionagi"
    patterns = ("state.db",)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return ``~/.lionagi/state.db``, and the file that ``LIONAGI_STATE_DB_URL`` names."""
        roots = [home / ".lionagi" / "state.db"]
        named = environment.get("LIONAGI_STATE_DB_URL", "").strip()
        scheme, slashes, rest = named.partition(":///")
        if slashes and scheme.partition("+")[0] == "sqlite":
            rest = unquote(rest.partition("?")[0])
            roots.insert(0, Path(rest).expanduser())
        return list(dict.fromkeys(roots))

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell lionagi's database by its tables of progressions and branches."""
        return all(columns(connection, name) >= needed for name, needed in _COLUMNS.items())

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session.

        ``updated_at`` misses most writes (the common model page, finding 2), so the sign is
        made of the rows, what the branches name, and what the messages hold.
        """
        branches: dict[str, list[Row]] = {}
        for row in rows(connection, "SELECT * FROM branches ORDER BY created_at, id"):
            branches.setdefault(str(row["session_id"]), []).append(row)
        lists = dict(connection.execute("SELECT id, collection FROM progressions"))
        sides = _side_counts(connection)
        checks = None if path.stat().st_size > _LARGE else _all_checks(connection)
        for row in rows(connection, "SELECT * FROM sessions ORDER BY id"):
            name = str(row["id"])
            own = branches.pop(name, [])
            collections = [lists.get(one["progression_id"]) for one in (row, *own)]
            ids = [str(one) for text in collections for one in _ids(text)]
            ids += [str(one["system_msg_id"]) for one in own if one.get("system_msg_id")]
            if checks is None and row.get("status") not in ("running", None):
                ids = ids[-_LAST:]
            known = checks if checks is not None else _checks(connection, ids)
            held = zlib.crc32(repr([known.get(one) for one in ids]).encode())
            sign = (sorted(row.items()), own, collections, sides.get(name), held)
            times = [row.get("updated_at"), row.get("last_message_at"), row.get("created_at")]
            at = max(utc_ms(time) or 0 for time in times)
            size = _BYTES_PER_MESSAGE * (1 + len(ids))
            yield Unit(f"{path.name}/{name}", (stamp_of_rows(path, sign, at=at, size=size),), at)
        for name, left in branches.items():
            reason = f"{len(left)} branches of session {name}, which is not there"
            problems.append(Problem(str(path), 0, reason))

    def read_session(
        self, connection: sqlite3.Connection, path: Path, session_id: str, unit: Unit
    ) -> Reading:
        """Read one session with its branches; nothing comes of one that is not there."""
        stored = read_stored(connection, session_id, str(path))
        if stored is None:
            return Reading([], [], unit.stamps)
        drafts = session_drafts(stored)
        problems = list(dict.fromkeys(stored.problems))
        return Reading(drafts, problems, unit.stamps)


def _ids(collection: Any) -> list[Any]:
    found = decoded(collection)
    return found if isinstance(found, list) else []


def _side_counts(connection: sqlite3.Connection) -> dict[str, list[Any]]:
    """Count the rows of other tables that tell of a session, by session."""
    found: dict[str, list[Any]] = {}
    for table, newest in (
        ("session_signals", "max(seq)"),
        ("session_controls", "max(applied_at)"),
        ("run_tags", "max(tag)"),
        ("approvals", "group_concat(status)"),
    ):
        if "session_id" in columns(connection, table):
            sql = f"SELECT session_id, count(*), {newest} FROM {table} GROUP BY session_id"
            for name, *values in connection.execute(sql):
                if string(name) is not None:
                    found.setdefault(name, []).append((table, *values))
    return found


def _all_checks(connection: sqlite3.Connection) -> dict[str, int]:
    return {
        str(name): zlib.crc32(str(content).encode("utf-8", "surrogatepass"))
        for name, content in connection.execute("SELECT id, content FROM messages")
    }


def _checks(connection: sqlite3.Connection, ids: list[str]) -> dict[str, int]:
    given = orjson.dumps(ids).decode()
    found = connection.execute(
        "SELECT id, content FROM messages WHERE id IN (SELECT value FROM json_each(?))", (given,)
    )
    return {
        str(name): zlib.crc32(str(content).encode("utf-8", "surrogatepass"))
        for name, content in found
    }
