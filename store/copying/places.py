"""The places where sessions are read from, for whichever store is asked."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from store.copying.sharing import brought
from store.engine.database import Database, open_database
from store.sync.places import Place, places
from store.sync.problems import StoredProblem, problems
from store.system.locations import library_path


def places_of(
    database: Database | None, environment: Mapping[str, str], home: Path
) -> tuple[list[Place], list[StoredProblem]]:
    """Return all places, with how many sessions a store has from each, and what was not read.

    A team's store on a server has its sessions from the libraries of its users. The user's own
    library knows the places then, and those of its sessions count that were brought to the server.

    Args:
        database: The store; None if it does not exist yet.
        environment: The process's environment variables.
        home: The user's home folder.

    Raises:
        StoreError: The user's library cannot be opened.
    """
    if database is None:
        return places(None, environment, home), []
    if database.server is None:
        return places(database, environment, home), problems(database)
    path = library_path()
    if not path.exists():
        return places(None, environment, home), []
    with contextlib.closing(open_database(path)) as library:
        counting = brought(database, path)
        return places(library, environment, home, counting), problems(library)
