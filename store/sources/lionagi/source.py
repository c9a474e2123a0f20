"""The lionagi source: its database, and how a session is listed and read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote

from store.engine.server_url import SCHEMES, ServerUrl, server_url
from store.sources.base.database_source import DatabaseSource
from store.sources.base.databases import SqliteRows
from store.sources.base.library_source import LibrarySource
from store.sources.base.protocol import Problem, Reading, Unit
from store.sources.base.row_reader import RowReader, TableReader
from store.sources.base.servers.source import Following, ServerRows, ToReading, ToUnits
from store.sources.lionagi.listing import Signs, fetch_units
from store.sources.lionagi.session import KIND, session_drafts
from store.sources.lionagi.stored import Kept, ToStored, add_gone, fetch_rows
from store.system.paths import expanded

if TYPE_CHECKING:
    from store.sources.base.servers.connection import PostgresRows

_COLUMNS = {
    "sessions": frozenset({"id", "progression_id", "updated_at"}),
    "branches": frozenset({"id", "session_id", "progression_id"}),
    "progressions": frozenset({"id", "collection"}),
    "messages": frozenset({"id", "content", "lion_class", "role"}),
    "message_types": frozenset({"type_id", "lion_class"}),
}
_URL = "LIONAGI_STATE_DB_URL"
_LARGE = 32 << 20
"""In a file of more bytes only the last messages of sessions that have ended are looked at
for having been written anew."""


class LionagiSource(DatabaseSource, ServerRows, LibrarySource):
    """Fulfils ``Source``, ``FollowedSource`` and ``ServerSource``; reads only.

    Looks into the library for messages whose rows are gone.
    """

    kind = KIND
    label = "lionagi"
    tells = ("tokens", "cost", "forks", "subagents")
    version = 3
    variables = (_URL,)
    keys = MappingProxyType({
        "sessions": ("id", "progression_id"), "branches": ("id", "session_id", "progression_id"),
        "progressions": ("id", "collection"), "messages": ("id",),
    })
    patterns = ("state.db",)

    def __init__(self) -> None:
        """Make a source."""
        DatabaseSource.__init__(self)
        ServerRows.__init__(self)

    def default_roots(self, environment: Mapping[str, str], home: Path) -> list[Path]:
        """Return ``~/.lionagi/state.db``, and the file that ``LIONAGI_STATE_DB_URL`` names."""
        roots = [home / ".lionagi" / "state.db"]
        named = environment.get(_URL, "").strip()
        scheme, slashes, rest = named.partition(":///")
        if slashes and scheme.partition("+")[0] == "sqlite":
            rest = unquote(rest.partition("?")[0])
            roots.insert(0, expanded(rest))
        return list(dict.fromkeys(roots))

    def default_servers(self, environment: Mapping[str, str]) -> list[ServerUrl]:
        """Return the database on a server that ``LIONAGI_STATE_DB_URL`` names."""
        named = environment.get(_URL, "").strip()
        if named.partition(":")[0].partition("+")[0].lower() not in SCHEMES:
            return []
        url = server_url(named)
        return [] if url is None else [url]

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell lionagi's database by its tables of progressions and branches."""
        return self.knows(SqliteRows(connection))

    def knows(self, reader: TableReader) -> bool:
        """Tell lionagi's database by its tables of progressions and branches."""
        return all(reader.columns(name) >= needed for name, needed in _COLUMNS.items())

    def list_sessions(
        self, connection: sqlite3.Connection, path: Path, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session of a file.

        Args:
            connection: The database, open for reading.
            path: Its file.
            problems: Takes what is damaged.
        """
        signs = Signs(all_messages=path.stat().st_size <= _LARGE)
        return fetch_units(SqliteRows(connection), f"{path.name}/", signs)(path, problems)

    def fetch_units(self, reader: PostgresRows) -> ToUnits:
        """Fetch what tells the sessions of a database on a server, and whether they moved."""
        return fetch_units(reader, "", Signs(written=reader.written))

    def read_session(
        self, connection: sqlite3.Connection, path: Path, session_id: str, unit: Unit
    ) -> Reading:
        """Read one session with its branches; no session where it is not there.

        Args:
            connection: The database, open for reading.
            path: Its file.
            session_id: The session's id at the source.
            unit: The unit as it was listed.
        """
        return self.fetch_session(SqliteRows(connection), session_id)(str(path), unit)

    def fetch_session(self, reader: RowReader, session_id: str) -> ToReading:
        """Fetch one session with its branches; return what makes a reading of it.

        The reading has no session where it is not there any more.

        Args:
            reader: Runs the statements.
            session_id: The session's id at the source.
        """
        return self._to_reading(fetch_rows(reader, session_id, Kept()))

    def following(self, session_id: str) -> Following:
        """Return what fetches a session again and again, without the messages it has."""
        kept = Kept()

        def fetch(reader: PostgresRows) -> ToReading:
            now, since = reader.moment() if reader.has_versions("messages") else None, kept.since
            same = now is not None and since is not None and since.connected == now.connected
            newer = reader.written_since(2) if same else None
            return self._to_reading(fetch_rows(reader, session_id, kept, now, newer))

        return Following(fetch)

    def _to_reading(self, fetched: ToStored) -> ToReading:
        def reading(place: str, unit: Unit) -> Reading:
            stored = fetched(place)
            if stored is None:
                return Reading([], [], unit.stamps)
            add_gone(stored, self._library)
            drafts = session_drafts(stored)
            return Reading(drafts, list(dict.fromkeys(stored.problems)), unit.stamps)

        return reading
