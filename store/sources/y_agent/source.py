"""The y-agent source: its folder, and how a session is listed and read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from store.errors import StoreError
from store.sources.base.database_source import DatabaseSource
from store.sources.base.databases import Row, columns, rows, stamp_of_rows
from store.sources.base.growing import (
    GrowingFile,
    UnitFiles,
    UnitFollower,
    entries_of,
    stamp_of,
    stamped,
)
from store.sources.base.json_lines import LineError, parse_value
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import (
    SESSION_FACT,
    FileStamp,
    Problem,
    Reading,
    Unit,
)
from store.sources.base.values import mapping, string, utc_ms
from store.sources.y_agent.journal import NAME, Journal
from store.sources.y_agent.session import KIND, Files, display_path, message_ids, session_draft
from store.sources.y_agent.stored import StoredSession, read_stored
from store.system.paths import open_regular

_COLUMNS = frozenset({"id", "session_type", "state", "transcript_path", "root_id"})
_SNAPSHOTS, _HUB = "_snapshots.json", "session-hub.json"
_COUNTED = {
    "chat_checkpoints": "session_id, count(*), sum(invalidated), max(turn_number)",
    "chat_messages": "session_id, count(*), group_concat(status)",
    "session_events": "session_id, count(*), max(event_id)",
}
_TRACED = ("status", "completed_at", "total_input_tokens", "total_output_tokens")
"""Columns of a trace that are written when it ends."""


class _Parent(NamedTuple):
    """What is known of the session that a fork was made from.

    Attributes:
        messages: The ids of its messages.
        looked: Its transcript, where that was looked for in vain.
    """

    messages: frozenset[str]
    looked: Sequence[FileStamp] = ()


class YAgentSource(DatabaseSource, LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source`` and ``FollowedSource``; reads only.

    Looks into the library for what forks were made from and is gone.
    """

    kind = KIND
    label = "y-agent"
    tells = ("thoughts", "tokens", "cost", "files", "compactions", "forks", "subagents")
    version = 3
    patterns = ("y-agent.db",)

    def __init__(self) -> None:
        """Make a source."""
        super().__init__()
        self._journals: dict[str, Journal] = {}

    def _journal(self, folder: Path, problems: list[Problem]) -> Journal:
        journal = self._journals.setdefault(str(folder), Journal())
        journal.read(str(folder), problems)
        return journal

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the data folder below ``XDG_STATE_HOME`` or ``~/.local/state``."""
        state = environment.get("XDG_STATE_HOME", "").strip()
        base = Path(state) if state else home / ".local" / "state"
        return [base / "y-agent" / "data"]

    def recognise(self, path: Path) -> Path | None:
        """Return the data folder when a file or folder is y-agent's."""
        for root in (path, path / "data"):
            if super().recognise(root) is not None:
                return root
        return None

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell y-agent's database by its table of sessions."""
        return columns(connection, "session_metadata") >= _COLUMNS

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session: its rows, and the files that belong to it.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """
        counts = _counts(connection)
        pinned = _pins(path.parent, problems)
        journal = self._journal(path.parent, problems)
        with_history = {entry.name for entry in entries_of(str(path.parent / "file-history"))}
        known: set[str] = set()
        for row in rows(connection, "SELECT * FROM session_metadata ORDER BY id"):
            name = str(row["id"])
            sign = (sorted(row.items()), counts.get(name), pinned.get(name), journal.sign(name))
            at = max(utc_ms(row.get(key)) or 0 for key in ("created_at", "updated_at"))
            stamps = [stamp_of_rows(path, sign, at=at, size=1024)]
            files = list(_files_of(path.parent, row, name in with_history, problems))
            known.update(stamp.path for stamp in files)
            stamps += files
            newest = max((stamp.mtime_ns // 1_000_000 for stamp in files), default=0)
            yield Unit(f"{path.name}/{name}", tuple(stamps), max(at, newest))
        for entry in entries_of(str(path.parent / "transcripts")):
            if entry.path not in known and entry.is_file() and entry.stat().st_size:
                problems.append(Problem(entry.path, 0, "transcript of a session that is not there"))

    def read_session(
        self, connection: sqlite3.Connection, path: Path, session_id: str, unit: Unit
    ) -> Reading:
        """Read one session whole.

        Args:
            connection: The database, open for reading.
            path: Its file.
            session_id: The session's id at the source.
            unit: The unit as it was listed.
        """
        return self.read_with(connection, path, session_id, unit, UnitFiles())

    def read_with(
        self,
        connection: sqlite3.Connection,
        path: Path,
        session_id: str,
        unit: Unit,
        files: UnitFiles,
    ) -> Reading:
        """Read one session; of its transcripts, what ``files`` has not read yet.

        Args:
            connection: The database, open for reading.
            path: Its file.
            session_id: The session's id at the source.
            unit: The unit as it was listed.
            files: What was read of the session's files so far.
        """
        stored = read_stored(connection, session_id)
        if stored is None:
            return Reading([], [], unit.stamps)
        files.take(Unit(unit.key, unit.stamps[1:], unit.changed_at))
        problems: list[Problem] = []
        context = _transcript(path.parent, stored.row)
        display = display_path(context)
        for name in (context, display):
            if name not in files.lines and _has_lines(stored):
                problems.append(Problem(name, 0, "transcript is missing"))
        parent = self._parent(path.parent, stored, connection)
        found = Files(
            files.lines.get(display), files.lines.get(context), parent.messages, _history(files),
            _pins(path.parent, []).get(session_id, (False, None)),
            self._journal(path.parent, []).events.get(session_id, []),
        )  # fmt: skip
        draft = session_draft(stored, str(path), found, problems)
        wants: list[str] = []
        if stored.row.get("parent_id") and stored.parent is None:
            reason = f"session {session_id}: its parent {stored.row['parent_id']} is not there"
            problems.append(Problem(str(path), 0, reason))
            wants.append(f"{SESSION_FACT}{stored.row['parent_id']}")
        stamps = (unit.stamps[0], *files.stamps)
        problems = files.torn + files.problems + problems
        return Reading([draft], problems, stamps, looked=parent.looked, wants=wants)

    def _parent(
        self, folder: Path, stored: StoredSession, connection: sqlite3.Connection
    ) -> _Parent:
        """Return the session that a fork was made from; nothing for any other session."""
        name = string(stored.row.get("parent_id"))
        if name is None or stored.row.get("session_type") != "branch":
            return _Parent(frozenset())
        known = frozenset(one.name for one in self._library.messages(name))
        if stored.parent is None:
            return _Parent(known)
        path = display_path(_transcript(folder, stored.parent))
        looked = [] if os.path.exists(path) else [FileStamp.now(path)]
        return _Parent(known | _message_ids(path, name, connection), looked)

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the database's files and the folders of transcripts and file history."""
        folder = root if root.is_dir() else root.parent
        beside = [folder / name for name in ("transcripts", "file-history", _HUB, NAME)]
        return [*super().watch_paths(root), *(path for path in beside if path.exists())]

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions that moved since the last time; their files are looked at too."""
        found = self.databases_at(root)
        return [unit for path in found for unit in self.moved_in(path)] if found else None

    def follower(self, root: Path, unit: Unit) -> Any:
        """Return a follower that has read nothing yet."""
        return UnitFollower(lambda now: _Transcripts(self))

    def reading_with(self, unit: Unit, files: UnitFiles) -> Reading:
        """Return what ``read`` would, continuing with files that were read before.

        Raises:
            StoreError: The database cannot be opened.
            sqlite3.Error: It is locked or damaged.
        """
        path = Path(unit.stamps[0].path)
        with self._databases.reading(path) as connection:
            name = unit.key.partition("/")[2]
            return self.read_with(connection, path, name, unit, files)


class _Transcripts(UnitFiles):
    """A session's transcripts, of which only what was added is read."""

    def __init__(self, source: YAgentSource) -> None:
        super().__init__()
        self._source = source

    def read(self, unit: Unit) -> Reading:
        """Return what ``Source.read`` would.

        Raises:
            Changed: The transcripts must be read from the beginning.
        """
        return self._source.reading_with(unit, self)


def _counts(connection: sqlite3.Connection) -> dict[str, list[Any]]:
    """Return by session what tells that its rows of other tables moved."""
    found: dict[str, list[Any]] = {}
    for table, what in _COUNTED.items():
        if "session_id" in columns(connection, table):
            for name, *values in connection.execute(
                f"SELECT {what} FROM {table} GROUP BY session_id"
            ):
                found.setdefault(str(name), []).append((table, *values))
    for name, *values in _trace_counts(connection):
        found.setdefault(str(name), []).append(("diag_traces", *values))
    return found


def _trace_counts(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return by session what tells that a trace began, ended, or has another observation."""
    names = columns(connection, "diag_traces")
    key = "trace_id" if "trace_id" in names else "id"
    if not {"session_id", key} <= names:
        return []
    ended = "".join(f", group_concat(t.{name})" for name in _TRACED if name in names)
    observed = "0"
    if "trace_id" in columns(connection, "diag_observations"):
        observed = f"(SELECT count(*) FROM diag_observations o WHERE o.trace_id = t.{key})"
    return connection.execute(
        f"SELECT t.session_id, count(*), max(t.rowid), sum({observed}){ended}"
        " FROM diag_traces t GROUP BY t.session_id"
    ).fetchall()


def _transcript(folder: Path, row: Row) -> str:
    named = string(row.get("transcript_path")) or f"transcripts/{row['id']}.jsonl"
    path = os.path.join(folder, named)
    # A folder that was moved keeps the paths it had.
    return path if os.path.exists(path) else os.path.join(
        folder, "transcripts", os.path.basename(named)
    )  # fmt: skip


def _files_of(
    folder: Path, row: Row, has_history: bool, problems: list[Problem]
) -> Iterator[FileStamp]:
    context = _transcript(folder, row)
    for path in (context, display_path(context)):
        try:
            yield stamp_of(path, os.stat(path))
        except FileNotFoundError:
            continue  # A session that was never used has none.
        except OSError as error:
            problems.append(Problem(path, 0, error.strerror or str(error)))
    history = os.path.join(folder, "file-history", str(row["id"]))
    for entry in entries_of(history) if has_history else ():
        yield from stamped(entry, problems)


def _has_lines(stored: StoredSession) -> bool:
    """Return whether a session should have transcripts."""
    return bool(stored.row.get("message_count")) and stored.row.get("state") != "tombstone"


def _history(files: UnitFiles) -> tuple[bytes | None, dict[str, bytes]]:
    named = {os.path.basename(path): body for path, body in files.bodies.items()}
    return named.pop(_SNAPSHOTS, None), named


def _pins(folder: Path, problems: list[Problem]) -> dict[str, tuple[bool, str | None]]:
    """Return by session what the program's own list says of it."""
    path = str(folder / _HUB)
    try:
        with open_regular(path) as file:
            data = mapping(parse_value(file.readall()))
    except FileNotFoundError:
        return {}
    except (OSError, LineError) as error:
        problems.append(Problem(path, 0, f"cannot be read: {error}"))
        return {}
    pinned = data.get("pinned")
    slots = {str(name): slot for slot, name in mapping(data.get("quick_slots")).items()}
    names = [str(name) for name in pinned] if isinstance(pinned, list) else []
    return {name: (name in names, slots.get(name)) for name in {*names, *slots}}


def _message_ids(path: str, session_id: str, connection: sqlite3.Connection) -> frozenset[str]:
    """Return the messages of a session's transcript, and of its rows, rewound ones too."""
    file = GrowingFile(path)
    try:
        file.read([])
        found = message_ids(file)
    except (OSError, StoreError):
        found = frozenset()
    if "session_id" in columns(connection, "chat_messages"):
        sql = "SELECT id FROM chat_messages WHERE session_id = ?"
        found |= {str(row[0]) for row in connection.execute(sql, (session_id,))}
    return found
