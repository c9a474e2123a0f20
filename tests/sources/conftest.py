from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.sources.postgres_server import Database, Server


@pytest.fixture
def hub_server(postgres: Server) -> Database:
    """The hub's sample on a server."""
    return postgres.loaded("hub", "hub.db")


@pytest.fixture
def lionagi_server(postgres: Server) -> Database:
    """lionagi's sample on a server."""
    return postgres.loaded("lionagi", "state.db")

