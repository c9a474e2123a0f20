"""A table of a store on a server that another program has locked: said, and gone on after it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from store.config import Settings
from store.engine.database import Database
from tests.sources.postgres_server import Server
from tests.store.engines import name_another, server_store_that_says
from tests.tui.stores import NOW, settled
from tests.tui.test_server_library import line, shown
from tui.app import BackscrollApp
from tui.main.bars import TopLine
from tui.sessions.first_page import read_first_page
from tui.state.library import Library
from tui.state.view_state import ViewState

WAITS = "waits for the table {}, which psql has locked"


@pytest.fixture
def url(postgres: Server) -> str:
    return server_store_that_says(postgres, "words")


async def as_member(postgres: Server, url: str) -> str:
    """Return the store's URL for a member of a team, as docs/teams.md makes one."""
    database = postgres.database_of(url)
    team, member = f"team_{database.name}", f"member_{database.name}"
    await asyncio.to_thread(
        database.execute,
        f"CREATE ROLE {team} NOLOGIN; CREATE ROLE {member} LOGIN IN ROLE {team};"
        f" ALTER ROLE {member} IN DATABASE {database.name} SET role = {team};"
        f" GRANT USAGE ON SCHEMA public, backscroll TO {team};"
        f" GRANT ALL ON ALL TABLES IN SCHEMA public, backscroll TO {team}")
    return url.replace("postgres@", f"{member}@", 1)


@asynccontextmanager
async def locked(url: str, table: str) -> AsyncIterator[None]:
    """Lock a table until the end of the block, as somebody does in psql."""
    other = await asyncpg.connect(url, server_settings={"application_name": "psql"})
    try:
        await other.execute(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
    finally:
        await other.close()


async def released(url: str) -> None:
    """End who has locked a table."""
    other = await asyncpg.connect(url)
    await other.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'psql'"
        " AND datname = current_database()")
    await other.close()


@pytest.mark.parametrize("table", ["chat_sessions", "backscroll.changes"])
async def test_a_browser_says_which_table_is_locked_and_goes_on(
    postgres: Server, url: str, table: str
) -> None:
    name = await as_member(postgres, url) if table == "chat_sessions" else url
    app = BackscrollApp(Library.open_server(name, "team"), Settings(), poll_ms=20)
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(app, pilot)
        await shown(app.main.watcher.shows_all)
        async with locked(url, table):
            reading = asyncio.ensure_future(app.library.read(_count))
            words = "server " + WAITS.format(table.rpartition(".")[2])
            await shown(lambda: f"{words}, shown as of " in line(app, TopLine))
        assert await reading == 1
        await shown(lambda: "has locked" not in line(app, TopLine))
        await asyncio.to_thread(name_another, url, NOW)
        await shown(lambda: "2 sessions" in line(app, TopLine))


async def test_a_browser_opens_while_a_table_is_locked(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.sessions.first_page.FIRST_PAGE_S", 0.1)
    async with locked(url, "chat_sessions"):
        library = await asyncio.to_thread(Library.open_server, url, "team")
        page = await asyncio.to_thread(read_first_page, library, ViewState())
        assert not page.rows
        app = BackscrollApp(library, Settings(), poll_ms=20)
        async with app.run_test(size=(160, 40)) as pilot:
            await shown(lambda: WAITS.format("chat_sessions") in line(app, TopLine))
            await released(url)
            await settled(app, pilot)
            await shown(lambda: "1 session" in line(app, TopLine))
            await shown(lambda: "has locked" not in line(app, TopLine))


def _count(database: Database) -> int:
    return int(database.connection.execute(
        "SELECT count(*) FROM chat_sessions").fetchone()[0])


@asynccontextmanager
async def waiting_command(url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command that reads a locked table, once it has said so."""
    command = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "backscroll", "sessions", "--store", url,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert command.stderr is not None
    said = (await command.stderr.readline()).decode()
    assert said.startswith("backscroll: postgresql://")
    assert said.endswith(WAITS.format("chat_sessions") + "\n")
    yield command


async def test_a_command_says_which_table_is_locked_and_goes_on(
    postgres: Server, url: str
) -> None:
    member = await as_member(postgres, url)
    async with locked(url, "chat_sessions"), waiting_command(member) as command:
        await released(url)
        out, rest = await command.communicate()
    assert (command.returncode, rest) == (0, b"") and b"Retry loop" in out


async def test_a_command_that_waited_in_vain_says_for_what(url: str) -> None:
    async with locked(url, "chat_sessions"), waiting_command(url) as command:
        other = await asyncpg.connect(url)
        await other.execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND application_name = 'backscroll' AND datname = current_database()")
        await other.close()
        out, rest = await command.communicate()
    assert (command.returncode, out) == (1, b"")
    assert rest.decode().endswith(
        f": it {WAITS.format('chat_sessions')}; wait until that is done, and try again\n")
