"""The tools for coding agents, on a store of a real PostgreSQL server."""

from __future__ import annotations

import asyncio

import pytest

from store.errors import StoreError
from tests.sources.postgres_server import Server
from tests.store.engines import server_store_that_says
from tui.mcp.library import Library


@pytest.fixture
def url(postgres: Server) -> str:
    return server_store_that_says(postgres, "a needle in it")


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
