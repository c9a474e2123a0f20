"""The tools for coding agents, on a store of a real PostgreSQL server."""

from __future__ import annotations

import asyncio

import pytest

from store.engine.opening import open_target
from store.errors import StoreError
from tests.sources.postgres_server import Server
from tests.store.engines import new_server_store
from tests.store.talks import Talk
from tui.mcp.library import Library


@pytest.fixture
def url(postgres: Server) -> str:
    found = new_server_store(postgres)
    database = open_target(found, write=True)
    talk = Talk(database)
    talk.message(talk.session("Retry loop"), text="a needle in it")
    database.close()
    return found


async def test_a_server_is_searched_and_searched_again_after_a_restart(
    postgres: Server, url: str
) -> None:
    library = Library(url)

    async def found() -> int:
        return len((await library.search("needle", limit=5, cursor=None)).hits)

    assert await found() == 1
    await asyncio.to_thread(postgres.stop)
    with pytest.raises(StoreError, match="postgres"):
        await found()
    await asyncio.to_thread(postgres.start)
    assert await found() == 1
    await library.close()
