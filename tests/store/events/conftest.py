from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.engine.opening import open_target
from tests.store.engines import new_server_store


@pytest.fixture(params=["file", "server"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A library in a file, and one on a server."""
    if request.param == "file":
        database = open_database(tmp_path / "library.db", create=True)
    else:
        url = new_server_store(request.getfixturevalue("postgres"))
        database = open_target(url, write=True)
    with contextlib.closing(database):
        yield database
