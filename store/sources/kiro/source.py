"""The Kiro source: where its four stores are, and how they are listed and read.

Source: the Kiro format page, section "Where". In the databases, which hold keys too, only the
tables of conversations are ever selected from; of the files only those of sessions are opened.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from store.errors import StoreError
from store.sources.base.database_source import DatabaseSource
from store.sources.base.databases import columns, rows, stamp_of_rows
from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import first_record
from store.sources.base.growing import (
    LINES,
    BuiltUnit,
    Depends,
    UnitFiles,
    UnitFollower,
    entries_of,
    is_folder,
    stamp_of,
)
from store.sources.base.json_values import LineError, parse_json
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import (
    Fact,
    FileStamp,
    Follower,
    Library,
    Problem,
    Program,
    Reading,
    Unit,
)
from store.sources.base.row_reader import Row
from store.sources.base.side_file import SideFile
from store.sources.base.values import LATEST_MS, ms_or_0, number, string
from store.sources.kiro.first_engine import row_draft
from store.sources.kiro.relatives import CLI, MESSAGES
from store.sources.kiro.second_engine import is_line, lines_draft
from store.sources.kiro.talk import KIND
from store.sources.kiro.third_engine import BELOW, STATE, Files, folder_draft
from store.system.paths import expanded

DATABASE = "data.sqlite3"
_FOLDERS = ("kiro-cli", "amazon-q")
_FIRST, _LATER = "conversations", "conversations_v2"
_JSON = ".json"
_ENDED = re.compile(rb'"stream_end_timestamp_ms": ?([12]\d{12})\b')
_TOLD = "kiro-row:"
"""Begins the fact that a database has a conversation, which the other one may have too."""
_IN_HOME = (".kiro/sessions", "sessions", "")
_LOOKED_AT = 200


class KiroSource(DatabaseSource, LibrarySource):
    """Fulfils ``Source`` and ``FollowedSource``; reads only.

    Looks into the library for parents whose files are gone.
    """

    kind = KIND
    label = "Kiro"
    tells = ("thoughts", "tokens", "files", "rewinds", "compactions", "forks", "subagents")
    program = Program(frozenset({"kiro-cli", "kiro-cli-chat", "qchat"}))
    variables = ("KIRO_HOME", "XDG_DATA_HOME")
    patterns = (DATABASE,)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the folders of sessions, and those of the databases of both names."""
        moved, data = (environment.get(name, "").strip() for name in self.variables)
        homes = [*([expanded(moved)] if moved else []), home / ".kiro"]
        if sys.platform == "darwin":
            places = [home / "Library" / "Application Support"]
        elif sys.platform == "win32":
            given = (environment.get(name, "").strip() for name in ("APPDATA", "LOCALAPPDATA"))
            places = [expanded(one) for one in given if one]
        else:
            places = [expanded(data) if data else home / ".local" / "share"]
        return list(dict.fromkeys([
            *(each / "sessions" for each in homes),
            *(place / name for place in places for name in _FOLDERS)]))

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: a database, a folder of sessions, or one session."""
        if path.name.endswith(LINES) and path.is_file():
            return path if _is_session(str(path)) else None
        if path.is_file():
            return super().recognise(path)
        if super().recognise(path) is not None:
            return path
        for below in _IN_HOME:
            found = islice(_sessions_at(str(path / below), []), _LOOKED_AT)
            if any(_is_session(each) for each in found):
                return path / below
        return None

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell the databases by their tables of conversations."""
        first, later = columns(connection, _FIRST), columns(connection, _LATER)
        return first == {"key", "value"} or later >= {"key", "conversation_id", "value"}

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the conversations of a database, or the sessions below a folder."""
        if _is_database(root):
            yield from super().units(root, problems)
            return
        if root.name in _FOLDERS:
            # No database yet: what else is there are not sessions.
            return
        for path in _sessions_at(os.path.abspath(root), problems):
            yield from _unit_of(path, problems)

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each conversation: of the later table by id, of the first by folder.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """
        if columns(connection, _LATER):
            found: dict[str, list[Row]] = {}
            for row in rows(connection, "SELECT key, conversation_id, created_at, updated_at,"
                            f" length(value) AS size FROM {_LATER} ORDER BY key"):  # fmt: skip
                found.setdefault(str(row["conversation_id"]), []).append(row)
            for name, same in found.items():
                at = max(ms_or_0(row["updated_at"]) for row in same)
                sign = [sorted(row.items()) for row in same]
                size = sum(number(row["size"]) for row in same)
                stamp = stamp_of_rows(path, sign, at=at, size=size)
                yield Unit(f"{path.name}/{_LATER}/{name}", (stamp,), at)
        if columns(connection, _FIRST):
            for key, value in connection.execute(f"SELECT key, value FROM {_FIRST} ORDER BY key"):
                body = _bytes(value)
                held = (key, len(body), zlib.crc32(body))
                at = max(map(int, _ENDED.findall(body)), default=0)
                stamp = stamp_of_rows(path, held, at=at, size=len(body))
                yield Unit(f"{path.name}/{_FIRST}/{key}", (stamp,), at)

    def read_session(
        self, connection: sqlite3.Connection, path: Path, session_id: str, unit: Unit
    ) -> Reading:
        """Read one conversation whole; none where another row has more of it.

        Args:
            connection: The database, open for reading.
            path: Its file.
            session_id: Its table, and its id or folder.
            unit: The unit as it was listed.
        """
        asked, _, name = session_id.partition("/")
        table = _LATER if asked == _LATER else _FIRST
        problems: list[Problem] = []
        column = "conversation_id" if table == _LATER else "key"
        found = rows(connection, f"SELECT * FROM {table} WHERE {column} = ? ORDER BY key", (name,))
        found.sort(key=lambda row: ms_or_0(row.get("updated_at")), reverse=True)
        for row in found:
            value = _conversation(row, str(path), problems)
            if value is None:
                continue
            draft = row_draft(str(path), row, value, _written_ms(path))
            if draft is None:
                break
            if table == _FIRST and _is_elsewhere(connection, draft, name):
                break
            return self._reading(draft, problems, unit)
        return Reading([], problems, unit.stamps)

    def _reading(self, draft: SessionDraft, problems: list[Problem], unit: Unit) -> Reading:
        """Return a conversation, unless another database has a later state of it."""
        fact = _TOLD + draft.source_id
        mine = [draft.updated_at, len(draft.records), draft.path]
        told = [json.loads(each.value) for each in self._library.facts(fact)]
        # Of equal states one path is chosen; a database that moved is no other one.
        is_older = any(
            each[2] != draft.path
            and (each[:2] > mine[:2] or (each > mine and os.path.lexists(each[2])))
            for each in told
        )
        value = json.dumps(mine)
        return Reading([] if is_older else [draft], problems, unit.stamps, wants=(fact,),
                       facts=(Fact(fact, draft.source_id, value),))  # fmt: skip

    def newest_in(self, path: Path, folder: str) -> str | None:
        """Return the conversation that the program goes on with in a folder.

        None where there is none, or the database cannot be read now.
        """
        try:
            with self._databases.reading(path) as connection:
                if columns(connection, _LATER):
                    found = connection.execute(
                        f"SELECT conversation_id FROM {_LATER} WHERE key = ?"
                        f" ORDER BY updated_at * (updated_at < {LATEST_MS}) DESC LIMIT 1",
                        (folder,)).fetchone()  # fmt: skip
                    if found is not None:
                        return str(found[0])
                first = rows(connection, f"SELECT * FROM {_FIRST} WHERE key = ?", (folder,))
        except (StoreError, sqlite3.Error, OSError):
            return None
        value = _conversation(first[0], str(path), []) if first else None
        return string(value.get("conversation_id")) if value is not None else None

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one conversation or session whole.

        Raises:
            StoreError: The database cannot be opened.
            sqlite3.Error: The database is locked or damaged.
        """
        if _is_of_files(unit):
            return self.follower(root, unit).read(unit)
        return super().read(root, unit)

    def follower(self, root: Path, unit: Unit) -> Follower:
        """Return a follower that has read nothing yet."""
        if not _is_of_files(unit):
            return super().follower(root, unit)
        return UnitFollower(lambda _: self._reader())

    def _reader(self) -> BuiltUnit:
        depends = Depends()
        return BuiltUnit(partial(_build, self._library, depends), depends=depends)

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions that moved; None where a folder of several changed."""
        if _is_database(root):
            return super().units_at(root, paths)
        found: dict[str, Unit] = {}
        for path in paths:
            owner = _owner(path)
            if owner is None and os.path.isdir(path):
                return None
            if owner is not None:
                found |= {unit.key: unit for unit in _unit_of(owner, [])}
        return list(found.values())

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return what to watch: a database's own files, or the folder of sessions."""
        if _is_database(root):
            return super().watch_paths(root)
        return [root.parent if root.is_file() else root]


def _is_database(root: Path) -> bool:
    return (root.is_file() and not root.name.endswith(LINES)) or (root / DATABASE).is_file()


def _is_of_files(unit: Unit) -> bool:
    return unit.stamps[0].path.endswith(LINES)


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def _conversation(row: Row, path: str, problems: list[Problem]) -> dict[str, Any] | None:
    """Return what a row holds; None, with a problem, for one that is empty or torn."""
    try:
        value, repaired = parse_json(_bytes(row.get("value") or ""))
    except LineError as error:
        problems.append(Problem(path, 0, f"conversation of {row.get('key')}: {error}"))
        return None
    if not isinstance(value, dict):
        problems.append(Problem(path, 0, f"conversation of {row.get('key')}: no JSON object"))
        return None
    problems += [Problem(path, 0, f"{row.get('key')}: {repaired}")] if repaired else []
    return value


def _is_elsewhere(connection: sqlite3.Connection, draft: SessionDraft, key: str) -> bool:
    """Return whether another row has a conversation of the first table too, and more of it."""
    name = draft.source_id
    if columns(connection, _LATER) and connection.execute(
        f"SELECT 1 FROM {_LATER} WHERE conversation_id = ?", (name,)
    ).fetchone():
        return True
    others = rows(connection, f"SELECT key, value FROM {_FIRST} WHERE key != ?"
                  " AND instr(value, ?) > 0", (key, name))  # fmt: skip
    mine = (draft.updated_at, len(draft.records), key)
    for row in others:
        value = _conversation(row, draft.path, [])
        if value is None or value.get("conversation_id") != name:
            continue
        theirs = row_draft(draft.path, row, value, _written_ms(Path(draft.path)))
        if theirs is not None and (
            theirs.updated_at, len(theirs.records), str(row["key"])) > mine:
            return True
    return False


def _written_ms(path: Path) -> int:
    return FileStamp.now(str(path)).mtime_ns // 1_000_000


def _sessions_at(root: str, problems: list[Problem]) -> Iterator[str]:
    """Yield the files of messages: a root itself, in it, or in the folders of its buckets."""
    if root.endswith(LINES):
        yield root
        return
    own = os.path.join(root, MESSAGES)
    if os.path.isfile(own):
        yield own
        return
    for entry in entries_of(root, problems):
        if entry.name.endswith(LINES):
            yield entry.path
        elif entry.name == CLI and is_folder(entry):
            yield from (each.path for each in entries_of(entry.path, problems)
                        if each.name.endswith(LINES))  # fmt: skip
        elif is_folder(entry):
            inner = os.path.join(entry.path, MESSAGES)
            if os.path.isfile(inner):
                yield inner
            else:
                yield from _of_bucket(entry.path, problems)


def _of_bucket(folder: str, problems: list[Problem]) -> Iterator[str]:
    for entry in entries_of(folder, problems):
        path = os.path.join(entry.path, MESSAGES)
        if is_folder(entry) and os.path.isfile(path):
            yield path


def _is_session(path: str) -> bool:
    """Return whether a file begins as a session's, or belongs to one that has only begun."""
    data = first_record(Path(path))
    if os.path.basename(path) == MESSAGES:
        if data is None:
            return os.path.isfile(os.path.join(os.path.dirname(path), STATE))
        return isinstance(data.get("payload"), dict) and "timestamp" in data
    return data is not None and is_line(data)


def _owner(path: str) -> str | None:
    """Return the file of messages that a changed file belongs to; None where there is none."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    for each in (folder, os.path.dirname(folder)):
        own = os.path.join(each, MESSAGES)
        if os.path.isfile(own):
            return own
    lines = path.removesuffix(_JSON) + LINES if path.endswith(_JSON) else path
    return lines if lines.endswith(LINES) and os.path.isfile(lines) else None


def _unit_of(path: str, problems: list[Problem]) -> Iterator[Unit]:
    """Yield the unit of a file of messages, with what stands beside it."""
    folder, name = os.path.split(path)
    if name == MESSAGES:
        above, own = os.path.split(folder)
        key = f"{os.path.basename(above)}/{own}"
        below = [entry.path for entry in entries_of(os.path.join(folder, BELOW))
                 if entry.name.endswith(LINES)]  # fmt: skip
        beside = [os.path.join(folder, STATE), *below]
    else:
        key = f"{os.path.basename(folder)}/{name.removesuffix(LINES)}"
        beside = [path.removesuffix(LINES) + _JSON]
    stamps: list[FileStamp] = []
    for each in (path, *beside):
        try:
            stamps.append(stamp_of(each, os.stat(each)))
        except OSError as error:
            if each == path:
                problems.append(Problem(path, 0, error.strerror or str(error)))
                return
    newest = max(stamp.mtime_ns for stamp in stamps)
    yield Unit(key, tuple(stamps), newest // 1_000_000)


def _build(
    library: Library, depends: Depends, unit: Unit, files: UnitFiles, problems: list[Problem]
) -> list[SessionDraft]:
    path = unit.stamps[0].path
    file = files.lines.get(path)
    if file is None:
        return []
    if os.path.basename(path) != MESSAGES:
        beside = path.removesuffix(LINES) + _JSON
        state = SideFile.read(beside, files.bodies.get(beside), problems)
        if file.lines and not any("kind" in line.data for line in file.lines):
            problems.append(Problem(path, 0, "no line is one of a session"))
            return []
        draft = lines_draft(path, file.lines, file.records, state, library, depends)
        return [draft] if draft is not None else []
    beside = os.path.join(os.path.dirname(path), STATE)
    state = SideFile.read(beside, files.bodies.get(beside), problems)
    if file.lines and not any("payload" in line.data for line in file.lines):
        problems.append(Problem(path, 0, "no line is one of a session"))
        return []
    below = {os.path.basename(each).removesuffix(LINES): other
             for each, other in files.lines.items() if each != path}  # fmt: skip
    draft = folder_draft(path, Files(file.lines, file.records, state, below), library, depends)
    return [draft] if draft is not None else []
