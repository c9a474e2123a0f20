"""The lionagi source: its database, and how a session is listed and read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from store.engine.server_url import ServerUrl, server_url
from store.sources.base.database_source import DatabaseSource
from store.sources.base.databases import SqliteRows
from store.sources.base.protocol import Problem, Reading, Unit
from store.sources.base.row_reader import RowReader
from store.sources.base.servers.source import XMIN, ServerRows
from store.sources.lionagi.listing import Signs, list_units
from store.sources.lionagi.session import KIND, session_drafts
from store.sources.lionagi.stored import read_stored
from store.system.paths import expanded

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


class LionagiSource(DatabaseSource, ServerRows):
    """Fulfils ``Source``, ``FollowedSource`` and ``ServerSource``; reads only."""

    kind = KIND
    label = "lionagi"
    tells = ("tokens", "cost", "forks", "subagents")
    version = 2
    variables = (_URL,)
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
        url = server_url(environment.get(_URL, ""))
        return [] if url is None else [url]

    def is_mine(self, connection: sqlite3.Connection) -> bool:
        """Tell lionagi's database by its tables of progressions and branches."""
        return self.knows(SqliteRows(connection))

    def knows(self, reader: RowReader) -> bool:
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
        return list_units(SqliteRows(connection), path, f"{path.name}/", signs, problems)

    def list_rows(
        self, reader: RowReader, url: ServerUrl, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session of a database on a server.

        Args:
            reader: Runs the statements.
            url: The database on a server.
            problems: Takes what is damaged.
        """
        return list_units(reader, url, "", Signs(written=XMIN), problems)

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
        return self.read_rows(SqliteRows(connection), str(path), session_id, unit)

    def read_rows(self, reader: RowReader, place: str, session_id: str, unit: Unit) -> Reading:
        """Read one session with its branches; no session where it is not there.

        Args:
            reader: Runs the statements.
            place: The database: its path, or its address without a password.
            session_id: The session's id at the source.
            unit: The unit as it was listed.
        """
        stored = read_stored(reader, session_id, place)
        if stored is None:
            return Reading([], [], unit.stamps)
        drafts = session_drafts(stored)
        problems = list(dict.fromkeys(stored.problems))
        return Reading(drafts, problems, unit.stamps)
