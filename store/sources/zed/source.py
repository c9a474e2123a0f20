"""The Zed source: where its threads are, and how they are listed.

Source: the Zed format page, sections "Where" and "Table". Of the databases of the channels, which
hold keys too, only four or five columns of one table are ever selected.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from store.errors import StoreError
from store.sources.base.database_source import DatabaseSource
from store.sources.base.databases import Databases, columns, rows, stamp_of_rows
from store.sources.base.protocol import FileStamp, Problem, Program, Reading, Unit
from store.sources.base.row_reader import Row
from store.sources.base.values import number, string
from store.sources.zed.thread import KIND, read_row, time_ms
from store.system.paths import expanded

DATABASE = "threads.db"
_NEEDED = ("id", "summary", "updated_at", "data_type", "data")
_LATER = ("parent_id", "folder_paths", "folder_paths_order", "created_at")
"""Columns that came over time."""
_SIDEBAR = ("session_id", "agent_id", "title_override", "archived", "updated_at")
_ENDINGS = ("", "-wal")


class ZedSource(DatabaseSource):
    """Fulfils ``Source`` and ``FollowedSource``; reads only."""

    kind = KIND
    label = "Zed"
    tells = ("thoughts", "tokens", "files", "compactions", "subagents")
    program = Program(frozenset({"zed", "zed-editor"}), shares_file=True)
    variables = ("XDG_DATA_HOME",)
    patterns = (DATABASE, f"threads/{DATABASE}")

    def __init__(self) -> None:
        """Make a source."""
        super().__init__()
        self._sidebars: dict[Path, tuple[list[FileStamp], dict[str, Row]]] = {}

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return Zed's folder of data."""
        if sys.platform == "darwin":
            return [home / "Library" / "Application Support" / "Zed"]
        local = environment.get("LOCALAPPDATA", "").strip()
        if sys.platform == "win32" and local:
            return [expanded(local) / "Zed"]
        data = environment.get("XDG_DATA_HOME", "").strip()
        return [(expanded(data) if data else home / ".local" / "share") / "zed"]

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell Zed's database by the columns of its table."""
        return columns(connection, "threads") >= set(_NEEDED)

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each thread.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """
        sidebar = self._sidebar(path, problems)
        selected = ", ".join(_columns(connection))
        for row in rows(connection, f"SELECT {selected}, length(data) FROM threads ORDER BY id"):
            name, at = str(row["id"]), time_ms(row["updated_at"]) or 0
            sign = (sorted(row.items()), sorted(sidebar.get(name, {}).items()))
            stamp = stamp_of_rows(path, sign, at=at, size=number(row["length(data)"]))
            yield Unit(f"{path.name}/{name}", (stamp,), at)

    def read_session(
        self, connection: sqlite3.Connection, path: Path, session_id: str, unit: Unit
    ) -> Reading:
        """Read one thread whole; no session where it is not there, or is a draft.

        Args:
            connection: The database, open for reading.
            path: Its file.
            session_id: The thread's id.
            unit: The unit as it was listed.
        """
        selected = ", ".join((*_columns(connection), "data"))
        found = rows(connection, f"SELECT {selected} FROM threads WHERE id = ?", (session_id,))
        if not found:
            return Reading([], [], unit.stamps)
        problems: list[Problem] = []
        said = self._sidebar(path, []).get(session_id, {})
        draft = read_row(str(path), found[0], said, problems)
        return Reading([draft] if draft is not None else [], problems, unit.stamps)

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return what to watch: the databases of threads, and those of the channels."""
        sidebars = (side for path in self.databases_at(root) for side in _sidebars_of(path))
        beside = [side.with_name(side.name + end) for side in sidebars for end in _ENDINGS]
        return [*super().watch_paths(root), *beside]

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the threads that moved, those too of which only the sidebar tells something new."""
        owners = {
            f"{side}{end}": str(path) for path in self.databases_at(root)
            for side in _sidebars_of(path) for end in _ENDINGS
        }  # fmt: skip
        return super().units_at(root, [owners.get(path, path) for path in paths])

    def _sidebar(self, path: Path, problems: list[Problem]) -> dict[str, Row]:
        """Return what the sidebars of all channels say of threads, by id; the newest counts."""
        found: dict[str, Row] = {}
        for side in _sidebars_of(path):
            try:
                said = self._sidebar_rows(side)
            except (StoreError, sqlite3.Error, OSError) as error:
                problems.append(Problem(str(side), 0, f"cannot be read: {error}"))
                continue
            for name, row in said.items():
                known = found.get(name)
                if known is None or _moved(known) < _moved(row):
                    found[name] = row
        return found

    def _sidebar_rows(self, side: Path) -> dict[str, Row]:
        stamps = [FileStamp.now(f"{side}{end}") for end in _ENDINGS]
        known = self._sidebars.get(side)
        if known is not None and known[0] == stamps:
            return known[1]
        databases = Databases()
        try:
            with databases.reading(side) as connection:
                said = _said(connection)
        finally:
            databases.close()
        self._sidebars[side] = stamps, said
        return said


def _moved(row: Row) -> int:
    return time_ms(row.get("updated_at")) or 0


def _columns(connection: sqlite3.Connection) -> list[str]:
    """Return the columns of a thread that this database has, without its content."""
    there = columns(connection, "threads")
    return [name for name in (*_NEEDED[:-1], *_LATER) if name in there]


def _sidebars_of(path: Path) -> list[Path]:
    """Return the databases of the channels, which share one database of threads."""
    return sorted(path.parent.parent.glob("db/0-*/db.sqlite"))


def _said(connection: sqlite3.Connection) -> dict[str, Row]:
    """Return the rows of Zed's own threads by id; other agents' sessions are in their stores."""
    there = columns(connection, "sidebar_threads")
    if "session_id" not in there:
        return {}
    selected = ", ".join(name for name in _SIDEBAR if name in there)
    return {
        str(row["session_id"]): row
        for row in rows(connection, f"SELECT {selected} FROM sidebar_threads")
        if string(row["session_id"]) and row.get("agent_id") is None
    }  # fmt: skip
