"""The replay of a session in a store on a real PostgreSQL server: by its log, and live."""

from __future__ import annotations

import time

import pytest

from store.config import Settings
from store.engine.opening import open_target
from store.events.log import switch_on
from tests.sources.postgres_server import Server
from tests.store.engines import new_server_store
from tests.store.talks import Talk
from tests.tui.stores import settled
from tests.tui.test_server_browser import until
from tests.tui.verbs_app import drawn
from tui.app import BackscrollApp
from tui.replay.screen import ReplayScreen
from tui.state.library import Library


@pytest.fixture
def talk(postgres: Server) -> Talk:
    """A store on a server with a log, and a talk of it whose clock is near the present."""
    database = open_target(new_server_store(postgres), write=True)
    switch_on(database)
    return Talk(database, now=time.time_ns() // 1_000_000 - 20_000)


async def test_a_session_on_a_server_is_replayed(talk: Talk) -> None:
    do, session = talk.db.connection.execute, talk.session("A session")
    prompt, wrong = talk.message(session, text="a prompt"), talk.message(session, text="a mistake")
    part = talk.part(session, wrong, 1, {"type": "text", "text": "more of it"})
    talk.message(session, "assistant", text="an answer")
    do("DELETE FROM chat_parts WHERE id = $1", {"1": part})
    do("DELETE FROM chat_messages WHERE id = $1", {"1": wrong})
    database = talk.db
    app = BackscrollApp(Library.open(database.path, "team"), Settings(), poll_ms=20)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(app, pilot)
        app.open_replay(session, prompt)

        def shows(*words: str) -> bool:
            return all(word in drawn(app.screen) for word in words)

        await until(lambda: isinstance(app.screen, ReplayScreen) and shows("a prompt"))
        await until(lambda: shows("from the log"))
        await pilot.press("space", "home", "right")
        await until(lambda: shows("a mistake", "more of it") and not shows("an answer"))
        await pilot.press("end")
        await until(lambda: shows("an answer") and not shows("a mistake"))
        later = talk.message(session, text="and later on")
        do("INSERT INTO changes(changed_at, session_id, message_id) VALUES (1, $1, $2)",
           {"1": session, "2": later})
        await until(lambda: shows("of 3"))
        await pilot.press("end")
        await until(lambda: shows("and later on"))
    database.close()
