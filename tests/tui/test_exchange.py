"""What agents sent to each other: inbox and outbox, in the store and on its screen."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from store.engine.database import Database
from store.queries.exchange import exchange
from store.sources.lionagi import LionagiSource
from store.store import Store
from tests.sources import grown, row_sources
from tests.tui.test_details import DetailsApp
from tests.tui.workers import workers_done
from tui.exchange.screen import ExchangeScreen

FILE = Path(__file__).parent.parent / "data" / "lionagi" / "state.db"
R1, PLANNER = "649a0907-5159-4d93-baa4-741051114fb0", "planner"


@pytest.fixture
def library(tmp_path: Path) -> Database:
    folder = tmp_path / ".lionagi"
    folder.mkdir()
    state = row_sources.copied(FILE, folder)

    def send(connection: sqlite3.Connection) -> None:
        ((planner,),) = connection.execute(
            "SELECT id FROM branches WHERE name = 'planner'").fetchall()
        connection.execute(
            "INSERT INTO messages(id, created_at, node_metadata, content, sender, recipient,"
            " channel, role, lion_class) SELECT 'sent', 1790003650.0, node_metadata,"
            " json_object('assistant_response', 'Please review'), ?, ?, 'review', role, 3"
            " FROM messages WHERE lion_class = 3 LIMIT 1", (planner, R1))
        connection.execute(
            "UPDATE progressions SET collection = json_insert(collection, '$[#]', 'sent')"
            " WHERE id = (SELECT progression_id FROM branches WHERE id = ?)", (planner,))

    row_sources.written(state, send)
    return grown.synced(LionagiSource(), state, tmp_path / "library.db")


def session(db: Database, branch: str) -> str:
    ((found,),) = db.connection.execute(
        "SELECT id FROM chat_sessions WHERE json_extract(metadata_json,"
        " '$.backscroll.branch.name') = ?", (branch,)).fetchall()
    return str(found)


def test_what_was_sent_is_in_the_outbox_of_one_and_the_inbox_of_the_other(
    library: Database,
) -> None:
    sent = [each for each in exchange(library, session(library, "planner")) if each.channel]
    assert [(each.box, each.sender, each.recipient, each.channel, each.words)
            for each in sent] == [("out", "planner", "r1", "review", "Please review")]
    received = exchange(library, session(library, "r1"))
    (one,) = [each for each in received if each.channel]
    assert (one.box, one.session_id) == ("in", session(library, "planner"))
    assert [each.at for each in received] == sorted(each.at for each in received)
    assert {each.sender for each in received} >= {"user", "r1"}


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24)])
@pytest.mark.one_in(3)
async def test_the_screen_at_every_size(library: Database, size: tuple[int, int]) -> None:
    store = await Store.open(library.path)
    app = DetailsApp()
    try:
        async with app.run_test(size=size) as pilot:
            await app.push_screen(ExchangeScreen(store, session(library, "r1")))
            await workers_done(app)
            await pilot.pause()
            assert "all messages" in "\n".join(app.lines)
            await pilot.press("V")
            await pilot.pause()
            shown = "\n".join(app.lines)
            assert "inbox" in shown and "planner" in shown and "#review" in shown
            await pilot.press("V", "V", "V", "end", "enter")
            await pilot.pause()
            assert app.opened and app.opened[0].message_id
    finally:
        await store.close()


async def test_a_session_without_any_says_so(library: Database) -> None:
    library.connection.execute("UPDATE chat_messages SET metadata_json = '{}'")
    store = await Store.open(library.path)
    app = DetailsApp()
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            await app.push_screen(ExchangeScreen(store, session(library, "r1")))
            await workers_done(app)
            await pilot.pause()
            assert "No message of this session names a sender" in "\n".join(app.lines)
            await pilot.press("enter")
            assert app.opened == []
    finally:
        await store.close()
