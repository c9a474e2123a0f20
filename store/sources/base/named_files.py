"""Databases that are kept wherever their program likes, with sessions that the program named.

Names such as ``1`` or ``user-42`` are unique only within their own file: the next file has them
again. The first file with a name has it as the session's id; others get an addition.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from store.sources.base.database_source import DatabaseSource
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import Fact, FileStamp, Reading, Unit

_NAMED = "named:"
"""Begins the name of the fact that a file has a session of a name, and under which id."""


class NamedFiles(DatabaseSource, LibrarySource):
    """A source whose files are named by their owner.

    What ``read_session`` returns has the session's name as its id.

    Looks into the library for sessions of other files with the same name.
    """

    patterns = ("*.db", "*.sqlite", "*.sqlite3")

    def __init__(self) -> None:
        """Make a source."""
        super().__init__()
        self._names: dict[str, tuple[tuple[FileStamp, ...], frozenset[str]]] = {}

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return nothing: each program has its file where it likes."""
        return []

    def read(self, root: Path, unit: Unit) -> Reading:
        """Read one session whole.

        Raises:
            StoreError: Its database cannot be opened.
            sqlite3.Error: Its database is locked or damaged.
        """
        reading = super().read(root, unit)
        path, name = unit.stamps[0].path, unit.key.partition("/")[2]
        for draft in reading.sessions:
            draft.source_id = self._id_of(root, path, name)
            reading.facts = [Fact(_NAMED + name, draft.source_id, path)]
            reading.wants = [_NAMED + name]
        return reading

    def _id_of(self, root: Path, path: str, name: str) -> str:
        """Return a session's id: its name, unless another file that is there has it already."""
        told = self._library.facts(_NAMED + name)
        own = [fact.session for fact in told if fact.value == path]
        if own and own[0] != name:
            return own[0]
        taken = [fact.value for fact in told
                 if fact.session == name and fact.value != path and os.path.exists(fact.value)]
        if not told:
            taken = [str(each) for each in self.databases_at(root)
                     if str(each) < path and name in self._names_in(each)]
        # Two files that were read at the same time both have the name: the first one keeps it.
        if not taken or (own and path < min(taken)):
            return name
        digest = hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        return f"{name}@{digest}"

    def _names_in(self, database: Path) -> frozenset[str]:
        stamps = tuple(FileStamp.now(f"{database}{ending}") for ending in ("", "-wal"))
        known = self._names.get(str(database))
        if known is None or known[0] != stamps:
            units = self._in_database(database, [])
            known = stamps, frozenset(unit.key.partition("/")[2] for unit in units)
            self._names[str(database)] = known
        return known[1]
