"""The upkeep of a store on a server: statistics on this machine, indexes on the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from store.engine.database import in_transaction
from store.engine.opening import open_target
from store.engine.server.searched import indexes_of
from store.engine.server_url import ServerUrl, server_url
from store.events.log import switch_on
from store.events.rebuilding import differing
from store.events.trimming import log_size
from store.search.index.__main__ import Teller
from store.stats.checking import check
from store.stats.keeping import Counter
from store.stats.tables import STATISTICS
from store.sync.forget import forget
from store.system.stopping import Stop
from store.upkeep.on_server import keep_server
from store.upkeep.process import start_upkeep
from store.verbs.marks import rename
from tests.sources.postgres_server import Server
from tests.store.stats.test_rollups import answers, asked, catch_up
from tests.store.talks import Talk
from tui.live.indexing import Indexing


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.05)


def is_equal(store: Path) -> bool:
    file = STATISTICS.open_for_reading(STATISTICS.path(store))
    if file is None:
        return False
    file.close()
    return not check(store)


def guarded(url: str, postgres: Server) -> ServerUrl:
    """Return the URL of a user with a password."""
    found = server_url(postgres.database_of(url).guarded_url)
    assert found is not None and found.has_password
    return found


async def test_the_helper_counts_and_its_arguments_have_no_password(
    postgres: Server, url: str
) -> None:
    talk = Talk(open_target(url, write=True))
    answers(talk)
    talk.db.connection.execute("DROP INDEX public.chat_messages_newest")
    process = await start_upkeep(guarded(url, postgres))
    cmdline = Path(f"/proc/{process.pid}/cmdline")
    await until(lambda: b"store.upkeep" in cmdline.read_bytes())
    assert b"postgres" not in cmdline.read_bytes()
    await until(lambda: is_equal(talk.db.path))
    await until(lambda: indexes_of(talk.db.connection).newest)  # type: ignore[arg-type]
    answers(talk, 2)
    await until(lambda: is_equal(talk.db.path))
    await process.stop()
    talk.db.close()


@pytest.mark.long
async def test_the_helper_goes_on_after_a_restart_and_says_nothing(
    postgres: Server, url: str
) -> None:
    talk = Talk(open_target(url, write=True))
    path = talk.db.path
    answers(talk)
    talk.db.close()
    said: list[str] = []
    indexing = Indexing(path, lambda summary, error: said.append(f"{summary} {error}"), (0.01,),
                        server=server_url(url))
    await asyncio.to_thread(postgres.stop)
    running = asyncio.ensure_future(indexing.run())
    try:
        await asyncio.to_thread(postgres.start)
        await until(lambda: is_equal(path))
        await asyncio.to_thread(postgres.stop)
    finally:
        await asyncio.to_thread(postgres.start)
    talk = Talk(open_target(url, write=True))
    answers(talk)
    await until(lambda: is_equal(path))
    await indexing.stop()
    await running
    assert said == []
    talk.db.close()


def test_what_another_machine_forgot_is_not_shown_and_goes(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(open_target(url, write=True))
    secret = answers(talk, workspace_root="/secret-folder", agent="secret-agent")
    answers(talk)
    counter = Counter(talk.db.path)
    catch_up(counter)
    counter.close()
    path = STATISTICS.path(talk.db.path)
    assert b"secret-folder" in path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path / "another machine"))
        other = open_target(url, write=True)
        forget(other, [secret])
        other.close()
    assert b"secret-folder" in path.read_bytes()
    # Even where there is no time to count anything.
    shown = asked(talk, seconds=0.0)
    assert shown.whole.total == asked(talk).whole.total == 30
    counter = Counter(talk.db.path)
    catch_up(counter)
    counter.close()
    for word in (b"secret-folder", b"secret-agent", secret.encode()):
        assert word not in path.read_bytes()
    assert check(talk.db.path) == []
    talk.db.close()


@pytest.mark.long
def test_the_helper_cuts_old_events(url: str, tmp_path: Path) -> None:
    config = tmp_path / "config" / "backscroll"
    config.mkdir(parents=True)
    config.joinpath("config.toml").write_text("[events]\nkeep_days = 1\n")
    server = server_url(url)
    assert server is not None
    talk = Talk(open_target(url, write=True))
    session = talk.session()
    switch_on(talk.db)
    for number in range(5):
        in_transaction(talk.db, rename, session, f"title {number}", now=number)
    talk.db.connection.execute("UPDATE events SET at = 1")
    assert keep_server(server, Stop(), Teller(False), once=True) == 0
    assert log_size(talk.db)[0] == 1 and differing(talk.db) == []
    talk.db.close()
