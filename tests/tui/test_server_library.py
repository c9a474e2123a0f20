"""The browser on a store of a server: roles, and a server that is gone for a while."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from textual.app import App

from store.config import Settings
from store.engine import schema
from store.engine.opening import open_target
from store.engine.server import watching
from store.errors import Refused
from store.queries.sessions import SessionFilter, page
from tests.sources.postgres_server import Server
from tests.store.engines import name_another, new_server_store
from tests.store.talks import Talk
from tests.tui.stores import NOW, settled
from tui.app import BackscrollApp
from tui.host import Terminal
from tui.keys.footer import BottomLine
from tui.live.polling import Health
from tui.live.summary import Summary
from tui.main.bars import TopLine
from tui.main.screen import MainScreen
from tui.stacked import TroubleBar
from tui.state.library import Library
from tui.stats.screen import StatsScreen
from tui.transcript.heights import Heights
from tui.transcript.item import Setting
from tui.transcript.reader import SessionReader
from tui.transcript.skeleton import Skeleton
from tui.verbs.doing import refuse


@pytest.fixture
def url(postgres: Server) -> str:
    found = new_server_store(postgres)
    database = open_target(found, write=True)
    Talk(database).session("Retry loop")
    database.close()
    return found


def line(app: BackscrollApp, kind: type[TopLine] | type[BottomLine]) -> str:
    return app.main.query_one(kind).render_line(0).text


async def shown(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_role_that_may_only_read_is_told_so(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOKED_AFTER_S", 0.05)
    database = postgres.database_of(url)
    role = f"looker_{database.name}"
    await asyncio.to_thread(
        database.execute,
        f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA backscroll TO {role};"
        f" GRANT SELECT ON ALL TABLES IN SCHEMA public, backscroll TO {role}")
    library = Library.open_server(
        url.replace("postgres@", f"{role}@", 1), "team", clock=lambda: NOW)
    app = BackscrollApp(library, Settings(), poll_ms=50)
    async with app.run_test(size=(140, 40)) as pilot:
        await settled(app, pilot)
        assert "team  read only  1 session" in line(app, TopLine)
        assert line(app, BottomLine).startswith(" read only  ")
        assert "archive" not in line(app, BottomLine)
        assert "may only read" in str(app.library.no_change)
        # That the server answers for the first time is no change.
        await shown(lambda: app.main.watcher.poller.version() > 0)
        await shown(app.main.watcher.shows_all)
        assert app.main.counter.moved_at == 0
        # Rights that come and go, and settings of its next connections.
        tables = "ALL TABLES IN SCHEMA public, backscroll"
        setting = f"ALTER ROLE {role} SET default_transaction_read_only"
        for sql, reason in (
            (f"GRANT INSERT, UPDATE, DELETE ON {tables} TO {role}", None),
            (f"REVOKE INSERT ON backscroll.changes FROM {role}", "no INSERT on changes"),
            (f"GRANT INSERT ON backscroll.changes TO {role}", None),
            (f"REVOKE UPDATE ON chat_messages FROM {role}", "no UPDATE on chat_messages"),
            (f"GRANT UPDATE (metadata_json) ON chat_messages TO {role}", None),
            (f"{setting} = on", "default_transaction_read_only"),
            (f"{setting} = off", None),
        ):
            await asyncio.to_thread(database.execute, sql)
            await shown(lambda reason=reason: (  # type: ignore[misc]
                reason in str(app.library.no_change)
                and line(app, BottomLine).startswith(" read only  ")
                and "archive" not in line(app, BottomLine)
                and "team  read only" in line(app, TopLine)
            ) if reason else (
                app.library.no_change is None and "archive" in line(app, BottomLine)
                and "read only" not in line(app, BottomLine) + line(app, TopLine)))
        await pilot.press("a")
        await shown(lambda: "1 archived" in line(app, TopLine))


@pytest.mark.long
async def test_a_standby_that_takes_the_place_of_its_server_is_followed(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOKED_AFTER_S", 0.05)
    with postgres.standby() as folder:
        app = BackscrollApp(
            Library.open_server(f"{url},{folder}", "team"), Settings(), poll_ms=20)
        async with app.run_test(size=(160, 40)) as pilot:
            await settled(app, pilot)
            await pilot.press("a")
            await shown(lambda: "1 archived" in line(app, TopLine))
            await asyncio.to_thread(postgres.stop)
            try:
                await shown(lambda: "standby server" in str(app.library.no_change))
                await shown(lambda: line(app, BottomLine).startswith(" read only  "))
                assert app.main.watcher.poller.health.state == "fresh"
                await asyncio.to_thread(postgres.promote, folder)
                await shown(lambda: "read only" not in line(app, BottomLine))
                await pilot.press("U")
                await shown(lambda: "archived" not in line(app, TopLine))
            finally:
                await asyncio.to_thread(postgres.start)


def test_an_older_store_is_migrated_and_that_is_said(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.database().url
    with monkeypatch.context() as patch:
        patch.setattr(schema, "CURRENT_VERSION", 3)
        open_target(url, create=True, write=True).close()
    seen = list[tuple[str | None, str | None]]()
    for name, migrates in ((url, False), (url, True), (url, True), (f"{url}&zz=1", True)):
        library = Library.open_server(name, "team", migrates=migrates)
        seen.append((library.notice, library.no_change))
        library.database.close()
    assert seen[0][0] == seen[0][1] and "older version 3" in str(seen[0][0])
    assert seen[1:] == [
        (f"team was migrated from version 3 to {schema.CURRENT_VERSION}; older versions of"
         " Backscroll only read it now", None), (None, None),
        (f"{url}&zz=1: the parameter zz is not understood and left out", None)]


@pytest.mark.parametrize("width", [80, 120])
async def test_a_server_that_is_gone_is_shown_on_a_narrow_screen(width: int) -> None:
    class Bar(App[None]):
        def compose(self) -> Iterator[TopLine]:
            yield TopLine()

    trouble = "server cannot be reached, trying again, shown as of 2 s ago"
    app = Bar()
    async with app.run_test(size=(width, 2)):
        bar = app.query_one(TopLine)
        bar.summary = Summary(
            store="postgresql://ada@db.example.org/team", sessions=50, running=1, waiting=2,
            trouble=trouble)
        assert trouble in bar.render_line(0).text
        long = "postgresql://ada@/team?host=/var/run/postgresql&port=5433&target_session_attrs=any"
        bar.summary = Summary(
            store=long, sessions=50, read_only=True, freshness="changed 2 s ago")
        said = bar.render_line(0).text
        assert "…  read only  50 sessions" in said and "changed 2 s ago" in said
        assert f" backscroll  {long[:24]}" in said
        for name in ("library", "postgresql://guest@127.0.0.1:5477/team"):
            bar.summary = Summary(store=name, sessions=28, read_only=True, trouble=trouble)
            said = bar.render_line(0).text
            # A few letters of a URL say nothing, nor do those of "read only".
            assert ("read only" in said) is (width == 120)
            assert width == 120 or re.match(r" backscroll +✗ server cannot", said)
            assert ("pos" in said) is (width == 120 and "guest" in name)
            bar.summary = Summary(
                store=name, sessions=28, read_only=True, freshness="changed 10 min ago")
            assert re.search(r"only  28 sessions {2,}changed 10 min", bar.render_line(0).text)


@pytest.mark.parametrize(
    ("reason", "shown"),
    [("postgresql://ada@db/team cannot be reached", "postgresql://ada@db/team cannot be reached"),
     ("the role may only read", "The role may only read")],
)
def test_a_reason_keeps_the_letters_of_a_url(reason: str, shown: str) -> None:
    told: list[str] = []
    refuse(cast(Terminal, SimpleNamespace(
        notify=lambda words, **_: told.append(words))), Refused(reason))
    assert told == [shown]


async def test_a_server_that_is_gone_is_shown_until_it_is_back(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = BackscrollApp(Library.open_server(url, "team"), Settings(), poll_ms=20)
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(app, pilot)
        assert "1 session" in line(app, TopLine)
        assert isinstance(app.screen, MainScreen)
        summary = app.screen.counter.summary(Health("busy", NOW))
        assert str(summary.trouble).startswith("server cannot be read, trying again, shown as of")
        toasts = list[str]()
        monkeypatch.setattr(app, "notify", lambda words, **_: toasts.append(words))
        await pilot.press("$")
        await shown(lambda: isinstance(app.screen, StatsScreen) and app.screen.is_mounted)
        await asyncio.to_thread(postgres.stop)
        await shown(lambda: ", trying again, shown as of " in line(app, TopLine))
        assert "server c" in line(app, TopLine)  # "cannot be reached" or "closed the connection"
        await shown(lambda: "trying again, shown as of " in "".join(
            bar.render_line(0).text for bar in app.screen.query(TroubleBar)))
        await asyncio.to_thread(postgres.start)
        await shown(lambda: "trying again" not in line(app, TopLine))
        await shown(lambda: not app.screen.query(TroubleBar))
        await pilot.press("escape")
        # The reason is the newest one: the connection is cut first, and then refused.
        name = postgres.database_of(url).name
        await asyncio.to_thread(postgres.admin.execute, (
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS false; SELECT pg_terminate_backend(pid)"
            f" FROM pg_stat_activity WHERE datname = '{name}'"))
        await shown(lambda: "server cannot be read, trying again" in line(app, TopLine))
        await asyncio.to_thread(
            postgres.admin.execute, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        await shown(lambda: "trying again" not in line(app, TopLine))
        await asyncio.to_thread(name_another, url, NOW)
        await shown(lambda: "2 sessions" in line(app, TopLine))
        assert toasts == []


@pytest.mark.long
async def test_a_session_is_read_whole_once_its_server_is_back(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await asyncio.to_thread(open_target, url, write=True)
    talk = Talk(database)
    session = talk.session("Long")
    for number in range(300):
        talk.message(session, text=f"words {number}")
    await asyncio.to_thread(database.close)
    skeleton, stops = SessionReader.skeleton, [1]

    async def stopped(self: SessionReader, setting: Setting) -> tuple[Skeleton, Heights]:
        if self.row.id == session and stops:
            await asyncio.to_thread(postgres.stop)
            stops.clear()
        return await skeleton(self, setting)

    monkeypatch.setattr(SessionReader, "skeleton", stopped)
    app = BackscrollApp(Library.open_server(url, "team"), Settings(), poll_ms=20)
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(app, pilot)
        app.open_session(session)
        await shown(lambda: not stops and "trying again" in line(app, TopLine))
        transcript = app.main.transcript
        assert transcript is not None and not transcript.shown.document.complete
        await asyncio.to_thread(postgres.start)
        await shown(lambda: transcript.shown.document.complete)
        assert len(transcript.shown.document) == 300


async def test_a_session_opened_while_its_server_is_gone_is_shown_once_it_is_back(
    postgres: Server, url: str
) -> None:
    await asyncio.to_thread(name_another, url, NOW)
    app = BackscrollApp(Library.open_server(url, "team"), Settings(), poll_ms=20)
    async with app.run_test(size=(160, 40)) as pilot:
        await settled(app, pilot)
        transcript, opener = app.main.transcript, app.main.opener
        assert transcript is not None
        await opener.opened()
        rows = await app.library.read(page, SessionFilter())
        (other,) = {row.id for row in rows} - {opener.shown}
        await asyncio.to_thread(postgres.stop)
        opener.open(other)
        await opener.opened()
        assert not transcript.shows(other)
        await asyncio.to_thread(postgres.start)
        await shown(lambda: transcript.shows(other))
