"""The Cursor source: its editor's database, the chats of its command line, and transcripts.

Source: the Cursor format page, sections 1, 2 and 4 to 6. Login tokens are in the same database:
rows are selected by the keys of chats alone. An id that is in two stores is one chat, which the
richest tells: the editor's database, then the command line's, then the transcript.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from store.errors import StoreError
from store.sources.base.database_source import DatabaseSource
from store.sources.base.databases import columns, decoded, rows, stamp_of_rows
from store.sources.base.drafts import SessionDraft
from store.sources.base.file_source import first_record
from store.sources.base.growing import (
    LINES,
    BuiltUnit,
    Depends,
    UnitFiles,
    UnitFollower,
    entries_of,
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
from store.sources.base.values import mapping, ms_or_0
from store.sources.base.vscode import STATE, host_folders
from store.sources.cursor.cli import META, STORE, is_chat, read_cli_chat, stamps_of
from store.sources.cursor.ide import (
    BUBBLE,
    COMPOSER,
    HEADERS,
    LIST,
    Editor,
    above,
    has_chat,
    read_chat,
)
from store.sources.cursor.transcripts import (
    FOLDER,
    PROJECTS,
    TEXT,
    files_in,
    is_transcript,
    lines_draft,
    name_of,
    stamp_at,
    text_draft,
)
from store.sources.cursor.workspaces import KIND, PLACE, STORAGE, Workspaces, databases_in
from store.sources.cursor.workspaces import stamps_of as database_stamps
from store.system.paths import expanded

HOST = "Cursor"
CHATS, GLOBAL = "chats", "globalStorage"
_SIDE, _CLI, _TEXT = "side-chats/", "chats/", "transcripts/"
"""What the keys of units begin with, but those of the editor's chats."""
_USERS = (
    "", "User", f".config/{HOST}/User", f"Library/Application Support/{HOST}/User",
    f"AppData/Roaming/{HOST}/User",
)  # fmt: skip
"""Where the editor's folder may be below one that is opened by name."""
_ROOTS = ("", ".cursor")
_LARGE = 64 * 1024 * 1024
_RECENT, _LAST_BUBBLES = 8, 50
"""Of chats that were written last, the last rows are compared, as one may be updated in place."""
_BYTES_PER_BUBBLE = 2048
_FILES_LOOKED_AT = 20
_HEAD_COLUMNS = ("composerId", "lastUpdatedAt", "recency", "isArchived", "value")


class CursorSource(DatabaseSource, LibrarySource):
    """Fulfils ``Source``, ``FollowedSource`` and ``LibraryUser``; reads only.

    Looks into the library for what chats say of others.
    """

    kind = KIND
    label = "Cursor"
    tells = ("thoughts", "tokens", "files", "rewinds", "compactions", "subagents")
    program = Program(frozenset({"cursor-agent"}), ("/cursor-agent/",))
    variables = ("CURSOR_CONFIG_DIR", "XDG_CONFIG_HOME")
    places = "`~/.cursor`, and the `User` folder of the editor"
    patterns = (STATE,)

    def __init__(self) -> None:
        """Make a source."""
        super().__init__()
        self._workspaces = Workspaces()
        self._roots: list[Path] = []
        self._ids: dict[str, tuple[list[FileStamp], dict[str, bool]]] = {}
        self._written: dict[str, tuple[int, dict[str, int]]] = {}
        self._lists: dict[str, tuple[object, dict[str, dict[str, Any]]]] = {}

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the folder of the command line, and the editor's ``User`` folder."""
        named, config = (environment.get(name, "").strip() for name in self.variables)
        own = expanded(named) if named else home / ".cursor"
        if not named and config and sys.platform not in ("darwin", "win32"):
            own = expanded(config) / "cursor"
        users = [host for host in host_folders(environment, home) if host.parent.name == HOST]
        older = [home / ".cursor"] if (home / ".cursor").is_dir() else []
        self._roots = list(dict.fromkeys([own, *users, *older]))
        return self._roots

    # --- what a path is

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell the editor's database by the table that VS Code does not have."""
        return {"key", "value"} <= columns(connection, "cursorDiskKV")

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: a folder of the editor or the command line, or one chat."""
        if path.is_file():
            is_one = (
                self._is_text(path)
                if path.suffix in (LINES, TEXT)
                else (self._is_cli(path) if path.name == STORE else self._recognised(path))
            )
            return path if is_one else None
        for database in self.databases_at(path):
            if self._recognised(database):
                return path
        stores = [Path(folder) / STORE for folder in _cli_folders(str(path))][:_FILES_LOOKED_AT]
        if any(self._is_cli(store) for store in stores):
            return path
        texts = list(_transcripts(str(path)))[:_FILES_LOOKED_AT]
        return path if any(self._is_text(Path(text)) for text in texts) else None

    def _is_cli(self, path: Path) -> bool:
        try:
            with self._databases.reading(path) as connection:
                return is_chat(connection)
        except (StoreError, sqlite3.Error, OSError):
            return False

    def _is_text(self, path: Path) -> bool:
        if path.suffix == TEXT:
            return FOLDER in path.parts
        return is_transcript(first_record(path) or {})

    def databases_at(self, root: Path) -> list[Path]:
        """Return the editor's databases at a root."""
        if not root.is_dir():
            return [] if root.name == STORE or root.suffix in (LINES, TEXT) else [root]
        found = [user / GLOBAL / STATE for user in _users_at(root)]
        found += [root / STATE] if root.name == GLOBAL or (root / PLACE).is_file() else []
        return [path for path in found if os.path.isfile(path)]

    # --- units

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the chats of each store; each chat once, where most of it is."""
        yield from super().units(root, problems)
        for database in self._side_databases(root):
            yield from _side_unit(database)
        folders, texts = _cli_folders(str(root)), list(_transcripts(str(root)))
        names = [*map(os.path.basename, folders), *map(name_of, texts)]
        known = self._editor_ids(root, names)
        for folder in folders:
            if os.path.basename(folder) not in known:
                known.add(os.path.basename(folder))
                yield from _cli_unit(folder)
        known |= self._cli_ids()
        for path in texts:
            if name_of(path) not in known:
                known.add(name_of(path))
                yield from _text_unit(path)

    def _side_databases(self, root: Path) -> list[str]:
        if not root.is_dir():
            return [str(path) for path in self.databases_at(root)]
        found = [path for user in _users_at(root) for path in databases_in(str(user))]
        return found or [str(path) for path in self.databases_at(root)
                         if path.parent.name != GLOBAL]  # fmt: skip

    def _editor_ids(self, root: Path, names: Iterable[str]) -> set[str]:
        """Return which ids the editor has, or had, at a root and in the usual place.

        Args:
            root: The root.
            names: The ids.
        """
        places = dict.fromkeys(
            path for place in (root, *self._roots) for path in self.databases_at(place)
        )
        asked = set(names)
        return {name for path in places for name in self._ids_in(path, asked)} if asked else set()

    def _ids_in(self, path: Path, names: set[str]) -> set[str]:
        stamps, known = database_stamps(str(path)), self._ids.get(str(path))
        if known is not None and known[0] != stamps:
            known = None
        told = known[1] if known is not None else {}
        left = names - told.keys()
        if left:
            try:
                with self._databases.reading(path) as connection:
                    is_mine = self.is_mine(connection)
                    told |= {name: is_mine and has_chat(connection, name) for name in left}
            except (StoreError, sqlite3.Error, OSError):
                return {name for name in names if told.get(name)}
            self._ids[str(path)] = stamps, told
        return {name for name in names if told[name]}

    def _cli_ids(self) -> frozenset[str]:
        """Return the ids of chats that the command line has in the usual place."""
        return frozenset(os.path.basename(folder) for place in self._roots
                         for folder in _cli_folders(str(place)))  # fmt: skip

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each chat of the editor.

        A row that is written again has another number; where that is not sure, rows are measured.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """
        heads = self._listed_before(connection, path) | _heads(connection)
        is_small = path.stat().st_size <= _LARGE
        counted = _counted(connection) if is_small else {}
        newest = {} if is_small else self._newest(connection, path)
        listed = connection.execute(
            "SELECT key, rowid FROM cursorDiskKV WHERE key >= ? AND key < ? AND value IS NOT NULL",
            (COMPOSER, above(COMPOSER)),
        ).fetchall()
        rowids = {str(key).removeprefix(COMPOSER): rowid for key, rowid in listed}
        recent = sorted(rowids, key=lambda name: max(rowids[name], newest.get(name, 0)))
        measured, live = set(recent if is_small else recent[-_RECENT:]), set(recent[-_RECENT:])
        for name, rowid in sorted(rowids.items()):
            head, held = heads.get(name, {}), counted.get(name, (newest.get(name, 0), 0, 0))
            size = _measure(connection, name) if name in measured else 0
            at = max(ms_or_0(head.get("lastUpdatedAt")), ms_or_0(head.get("recency")))
            said = _checksum(connection, name) if name in live else 0
            sign = (rowid, held, size, said, sorted(head.items()))
            weight = _BYTES_PER_BUBBLE * (1 + (held[0] if is_small else 0))
            stamp = stamp_of_rows(path, sign, at=at, size=weight)
            yield Unit(f"{path.name}/{name}", (stamp,), at)

    def _newest(self, connection: sqlite3.Connection, path: Path) -> dict[str, int]:
        """Return the number of the row that was written last of each chat's bubbles.

        Only rows since the last time are looked at: one that is written again gets a new number.

        Args:
            connection: The database, open for reading.
            path: Its file.
        """
        (top,) = connection.execute("SELECT max(rowid) FROM cursorDiskKV").fetchone()
        last, found = self._written.get(str(path), (0, {}))
        if not last or (top or 0) < last:
            found = {name: held[1] for name, held in _counted(connection).items()}
        else:
            # Without the plus, all bubbles would be looked through by their keys.
            for key, rowid in connection.execute(
                "SELECT key, rowid FROM cursorDiskKV"
                " WHERE rowid > ? AND +key >= ? AND +key < ? ORDER BY rowid",
                (last, BUBBLE, above(BUBBLE)),
            ):
                found[str(key).removeprefix(BUBBLE).partition(":")[0]] = rowid
        self._written[str(path)] = top or 0, found
        return found

    def _listed_before(
        self, connection: sqlite3.Connection, path: Path
    ) -> dict[str, dict[str, Any]]:
        """Return what the list says of chats that was there before the table of chats.

        Args:
            connection: The database, open for reading.
            path: Its file.
        """
        if not columns(connection, "ItemTable"):
            return {}
        sign = connection.execute(
            "SELECT rowid, length(value) FROM ItemTable WHERE key = ?", (LIST,)
        ).fetchone()
        known = self._lists.get(str(path))
        if known is None or known[0] != sign:
            row = connection.execute(
                "SELECT value FROM ItemTable WHERE key = ?", (LIST,)
            ).fetchone()
            given = mapping(decoded(row[0] if row is not None else None)).get("allComposers")
            entries = {
                str(entry.get("composerId")): entry
                for entry in map(mapping, given if isinstance(given, list) else ())
            }
            known = self._lists[str(path)] = sign, entries
        return known[1]

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the chats that changed databases, files and folders belong to."""
        top, found = os.path.abspath(root), dict[str, Unit]()
        editors = {f"{os.path.abspath(path)}{end}": path for path in self.databases_at(root)
                   for end in ("", "-wal", "-shm", "-journal")}  # fmt: skip
        for path in paths:
            if path == top and os.path.isdir(path):
                return None
            database = editors.get(os.path.abspath(path))
            units = self.moved_in(database) if database is not None else (self._beside(root, path))
            found |= {unit.key: unit for unit in units}
        return list(found.values())

    def _beside(self, root: Path, path: str) -> Iterator[Unit]:
        """Yield the units of a changed file or folder that is not the editor's database."""
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        name = os.path.basename(path).removesuffix("-wal")
        if name in (STATE, PLACE) and os.path.basename(os.path.dirname(folder)) == STORAGE:
            yield from _side_unit(os.path.join(folder, STATE))
        elif name in (STORE, META) or CHATS in Path(folder).parts[-3:]:
            folders = _cli_folders(folder)
            known = self._editor_ids(root, map(os.path.basename, folders))
            for each in folders:
                if os.path.basename(each) not in known:
                    yield from _cli_unit(each)
        elif FOLDER in Path(path).parts:
            texts = [text for text in files_in(path[: path.index(FOLDER)] + FOLDER)
                     if text.startswith(path)]  # fmt: skip
            known = self._editor_ids(root, map(name_of, texts)) | self._cli_ids() | {
                os.path.basename(each) for each in _cli_folders(str(root))}  # fmt: skip
            for text in texts:
                if name_of(text) not in known:
                    yield from _text_unit(text)

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return the editor's databases, and the folders of chats and projects."""
        databases = [path.with_name(path.name + end) for path in self.databases_at(root)
                     for end in ("", "-wal")]  # fmt: skip
        if not root.is_dir():
            return databases or [root.parent]
        # One of the two may come later.
        pairs = [(root / each / CHATS, root / each / PROJECTS) for each in _ROOTS]
        there = [path for pair in pairs if any(one.is_dir() for one in pair) for path in pair]
        return [*databases, *there] or [root]

    # --- reading

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one chat whole, of whichever store.

        Raises:
            StoreError: Its database cannot be opened.
            sqlite3.Error: Its database is locked or damaged.
        """
        if unit.key.startswith(_TEXT):
            return self.follower(root, unit).read(unit)
        path, problems = Path(unit.stamps[0].path), list[Problem]()
        if unit.key.startswith(_SIDE):
            drafts = self._workspaces.side_chats(str(path), problems)
            return Reading(drafts, problems, unit.stamps)
        if unit.key.startswith(_CLI):
            with self._databases.reading(path) as connection:
                draft = read_cli_chat(connection, path, problems)
            return Reading([draft] if draft is not None else [], problems, unit.stamps)
        return super().read(root, unit)

    def read_session(
        self, connection: sqlite3.Connection, path: Path, session_id: str, unit: Unit
    ) -> Reading:
        """Read one chat of the editor whole; none where it is gone, a draft, or just begun.

        Args:
            connection: The database, open for reading.
            path: Its file.
            session_id: The chat's id.
            unit: The unit as it was listed.
        """
        user = str(path.parent.parent) if path.parent.name == GLOBAL else None
        depends = Depends()
        listed = self._listed_before(connection, path).get(session_id, {})
        editor = Editor(user, self._workspaces, self._library, depends, listed)
        draft, session = read_chat(connection, path, session_id, editor)
        return Reading(
            [draft] if draft is not None else [], session.problems, unit.stamps,
            looked=depends.looked, facts=depends.facts, wants=depends.wants,
        )  # fmt: skip

    def follower(self, root: Path, unit: Unit) -> Follower:
        """Return a follower that has read nothing yet."""
        if unit.key.startswith(_TEXT):
            return UnitFollower(lambda _unit: BuiltUnit(_build))
        return super().follower(root, unit)


def _build(unit: Unit, files: UnitFiles, problems: list[Problem]) -> list[SessionDraft]:
    at = unit.changed_at
    drafts = [lines_draft(path, file.lines, file.records, at)
              for path, file in files.lines.items() if file.lines]  # fmt: skip
    return drafts + [text_draft(path, body, at) for path, body in files.bodies.items()]


def _users_at(root: Path) -> list[Path]:
    """Return the editor's folders at or below a root."""
    return [root / below for below in _USERS if (root / below / GLOBAL).is_dir()]


def _cli_folders(top: str) -> list[str]:
    """Return the folders of the command line's chats at or below a root."""
    if os.path.basename(top) == STORE:
        return [os.path.dirname(top)] if os.path.isfile(top) else []
    if os.path.isfile(os.path.join(top, STORE)):
        return [top]
    if not os.path.isdir(top):
        return []
    inner = [os.path.join(top, each, CHATS) for each in _ROOTS]
    there = [folder for folder in inner if os.path.isdir(folder)]
    if there:
        return [each.path for folder in there for project in entries_of(folder)
                for each in _entries(project.path) if _has_store(each.path)]  # fmt: skip
    if os.path.basename(top) == CHATS:
        return [each.path for project in entries_of(top) for each in _entries(project.path)
                if _has_store(each.path)]  # fmt: skip
    if os.path.basename(os.path.dirname(top)) == CHATS:
        return [each.path for each in _entries(top) if _has_store(each.path)]
    return []


def _entries(folder: str) -> list[os.DirEntry[str]]:
    return entries_of(folder) if os.path.isdir(folder) else []


def _has_store(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, STORE))


def _transcripts(top: str) -> Iterator[str]:
    """Yield the transcripts at or below a root."""
    if top.endswith((LINES, TEXT)):
        yield top
        return
    if os.path.basename(top) == FOLDER:
        yield from files_in(top)
        return
    own = os.path.join(top, FOLDER)
    if os.path.isdir(own):
        yield from files_in(own)
    for each in _ROOTS:
        for project in _entries(os.path.join(top, each, PROJECTS)):
            inner = os.path.join(project.path, FOLDER)
            if os.path.isdir(inner):
                yield from files_in(inner)


def _side_unit(database: str) -> Iterator[Unit]:
    stamps = database_stamps(database)
    if stamps:
        folder = os.path.dirname(database)
        place = FileStamp.now(os.path.join(folder, PLACE))
        stamps += [place] if place.inode else []
        name = os.path.basename(folder)
        yield Unit(f"{_SIDE}{name}", tuple(stamps), stamps[0].mtime_ns // 1_000_000)


def _cli_unit(folder: str) -> Iterator[Unit]:
    stamps = stamps_of(folder)
    if stamps and os.path.basename(stamps[0].path) == STORE:
        project, name = os.path.split(folder)
        newest = max(stamp.mtime_ns for stamp in stamps)
        key = f"{_CLI}{os.path.basename(project)}/{name}"
        yield Unit(key, tuple(stamps), newest // 1_000_000)


def _text_unit(path: str) -> Iterator[Unit]:
    stamp = stamp_at(path)
    if stamp is not None:
        before, _, inner = path.partition(f"{os.sep}{FOLDER}{os.sep}")
        key = f"{_TEXT}{os.path.basename(before)}/{inner}"
        yield Unit(key, (stamp,), stamp.mtime_ns // 1_000_000)


def _heads(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Return what the table of chats says of each; it is not complete, and newer than others."""
    there = columns(connection, HEADERS)
    selected = [name for name in _HEAD_COLUMNS if name in there]
    if "composerId" not in selected:
        return {}
    found = rows(connection, f"SELECT {', '.join(selected)} FROM {HEADERS}")
    return {str(row["composerId"]): row for row in found}


def _counted(connection: sqlite3.Connection) -> dict[str, tuple[int, int, int]]:
    """Return how many bubbles each chat has, with numbers that tell whether one was written."""
    start = len(BUBBLE) + 1
    return {
        str(row[0]): (row[1], row[2], row[3]) for row in connection.execute(
            f"SELECT substr(key, {start}, instr(substr(key, {start}), ':') - 1) AS chat,"
            " count(*), max(rowid), total(rowid) FROM cursorDiskKV"
            " WHERE key >= ? AND key < ? GROUP BY chat", (BUBBLE, above(BUBBLE)))
    }  # fmt: skip


def _measure(connection: sqlite3.Connection, name: str) -> tuple[object, ...]:
    """Return how long the rows of a chat are."""
    prefix = f"{BUBBLE}{name}:"
    row = connection.execute("SELECT length(value) FROM cursorDiskKV WHERE key = ?",
                             (COMPOSER + name,)).fetchone()  # fmt: skip
    bubbles = connection.execute(
        "SELECT total(length(value)), count(value) FROM cursorDiskKV WHERE key >= ? AND key < ?",
        (prefix, above(prefix)),
    ).fetchone()
    return (row[0] if row is not None else None, *bubbles)


def _checksum(connection: sqlite3.Connection, name: str) -> int:
    """Return a checksum of a chat's row and of its last bubbles."""
    prefix = f"{BUBBLE}{name}:"
    rows = connection.execute(
        "SELECT value FROM cursorDiskKV WHERE key = ? UNION ALL SELECT value FROM (SELECT value"
        " FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY rowid DESC LIMIT ?)",
        (COMPOSER + name, prefix, above(prefix), _LAST_BUBBLES),
    )
    found = 0
    for (value,) in rows:
        body = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        found = zlib.crc32(body if isinstance(body, bytes) else b"", found)
    return found
