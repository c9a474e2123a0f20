"""What the sources have in common whose sessions may be rows on a PostgreSQL server.

Each session is a unit of its own. Its sign is made of how many rows it has and of which
transactions wrote them (``xmin``), so that a row that was written anew in place, whose times
and count stay, is seen like one that came or went. A database that was dumped and loaded
has other signs, and is read once more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from store.engine.server_url import Root, ServerTrouble, ServerUrl
from store.sources.base.protocol import Problem, Reading, Unit
from store.sources.base.row_reader import RowReader, TableReader

if TYPE_CHECKING:
    from store.sources.base.servers.connection import PostgresRows, Servers

ToUnits = Callable[[Root, list[Problem]], Iterator[Unit]]
"""Returns the units of rows that are fetched; takes the place, and what receives problems."""
ToReading = Callable[[str, Unit], Reading]
"""Returns the reading of rows that are fetched; takes the place for people, and the unit."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Following:
    """A session that is read again and again.

    Attributes:
        fetch: Fetches what was added since it was called last, where that can be told.
    """

    fetch: Callable[[PostgresRows], ToReading]


class ServerRows(ABC):
    """Fulfils ``store.sources.base.protocol.ServerSource``; reads only.

    Attributes:
        keys: By table the columns without which no session can be told; others that the login
            may not read are left out.
    """

    label: str
    keys: Mapping[str, tuple[str, ...]]

    def __init__(self) -> None:
        """Make a source that has no connection yet."""
        self._moments: dict[ServerUrl, str] = {}
        self._units: dict[ServerUrl, dict[str, Unit]] = {}
        self._followed = WeakValueDictionary[tuple[ServerUrl, str], Following]()

    @cached_property
    def _servers(self) -> Servers:
        """Connections; made when a server is read, as that brings the event loop."""
        from store.sources.base.servers.connection import Servers

        return Servers()

    @abstractmethod
    def knows(self, reader: TableReader) -> bool:
        """Tell by its tables whether a database is this program's."""

    @abstractmethod
    def fetch_units(self, reader: PostgresRows) -> ToUnits:
        """Fetch what tells the sessions and whether they moved; return what makes units of it.

        The key of a unit is the session's id.
        """

    @abstractmethod
    def fetch_session(self, reader: RowReader, session_id: str) -> ToReading:
        """Fetch one session whole, from whatever engine; return what makes a reading of it.

        Args:
            reader: The transaction.
            session_id: As in the database.
        """

    def following(self, session_id: str) -> Following:
        """Return what fetches a session again and again; here whole each time."""
        return Following(lambda reader: self.fetch_session(reader, session_id))

    def default_servers(self, environment: Mapping[str, str]) -> list[ServerUrl]:
        """Return nothing: the databases have to be named."""
        return []

    def units_on(self, url: ServerUrl, problems: list[Problem]) -> Iterator[Unit]:
        """List the sessions of a database; one that cannot be read goes to ``problems``."""
        try:
            yield from self._list_now(url, problems)
        except ServerTrouble as trouble:
            problems.append(Problem(str(url), 0, trouble.reason))

    def read_on(self, url: ServerUrl, unit: Unit) -> Reading:
        """Read one session whole; of one that is followed, only what was added is fetched.

        Raises:
            ServerTrouble: The server cannot be read now.
        """
        following = self._followed.get((url, unit.key)) or Following(
            lambda reader: self.fetch_session(reader, unit.key)
        )
        try:
            with self._servers.reading(url, anew=False) as reader:
                make = following.fetch(reader)
        except ServerTrouble:
            # It was listed but not read: let the next look find it moved.
            self._units.pop(url, None)
            raise
        return make(str(url), unit)

    def follow_on(self, url: ServerUrl, unit: Unit) -> object:
        """Follow a session as long as the returned object is kept.

        Args:
            url: The database.
            unit: The session.
        """
        return self._followed.setdefault((url, unit.key), self.following(unit.key))

    def identity_on(self, url: ServerUrl) -> str:
        """Return a text that is the same for all URLs of a database, and of no other database.

        Raises:
            ServerTrouble: The server cannot be read now.
        """
        return self._servers.identity(url, "sessions")

    def waits_for(self, url: ServerUrl) -> str | None:
        """Return what an answer of the server is waiting for; None where nothing is known."""
        return self._servers.waits_for(url)

    def moved_on(self, url: ServerUrl) -> list[Unit] | None:
        """Return the sessions that moved since they were listed last.

        Where no transaction has written since, that is all that is asked.

        Returns:
            None where sessions went away.

        Raises:
            ServerTrouble: The server cannot be read now.
        """
        before = self._units.get(url)
        if before is not None and self._servers.moment(url) == self._moments[url]:
            return []
        now = {unit.key: unit for unit in self._list_now(url, [])}
        if before is not None and before.keys() - now.keys():
            return None
        return [unit for key, unit in now.items() if (before or {}).get(key) != unit]

    def _list_now(self, url: ServerUrl, problems: list[Problem]) -> list[Unit]:
        moment = self._servers.moment(url)
        with self._servers.reading(url) as reader:
            if not self.knows(reader):
                raise ServerTrouble(url, f"is no database of {self.label}: its tables are others")
            self._require_keys(url, reader)
            make = self.fetch_units(reader)
        units = list(make(url, problems))
        self._moments[url] = moment
        self._units[url] = {unit.key: unit for unit in units}
        return units

    def _require_keys(self, url: ServerUrl, reader: PostgresRows) -> None:
        """Raise where a column of ``keys`` may not be read, though others of its table may."""
        for table, needed in self.keys.items():
            missing = [one for one in needed if one not in reader.readable(table)]
            if missing:
                raise ServerTrouble(
                    url, f"may not be read by this user: no SELECT on {', '.join(missing)} of the"
                    f" table {table}")
