"""What the sources have in common whose sessions may be rows on a PostgreSQL server.

Each session is a unit of its own. Its sign is made of how many rows it has and of which
transactions wrote them (``xmin``), so that a row that was written anew in place, whose times
and count stay, is seen like one that came or went. A database that was dumped and loaded
has other signs, and is read once more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from store.engine.server_url import ServerTrouble, ServerUrl
from store.sources.base.protocol import Problem, Reading, Unit
from store.sources.base.row_reader import RowReader

if TYPE_CHECKING:
    from store.sources.base.servers.connection import Servers

XMIN = "CAST(CAST(xmin AS text) AS bigint)"
"""The transaction that wrote a row, as a number that can be summed."""


class ServerRows(ABC):
    """Fulfils ``store.sources.base.protocol.ServerSource``; reads only."""

    label: str

    def __init__(self) -> None:
        """Make a source that has no connection yet."""
        self._moments: dict[ServerUrl, str] = {}
        self._units: dict[ServerUrl, dict[str, Unit]] = {}

    @cached_property
    def _servers(self) -> Servers:
        """Connections; made when a server is read, as that brings the event loop."""
        from store.sources.base.servers.connection import Servers

        return Servers()

    @abstractmethod
    def knows(self, reader: RowReader) -> bool:
        """Tell by its tables whether a database is this program's."""

    @abstractmethod
    def list_rows(
        self, reader: RowReader, url: ServerUrl, problems: list[Problem]
    ) -> Iterator[Unit]:
        """Yield a unit for each session; its key is the session's id.

        Args:
            reader: Runs the statements.
            url: The database on a server.
            problems: Takes what is damaged.
        """

    @abstractmethod
    def read_rows(self, reader: RowReader, place: str, session_id: str, unit: Unit) -> Reading:
        """Read one session whole, from whatever engine.

        Args:
            reader: The transaction.
            place: The database's path or URL, for people.
            session_id: As in the database.
            unit: The session as it was listed.
        """

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
        """Read one session whole.

        Raises:
            ServerTrouble: The server cannot be read now.
        """
        try:
            with self._servers.reading(url) as reader:
                return self.read_rows(reader, str(url), unit.key, unit)
        except ServerTrouble:
            # It was listed but not read: let the next look find it moved.
            self._units.pop(url, None)
            raise

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
            units = list(self.list_rows(reader, url, problems))
        self._moments[url] = moment
        self._units[url] = {unit.key: unit for unit in units}
        return units
