"""opencode and Kilo: where their sessions are, and how one is read."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from store.errors import StoreError
from store.sources.base.drafts import SessionDraft
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import (
    FileStamp,
    Problem,
    Program,
    Reading,
    Unit,
)
from store.sources.opencode.database import read_session, read_session_row
from store.sources.opencode.export_file import read_export
from store.sources.opencode.folders import Folders
from store.sources.opencode.forks import find_origin, shared_facts, wanted_facts
from store.sources.opencode.json_store import list_json_sessions, read_json_session
from store.sources.opencode.kept_rows import KeptRows
from store.sources.opencode.listing import list_sessions
from store.sources.opencode.opening import Databases
from store.sources.opencode.places import (
    TOOL_OUTPUT,
    Stores,
    default_roots,
    recognise,
    stores_at,
)
from store.sources.opencode.programs import KILO, OPENCODE, OpencodeProgram
from store.sources.opencode.relatives import (
    call_in_database,
    call_in_json_store,
    candidates_in_database,
    candidates_in_json_store,
)
from store.sources.opencode.session import Making, session_draft
from store.sources.opencode.stored import StoredSession
from store.system.collection import paused_collection

_EXPORT, _JSON = "export", "json"
_DATABASE_FILES = ("", "-wal", "-shm", "-journal")


@dataclass(slots=True)
class Kept:
    """What was read of a session of a database, and what was made of it."""

    rows: KeptRows = field(default_factory=KeptRows)
    making: Making = field(default_factory=Making)


class OpencodeSource(LibrarySource):
    """Fulfils ``store.sources.base.protocol.Source`` and ``FollowedSource``; reads only.

    Looks into the library for what forks were made from and is gone.
    """

    writer: OpencodeProgram = OPENCODE
    """The program whose sessions these are."""
    kind = OPENCODE.kind
    label = "opencode"
    tells = ("thoughts", "tokens", "cost", "files", "rewinds", "forks", "subagents")
    version = 2
    program = Program(
        frozenset({"opencode", "opencode-cli"}), ("/opencode-ai/",), shares_file=True
    )
    variables = (OPENCODE.variable,)

    def __init__(self) -> None:
        """Make a source."""
        self._databases = Databases()
        self._listed: dict[str, dict[str, Unit]] = {}

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return the data folder, and the file that a variable names outside of it."""
        return default_roots(self.writer, environment, home)

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read when a file or folder is the program's."""
        return recognise(self.writer, path)

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions at a root; one that a database has is not read from JSON too."""
        try:
            stores = stores_at(self.writer, root)
        except OSError as error:
            problems.append(Problem(str(root), 0, error.strerror or str(error)))
            return
        if stores.export is not None:
            yield from self._exported(stores.export, problems)
        known: set[str] = set()
        for database in stores.databases:
            for unit in self._in_database(database, problems):
                known.add(unit.key.partition("/")[2])
                yield unit
        for folders in stores.json_stores:
            yield from list_json_sessions(folders, f"{_JSON}/", known, problems)

    def _exported(self, path: Path, problems: list[Problem]) -> Iterator[Unit]:
        try:
            status = path.stat()
        except OSError as error:
            problems.append(Problem(str(path), 0, error.strerror or str(error)))
            return
        stamp = FileStamp(str(path), status.st_ino, status.st_size, status.st_mtime_ns)
        yield Unit(f"{_EXPORT}/{path.name}", (stamp,), status.st_mtime_ns // 1_000_000)

    def _in_database(self, path: Path, problems: list[Problem]) -> list[Unit]:
        prefix = f"{path.name}/"
        try:
            with self._databases.reading(path) as connection:
                return list(list_sessions(connection, path, prefix, problems))
        except (StoreError, sqlite3.Error, OSError) as error:
            problems.append(Problem(str(path), 0, f"cannot be read: {error}"))
            return []

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one session whole.

        Raises:
            StoreError: Its database cannot be opened.
            sqlite3.Error: Its database is locked or damaged.
            OSError: Its file cannot be read.
            ValueError: Its file holds no session.
        """
        return self.read_with(unit, Kept())

    def outline(self, root: Path, unit: Unit) -> list[SessionDraft]:
        """Return a database's session without its messages; of other stores, nothing."""
        if unit.key.partition("/")[0] in (_EXPORT, _JSON):
            return []
        path, name = Path(unit.stamps[0].path), unit.key.partition("/")[2]
        with self._databases.reading(path) as connection:
            stored = read_session_row(connection, name, str(path))
        return [] if stored is None else [session_draft(stored, self.kind, None, None)]

    def read_with(self, unit: Unit, kept: Kept) -> Reading:
        """Read one session; rows that are as they were are not decoded and mapped again.

        Args:
            unit: The session.
            kept: Of the same session; brought up to this reading.

        Raises:
            StoreError: As ``read`` does, and its other errors.
        """
        store, _, name = unit.key.partition("/")
        path = Path(unit.stamps[0].path)
        if store == _EXPORT:
            stored = read_export(path)
            return _reading(stored, unit, session_draft(stored, self.kind, None, None))
        if store == _JSON:
            folders = Folders.of_session(path)
            stored = read_json_session(folders, path)
            origin = find_origin(
                stored, lambda at, own: candidates_in_json_store(folders, at, own), self._library
            )
            call = call_in_json_store(folders, stored)
            stored.side_folder = str(folders.storage.parent / TOOL_OUTPUT)
            return _reading(stored, unit, session_draft(stored, self.kind, origin, call))
        return self._read_from_database(path, name, unit, kept)

    def _read_from_database(
        self, path: Path, session_id: str, unit: Unit, kept: Kept
    ) -> Reading:
        with self._databases.reading(path) as connection:
            stored = read_session(connection, session_id, str(path), kept.rows)
            if stored is None:
                return Reading([], [], unit.stamps)
            origin = find_origin(
                stored, lambda at, own: candidates_in_database(connection, at, own), self._library
            )
            call = call_in_database(connection, stored)
        stored.side_folder = str(path.parent / TOOL_OUTPUT)
        return _reading(stored, unit, session_draft(stored, self.kind, origin, call, kept.making))

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return what to watch: the databases' own files, not the folder with its logs.

        A JSON store beside a database is one that the program left behind.
        """
        stores = stores_at(self.writer, root)
        if stores.export is not None:
            return [stores.export]
        if stores.databases:
            return [
                path.with_name(path.name + ending)
                for path in stores.databases
                for ending in ("", "-wal")
            ]
        return [path for folders in stores.json_stores for path in folders.watched()] or [root]

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of changed databases that moved since the last time.

        Returns:
            None where something else changed, which needs a listing.
        """
        stores = stores_at(self.writer, root)
        touched = _touched(stores, paths)
        if touched is None:
            return None
        found: list[Unit] = []
        for database in touched:
            before = self._listed.get(str(database), {})
            now = {unit.key: unit for unit in self._in_database(database, [])}
            self._listed[str(database)] = now
            found += [unit for key, unit in now.items() if before.get(key) != unit]
        return found

    def follower(self, root: Path, unit: Unit) -> SessionFollower:
        """Return a follower, which decodes and maps the rows of a database that changed."""
        return SessionFollower(self)


class KiloSource(OpencodeSource):
    """The same for Kilo, which is made from opencode; what differs is in ``KILO``."""

    writer = KILO
    kind = KILO.kind
    label = "Kilo"
    version = 1
    program = Program(frozenset({"kilo", "kilocode"}), ("/@kilocode/cli",), shares_file=True)
    variables = (KILO.variable,)


class SessionFollower:
    """Fulfils ``store.sources.base.protocol.Follower``."""

    def __init__(self, source: OpencodeSource) -> None:
        """Start with nothing read."""
        self._source = source
        self._kept = Kept()

    def read(self, unit: Unit) -> Reading:
        """Return what ``Source.read`` would."""
        with paused_collection():
            # What a reading that failed has kept may not belong together.
            kept, self._kept = self._kept, Kept()
            reading = self._source.read_with(unit, kept)
            self._kept = kept
            return reading


def _reading(stored: StoredSession, unit: Unit, draft: SessionDraft) -> Reading:
    return Reading(
        [draft], stored.problems, unit.stamps,
        facts=shared_facts(stored), wants=wanted_facts(stored),
    )


def _touched(stores: Stores, paths: Iterable[str]) -> list[Path] | None:
    """Return the databases whose files changed; None where other files did."""
    owners = {
        os.path.abspath(f"{path}{ending}"): path
        for path in stores.databases
        for ending in _DATABASE_FILES
    }
    found = [owners.get(os.path.abspath(path)) for path in paths]
    if None in found or stores.export is not None:
        return None
    return list(dict.fromkeys(path for path in found if path is not None))
