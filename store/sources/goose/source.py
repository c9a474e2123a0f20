"""The Goose source: where its database and older files are, and how they are listed and read.

Source: the Goose format page, sections 1 (places) and 4 (live).
"""

from __future__ import annotations

import os
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from store.sources.base.database_source import DatabaseSource
from store.sources.base.databases import SqliteRows, columns, rows, stamp_of_rows
from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import first_record
from store.sources.base.growing import (
    LINES,
    BuiltUnit,
    UnitFiles,
    UnitFollower,
    entries_of,
    stamp_of,
    stamped,
)
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import (
    FileStamp,
    Follower,
    Problem,
    Program,
    Reading,
    Unit,
)
from store.sources.base.values import mapping, utc_ms
from store.sources.goose.messages import created_ms
from store.sources.goose.session import KIND, lines_draft, read_session
from store.system.paths import expanded

DATABASE = "sessions.db"
_COLUMNS = {
    "sessions": frozenset({"id", "working_dir", "updated_at", "accumulated_total_tokens"}),
    "messages": frozenset({"id", "session_id", "role", "content_json", "created_timestamp"}),
}
_BYTES_PER_MESSAGE = 2048
_LAST = 3
"""Rows at the end of a session that are compared whole: titles of tools come into old rows."""
_BELOW = ("", "sessions", "data/sessions", "goose/sessions")


class GooseSource(DatabaseSource, LibrarySource):
    """Fulfils ``Source`` and ``FollowedSource``; reads only.

    Looks into the library for what was spent and is in no ledger any more.
    """

    kind = KIND
    label = "Goose"
    tells = ("thoughts", "tokens", "cost", "files", "compactions", "subagents")
    program = Program(frozenset({"goose", "goosed"}), shares_file=True)
    variables = ("GOOSE_PATH_ROOT", "XDG_DATA_HOME")
    patterns = (DATABASE,)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the folder of sessions that ``GOOSE_PATH_ROOT`` names, and the usual ones."""
        named = environment.get("GOOSE_PATH_ROOT", "").strip()
        data = environment.get("XDG_DATA_HOME", "").strip()
        roaming = environment.get("APPDATA", "").strip()
        usual = [(expanded(data) if data else home / ".local" / "share") / "goose" / "sessions"]
        if sys.platform == "darwin":
            support = home / "Library" / "Application Support"
            usual += [support / "goose" / "sessions", support / "Block" / "goose" / "sessions"]
        elif sys.platform == "win32" and roaming:
            usual = [expanded(roaming) / "Block" / "goose" / "data" / "sessions"]
        moved = [expanded(named) / "data" / "sessions"] if os.path.isabs(named) else []
        return list(dict.fromkeys([*moved, *usual]))

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: a database, a file of lines, or a folder that has some."""
        if path.name.endswith(LINES):
            return path if path.is_file() and _is_session(path) else None
        for below in _BELOW:
            root = path / below
            if super().recognise(root) is not None or _has_lines(root):
                return root
        return None

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell Goose's database by its two tables."""
        return all(columns(connection, name) >= needed for name, needed in _COLUMNS.items())

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions of the database, then the older files that it does not have."""
        known = set[str]()
        for unit in () if root.name.endswith(LINES) else super().units(root, problems):
            known.add(unit.key.partition("/")[2])
            yield unit
        for stamp in _lines_at(root, problems):
            name = os.path.basename(stamp.path)
            if name.removesuffix(LINES) not in known:
                yield Unit(name, (stamp,), stamp.mtime_ns // 1_000_000)

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """
        counted = {
            str(row[0]): row[1:] for row in connection.execute(
                "SELECT session_id, count(*), max(id) FROM messages GROUP BY session_id")
        }  # fmt: skip
        threads = _threads(connection)
        for row in rows(connection, "SELECT * FROM sessions ORDER BY id"):
            name = str(row["id"])
            held = counted.pop(name, (0, 0))
            last, at = _last_rows(connection, "messages", "session_id", name)
            thread = str(row.get("thread_id"))
            if not held[0] and thread in threads:
                last, at = _last_rows(connection, "thread_messages", "thread_id", thread)
            at = max(at, utc_ms(row.get("updated_at")) or 0)
            sign = (sorted(row.items()), held, last, threads.get(thread))
            size = _BYTES_PER_MESSAGE * (1 + held[0])
            yield Unit(f"{path.name}/{name}", (stamp_of_rows(path, sign, at=at, size=size),), at)
        for name, held in counted.items():
            reason = f"{held[0]} messages of session {name}, which is not there"
            problems.append(Problem(str(path), 0, reason))

    def read_session(
        self, connection: sqlite3.Connection, path: Path, session_id: str, unit: Unit
    ) -> Reading:
        """Read one session whole; no session where it is not there any more.

        Args:
            connection: The database, open for reading.
            path: Its file.
            session_id: The session's id.
            unit: The unit as it was listed.
        """
        return read_session(SqliteRows(connection), str(path), session_id, unit, self._library)

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one session whole, of the database or of a file of lines.

        Raises:
            StoreError: The database cannot be opened.
            sqlite3.Error: The database is locked or damaged.
        """
        if unit.key.endswith(LINES):
            return self.follower(root, unit).read(unit)
        return super().read(root, unit)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions that moved; None where a file of lines did, as they are few."""
        changed = list(paths)
        if any(path.endswith(LINES) for path in changed):
            return None
        return super().units_at(root, changed)

    def follower(self, root: Path, unit: Unit) -> Follower:
        """Return a follower that has read nothing yet."""
        if unit.key.endswith(LINES):
            return UnitFollower(lambda _unit: BuiltUnit(_build))
        return super().follower(root, unit)


def _build(unit: Unit, files: UnitFiles, problems: list[Problem]) -> list[SessionDraft]:
    return [
        lines_draft(path, os.path.basename(path).removesuffix(LINES), file.lines, file.records)
        for path, file in files.lines.items() if file.lines
    ]  # fmt: skip


def _lines_at(root: Path, problems: list[Problem]) -> Iterator[FileStamp]:
    """Yield the files of lines at a root: itself, or those of its folder."""
    if root.name.endswith(LINES):
        try:
            yield stamp_of(str(root), os.stat(root))
        except OSError as error:
            problems.append(Problem(str(root), 0, error.strerror or str(error)))
    elif root.is_dir():
        for entry in entries_of(str(root), problems):
            if entry.name.endswith(LINES):
                yield from stamped(entry, problems)


def _threads(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """Return how many messages each thread has, and the last one; of schemas 10 and 11."""
    if not columns(connection, "thread_messages"):
        return {}
    return {
        str(row[0]): (row[1], row[2]) for row in connection.execute(
            "SELECT thread_id, count(*), max(id) FROM thread_messages GROUP BY thread_id")
    }  # fmt: skip


def _last_rows(
    connection: sqlite3.Connection, table: str, column: str, name: str
) -> tuple[list[tuple[int, int]], int]:
    """Return what tells the last rows of a session from others, and when they were written."""
    found, newest = [], 0
    for content, created in connection.execute(
        f"SELECT content_json, created_timestamp FROM {table} WHERE {column} = ?"
        " ORDER BY id DESC LIMIT ?", (name, _LAST),
    ):
        text = str(content).encode("utf-8", "surrogatepass")
        found.append((len(text), zlib.crc32(text)))
        newest = max(newest, created_ms(created))
    return found, newest


def _has_lines(folder: Path) -> bool:
    names = [entry.path for entry in entries_of(str(folder)) if entry.name.endswith(LINES)]
    return any(_is_session(Path(name)) for name in names[:20])


def _is_session(path: Path) -> bool:
    """Return whether a file begins as Goose's older sessions do."""
    data = first_record(path) or {}
    if "description" in data and "message_count" in data:
        return True
    content = data.get("content")
    return "created" in data and data.get("role") in ("user", "assistant") and (
        isinstance(content, list) and "type" in mapping(content[0] if content else None))
