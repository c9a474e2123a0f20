"""The browser on a store on a real PostgreSQL server: list, session, verb, undo and live."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from store.config import Settings
from store.engine.database import in_transaction, open_database
from store.engine.opening import open_target
from store.language.query import parse
from store.queries.listing import ListQuery
from store.verbs.marks import rename
from tests.sources.postgres_server import Server
from tests.store.engines import new_server_store
from tests.store.talks import Talk
from tests.tui.stores import settled
from tui.app import BackscrollApp
from tui.sessions.loader import ListLoader
from tui.state.library import Library


@pytest.fixture
def place(postgres: Server) -> Path:
    """Where the browser finds a store of two sessions on a server."""
    database = open_target(new_server_store(postgres), write=True)
    talk = Talk(database)
    for title in ("First", "Second"):
        session = talk.session(title)
        talk.message(session, text=f"words of {title}")
        talk.message(session, "assistant", text="an answer")
    database.close()
    return database.path


async def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


async def test_a_store_on_a_server_is_browsed(place: Path) -> None:
    app = BackscrollApp(Library.open(place, "team"), Settings(), poll_ms=20)
    async with app.run_test(size=(160, 40)) as pilot:
        pane = await settled(app, pilot)

        def shows(*titles: str) -> bool:
            listed = "\n".join(pane.view.render_line(y).text for y in range(pane.view.size.height))
            return all(title in listed for title in titles)

        await until(lambda: shows("First", "Second"))
        await pilot.press("a")
        other = open_database(place)

        def archived() -> int:
            return int(other.connection.execute(
                "SELECT count(*) FROM chat_sessions WHERE archived_at IS NOT NULL").fetchone()[0])

        await until(lambda: archived() == 1)
        await pilot.press("U")
        await until(lambda: archived() == 0)
        (session,) = other.connection.execute(
            "SELECT id FROM chat_sessions ORDER BY created_at LIMIT 1").fetchone()
        in_transaction(other, rename, session, "Named by another", now=1)
        await until(lambda: shows("Named by another"))
        other.close()


@pytest.mark.long
async def test_the_browser_keeps_its_connections(place: Path) -> None:
    """The list, its filter and the search open no others, however often they are used."""
    app = BackscrollApp(Library.open(place, "team"), Settings(), poll_ms=20)
    other = open_database(place)

    def backends() -> set[int]:
        return {row[0] for row in other.connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()").fetchall()}

    async with app.run_test(size=(160, 40)) as pilot:
        pane = await settled(app, pilot)
        held, files = [], []
        for _ in range(4):
            await pilot.press("1", "s", "/", *"Second", "enter")
            await until(lambda: not pane.filter.will_search and not pane.filter.is_looking)
            await settled(app, pilot)
            assert len(pane.view.model) == 1
            await pilot.press("escape", "S", *"words")
            await settled(app, pilot)
            await pilot.press("escape", "escape")
            await settled(app, pilot)
            assert app.screen is app.main
            held.append(backends())
            files.append(len(os.listdir("/dev/fd")))
        assert held[2:] == held[1:-1] and len(held[-1]) < 12
        assert files[-1] <= files[1]
    await until(lambda: not backends())
    other.close()


async def test_the_list_is_read_after_its_connections_were_ended(place: Path) -> None:
    """As by a server that was started again: the first reading of each has an answer, too."""
    loader, other = ListLoader(place, lambda: 1, keeps=True), open_database(place)

    async def said(words: str) -> int:
        found = [step async for step in loader.said(parse(words, now=1))]
        assert not any(why for _, why in found)
        return len(found[-1][0])

    for _ in range(2):
        assert len((await loader.keys(ListQuery())).rowids) == 2
        assert await said("in:prompt first") == 1
        ended = other.connection.execute(
            "SELECT count(pg_terminate_backend(pid, 30000)) FROM pg_stat_activity WHERE"
            " datname = current_database() AND pid <> pg_backend_pid()").fetchone()
        assert ended[0] >= 2
    assert len((await loader.keys(ListQuery())).rowids) == 2
    await loader.close()
    other.close()
