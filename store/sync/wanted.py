"""Sessions that are to be read before the others, because somebody has opened them."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable

from store.engine.database import Database
from store.sync import units
from store.sync.units import Job

_LONGEST = 200
"""Characters of an id; what is longer is none."""


class Wanted:
    """Session ids, a line each, as another thread receives them."""

    def __init__(self) -> None:
        """Start without any."""
        self._ids: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._rest = b""

    def heard(self, chunk: bytes) -> None:
        """Take bytes; an unfinished last line waits for its rest."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest if len(rest) <= _LONGEST else b""
        for line in lines:
            if 0 < len(line) <= _LONGEST:
                self._ids.put(line.decode("utf-8", "replace"))

    def take(self) -> str | None:
        """Return the next id; None where nothing is wanted."""
        try:
            return self._ids.get_nowait()
        except queue.Empty:
            return None


def nothing_wanted() -> str | None:
    """Return no id."""
    return None


def take_wanted(
    database: Database, wanted: Callable[[], str | None], left: Callable[[], Iterable[Job]]
) -> list[Job]:
    """Return the jobs of sessions that somebody waits for.

    Args:
        database: The library, which tells the units of sessions that are listed.
        wanted: Returns a session's id, or None; see ``Wanted.take``.
        left: Returns the units that are not read yet; called where something is wanted.
    """
    found: list[Job] = []
    while (session_id := wanted()) is not None:
        place = database.connection.execute(
            "SELECT kind, root, key FROM outlines WHERE session_id = ?", (session_id,)
        ).fetchone()
        if place is not None:
            found += [job for job in left() if units.where(job) == place and job not in found]
    return found
