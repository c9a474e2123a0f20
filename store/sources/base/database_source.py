"""What the sources have in common whose sessions are rows of a SQLite file.

Each session is a unit of its own with a cheap sign of whether it moved, so that a poll of a
database in which one session grows reads that one.
"""

from __future__ import annotations

import os
import sqlite3
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from store.errors import StoreError
from store.sources.base.databases import Databases
from store.sources.base.protocol import Follower, Problem, Reading, Source, Unit

_DATABASE_FILES = ("", "-wal", "-shm", "-journal")
_FILES_LOOKED_AT = 50


class DatabaseSource(Source):
    """Fulfils ``store.sources.base.protocol.Source`` and ``FollowedSource``; reads only."""

    patterns: tuple[str, ...]
    """Names of the databases in a folder."""

    def __init__(self) -> None:
        """Make a source."""
        self._databases = Databases()
        self._listed: dict[str, dict[str, Unit]] = {}

    @abstractmethod
    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return where this program's database is usually found."""

    @abstractmethod
    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell by its tables whether a database is this program's."""

    @abstractmethod
    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session; its key is ``<file name>/<session id>``.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """

    @abstractmethod
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

    def recognise(self, path: Path) -> Path | None:
        """Return the root to read: a database, or a folder that has some."""
        if path.is_file():
            return path if self._recognised(path) else None
        if not path.is_dir():
            return None
        found = self.databases_at(path)[:_FILES_LOOKED_AT]
        return path if any(self._recognised(database) for database in found) else None

    def databases_at(self, root: Path) -> list[Path]:
        """Return the files at a root that may be this program's databases."""
        if not root.is_dir():
            return [root]
        found = {path for pattern in self.patterns for path in root.glob(pattern)}
        return sorted(path for path in found if path.is_file())

    def _recognised(self, path: Path) -> bool:
        databases = Databases()
        try:
            with databases.reading(path) as connection:
                return self.is_mine(connection)
        except (StoreError, sqlite3.Error, OSError):
            return False
        finally:
            databases.close()

    def units(self, root: Path, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions of each database at a root."""
        try:
            found = self.databases_at(root)
        except OSError as error:
            problems.append(Problem(str(root), 0, error.strerror or str(error)))
            return
        for path in found:
            yield from self._in_database(path, problems)

    def _in_database(self, path: Path, problems: list[Problem]) -> list[Unit]:
        try:
            with self._databases.reading(path) as connection:
                if not self.is_mine(connection):
                    return []
                return list(self.list_sessions(connection, path, problems))
        except (StoreError, sqlite3.Error, OSError) as error:
            problems.append(Problem(str(path), 0, f"cannot be read: {error}"))
            return []

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one session whole.

        Raises:
            StoreError: Its database cannot be opened.
            sqlite3.Error: Its database is locked or damaged.
        """
        path = Path(unit.stamps[0].path)
        with self._databases.reading(path) as connection:
            return self.read_session(connection, path, unit.key.partition("/")[2], unit)

    def watch_paths(self, root: Path) -> Iterable[Path]:
        """Return what to watch: the databases' own files, not what is beside them."""
        found = self.databases_at(root)
        if not found:
            return [root]
        return [path.with_name(path.name + end) for path in found for end in ("", "-wal")]

    def units_at(self, root: Path, paths: Iterable[str]) -> list[Unit] | None:
        """List the sessions of changed databases that moved since the last time.

        Returns:
            None where something else changed, which needs a listing.
        """
        owners = {
            os.path.abspath(f"{path}{ending}"): path
            for path in self.databases_at(root)
            for ending in _DATABASE_FILES
        }
        touched = {owners.get(os.path.abspath(path)) for path in paths}
        found: list[Unit] = []
        for database in touched:
            if database is None:
                return None
            found += self.moved_in(database)
        return found

    def moved_in(self, database: Path) -> list[Unit]:
        """Return the sessions of a database that moved since this was asked last."""
        before = self._listed.get(str(database), {})
        now = {unit.key: unit for unit in self._in_database(database, [])}
        self._listed[str(database)] = now
        return [unit for key, unit in now.items() if before.get(key) != unit]

    def follower(self, root: Path, unit: Unit) -> Follower:
        """Return a follower; a database gives whole sessions at about the cost of less."""
        return SessionFollower(self, root)


class SessionFollower:
    """Fulfils ``store.sources.base.protocol.Follower``."""

    def __init__(self, source: DatabaseSource, root: Path) -> None:
        """Start with nothing read."""
        self._source, self._root = source, root

    def read(self, unit: Unit) -> Reading:
        """Return what ``Source.read`` would."""
        return self._source.read(self._root, unit)
