"""Large values go to a server and come from it in pieces, and are read as they were given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from backscroll import Store
from store.engine.connection import Parameters
from store.engine.opening import open_target
from store.engine.server import large_texts
from store.engine.server.connection import ServerConnection, ServerCursor
from store.engine.server.large_texts import PIECE
from store.exports.reading import read_session
from store.exports.ui_messages import ui_message
from store.recorder.large_json import LARGE
from tests.sources.postgres_server import Server
from tests.store.engines import host_tables
from tests.store.recording import feed_output

TEXT = "half \ud83d, nul \0, 文字 \U0001f600 \"quoted\" \\ \n" * (LARGE // 36)
OUTPUT = {"text": TEXT, "rows": [{"n": n, "t": ["文" * 9, 2**70, 1.5]} for n in range(1_000)]}
MOST = 4 * PIECE


class Sizes:
    """How long the values were that went to servers and came from them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.sent, self.fetched = list[int](), list[int]()
        execute, many = ServerConnection.execute, ServerConnection.executemany

        def one(connection: ServerConnection, sql: str, given: Parameters = (), /) -> ServerCursor:
            self.sent += _sizes(given.values() if isinstance(given, Mapping) else given)
            return execute(connection, sql, given)

        def some(
            connection: ServerConnection, sql: str, given: Iterable[Any], /
        ) -> ServerCursor:
            given = list(given)
            self.sent += _sizes(value for values in given for value in values)
            return many(connection, sql, given)

        def found(cursor: ServerCursor, rows: Any, *rest: Any) -> None:
            self.fetched += _sizes(value for row in rows for value in row)
            made(cursor, rows, *rest)

        made = ServerCursor.__init__
        patch.setattr(ServerConnection, "execute", one)
        patch.setattr(ServerConnection, "executemany", some)
        patch.setattr(ServerCursor, "__init__", found)


def _sizes(values: Iterable[Any]) -> list[int]:
    return [len(value) for value in values if isinstance(value, str | bytes)]


async def record_output(store: Store, output: object) -> str:
    """Record a tool's output into a new session, and return the session's id."""
    session = await store.create_session("a")
    async with store.recorder(session) as recorder:
        await recorder.feed({"type": "start", "messageId": "one"})
        await feed_output(recorder, output)
    return session.id


async def test_a_large_output_is_sent_and_fetched_in_pieces(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Store.open(url) as store:
        sizes = Sizes(monkeypatch)
        session = await record_output(store, OUTPUT)
        assert max(sizes.sent) <= MOST
        assert sum(size > PIECE // 4 for size in sizes.sent) >= 2 * len(TEXT) // MOST
        assert max(sizes.fetched) < PIECE
        (message,) = await store.messages(session)
        assert message["parts"][0]["output"] == OUTPUT
        assert max(sizes.fetched) == PIECE and sizes.fetched.count(PIECE) >= len(TEXT) // PIECE
        async with store.recorder(session) as recorder:  # It reads what it goes on with.
            await recorder.feed({"type": "start", "messageId": "one"})
            await recorder.feed({"type": "text-start", "id": "t"})
            assert recorder.message is not None
            assert recorder.message["parts"][0]["output"] == OUTPUT
        assert max(sizes.fetched) == PIECE


async def test_a_small_output_is_sent_and_fetched_as_it_is(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Store.open(url) as store:
        monkeypatch.setattr(large_texts, "send", None)
        monkeypatch.setattr(large_texts, "fetch", None)
        session = await record_output(store, "x" * (LARGE // 2))
        (message,) = await store.messages(session)
        assert message["parts"][0]["output"] == "x" * (LARGE // 2)


async def test_a_large_part_is_of_the_state_of_its_message(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch, other = large_texts.fetch, open_target(url, write=True)

    def late(*given: Any) -> Any:
        other.connection.execute("DELETE FROM chat_messages")
        return fetch(*given)

    monkeypatch.setattr(large_texts, "fetch", late)
    async with Store.open(url) as store:
        session = await record_output(store, OUTPUT)
        (message,) = await store.messages(session)
        assert message["parts"][0]["output"] == OUTPUT
        assert await store.messages(session) == []
    other.close()


@pytest.mark.parametrize("kind", ["jsonb", "text"])
def test_a_hosts_large_parts_are_read_as_they_are(postgres: Server, kind: str) -> None:
    host = postgres.database()
    host.execute(host_tables(kind))
    text = "文字 \U0001f600 \"q\" \\ \n" * (LARGE // 20)
    part = {"type": "text", "text": text, "n": [1.5, 2**40]}
    data = json.dumps(part)
    host.execute(
        "INSERT INTO chat_sessions (id, agent, model_json, metadata_json, created_at, updated_at)"
        " VALUES ('s', 'mine', '{}', '{}', 1, 2)")
    host.execute(
        "INSERT INTO chat_messages (id, session_id, role, metadata_json, created_at, updated_at)"
        " VALUES ('m', 's', 'user', '{}', 1, 1)")
    broken = [data[:-1], '"' + "文" * LARGE] if kind == "text" else []
    for index, stored in enumerate([data, '{"type":"text","text":"T"}', *broken]):
        host.execute(
            'INSERT INTO chat_parts (id, message_id, session_id, "index", type, data_json,'
            " created_at, updated_at) VALUES ($1, 'm', 's', $2, 'text', $3, 2, 2)",
            f"p{index}", index, stored)
    database = open_target(host.url)
    whole, in_pieces = (
        [ui_message(each) for each in read_session(database, "s", in_pieces=pieces).messages]
        for pieces in (False, True))
    assert in_pieces == whole
    assert in_pieces[0]["parts"][0] == part
    assert not database.connection.in_transaction
    database.close()
