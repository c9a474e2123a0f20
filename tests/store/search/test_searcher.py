"""The asynchronous searcher: one search at a time, beside writers, on files of hosts."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Coroutine
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.errors import StoreError
from store.language.query import Query, parse
from store.queries.sessions import SessionFilter
from store.search import running
from store.search.hits import Update
from store.search.index.building import Indexer
from store.search.index.reading import open_index
from store.search.index.sidecar import index_path
from store.search.listed import Listed
from store.search.running import Request, Run, sessions_with_hits
from store.search.searching import Searcher
from tests.hostile import CORPUS
from tests.slow_opening import SlowOpening, is_closed
from tests.store.making import add_message, add_part, add_session, contract, own


def ask(text: str) -> Query:
    return parse(text, now=10**12)


def fill(path: Path, messages: int, words: str = "needle", session: str = "ses") -> None:
    connection = sqlite3.connect(path)
    add_session(connection, session, at=1)
    for number in range(messages):
        message = add_message(connection, session, f"{session}{number:05}", number)
        add_part(connection, session, message, f"{message}p", 0,
                 data={"type": "text", "text": f"{words} {number}"})
    connection.commit()
    connection.close()


async def all_of(updates: AsyncIterator[Update]) -> list[Update]:
    return [update async for update in updates]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = own(tmp_path / "store.db")
    fill(path, 300)
    return path


async def test_a_search_ends_with_all_counted(store: Path) -> None:
    async with await Searcher.open(store) as searcher:
        updates = await all_of(searcher.search(ask("needle")))
    assert [one.done for one in updates] == [False] * (len(updates) - 1) + [True]
    assert updates[-1].counts.hits == 300
    assert len(updates[-1].page.hits) == 50
    assert updates[-1].page.cursor is not None


@pytest.mark.parametrize("words", ["needle", "nothing_like_it"])
def test_hits_do_not_wait_for_a_count_of_the_store(store: Path, words: str) -> None:
    db, asked = open_database(store, write=False), list[str]()
    db.file.set_trace_callback(asked.append)
    steps = Run(db, Request(ask(words)), None).steps()
    ready = next(one for one in steps if one is not None and one.ready)
    assert not any(one.startswith("SELECT count(*) FROM chat_") for one in asked)
    assert len(ready.page.hits) == (50 if words == "needle" else 0)
    *_, done = steps
    assert done is not None and (done.counts.all_sessions, done.counts.wanted_sessions) == (1, 1)
    assert done.coverage.searched == done.coverage.total == 300
    db.close()


def test_sessions_that_are_not_listed_are_not_counted(store: Path) -> None:
    fill(store, 1, session="ses_helper")
    with closing(open_database(store, write=True)) as db:
        db.connection.execute(
            "INSERT INTO session_links VALUES ('ses_helper', 'helper', 'ses', NULL, 0)")
        for helpers, hits, sessions in ((False, 300, 1), (True, 301, 2)):
            *_, done = Run(db, Request(ask("needle"), helpers=helpers), None).steps()
            assert done is not None and done.counts.hits == hits
            assert (done.counts.sessions, done.counts.all_sessions) == (sessions, sessions)


async def test_a_new_search_ends_the_one_before(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SLICE_S", 0.0)
    monkeypatch.setattr(running, "_BETWEEN_UPDATES_S", 0.0)
    async with await Searcher.open(store) as searcher:
        first = searcher.search(ask("needle"))
        begun = await anext(first)
        second = asyncio.ensure_future(all_of(searcher.search(ask("needle 7"))))
        await asyncio.sleep(0)
        rest = await all_of(first)
        assert not begun.done
        assert not any(one.done for one in rest)
        assert (await second)[-1].counts.hits == sum("7" in str(number) for number in range(300))


async def test_a_search_that_is_left_makes_room(store: Path) -> None:
    async with await Searcher.open(store) as searcher:
        async for _ in searcher.search(ask("needle")):
            break
        task = asyncio.ensure_future(all_of(searcher.search(ask("needle"))))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await all_of(searcher.search(ask("needle"))))[-1].done


async def test_closing_ends_a_search(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SLICE_S", 0.0)
    searcher = await Searcher.open(store)
    search = searcher.search(ask("needle"))
    await anext(search)
    closing = asyncio.ensure_future(searcher.close())
    await asyncio.sleep(0)
    assert not any(one.done for one in await all_of(search))
    await closing
    assert await all_of(searcher.search(ask("needle"))) == []
    await searcher.close()


async def test_the_store_may_change_while_a_search_runs(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SLICE_S", 0.0)
    connection = sqlite3.connect(store)
    connection.execute("PRAGMA foreign_keys = ON")
    seen = 0
    async with await Searcher.open(store) as searcher:
        async for _update in searcher.search(ask("needle"), limit=10):
            seen += 1
            if seen == 1:
                fill(store, 5, session="new")
                connection.execute(
                    "DELETE FROM chat_messages WHERE session_id = 'ses' AND id < 'ses00100'")
                connection.commit()
        assert seen > 1
        again = await all_of(searcher.search(ask("needle")))
        assert again[-1].counts.hits == 205
        connection.execute("DELETE FROM chat_sessions")
        connection.commit()
        assert (await all_of(searcher.search(ask("needle"))))[-1].counts.hits == 0
    connection.close()


@pytest.mark.parametrize("wal", [True, False])
async def test_sees_what_a_host_writes_between_two_searches(tmp_path: Path, wal: bool) -> None:
    path = contract(tmp_path / "host.db", wal=wal)
    fill(path, 3)
    async with await Searcher.open(path) as searcher:
        assert (await all_of(searcher.search(ask("needle"))))[-1].counts.hits == 3
        fill(path, 4, session="two")
        assert (await all_of(searcher.search(ask("needle"))))[-1].counts.hits == 7


async def test_a_cursor_of_another_search_is_refused(store: Path) -> None:
    async with await Searcher.open(store) as searcher:
        with pytest.raises(StoreError, match="is no cursor"):
            await all_of(searcher.search(ask("needle"), cursor="nonsense"))


async def test_a_scan_ends_in_time_and_says_what_it_searched(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SLICE_S", 0.0)
    async with await Searcher.open(store) as searcher:
        request = running.Request(ask("nothing_like_it"), scan_s=0.0)
        last = (await all_of(searcher.run(request)))[-1]
    assert last.done
    assert not last.counts.whole
    assert 0 < last.coverage.searched < last.coverage.total == 300
    assert last.coverage.why == "there is no index yet"


@pytest.mark.parametrize("query", ["needle agent:nosuch", "needle after:2090"])
def test_others_may_run_though_nothing_that_is_read_is_wanted(
    store: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(running, "SLICE_S", 0.0)
    indexer = Indexer(store)
    while indexer.step():
        pass
    indexer.close()
    index, db = open_index(store), open_database(store, write=False)
    steps = list(Run(db, Request(ask(query)), index).steps())
    found = list(sessions_with_hits(db, ask(query), index))
    assert len(steps) > 3 and len(found) > 2
    assert found[-1] == (set(), "")
    db.close()


def test_a_search_of_sessions_that_ends_early_says_so(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SLICE_S", 0.0)
    db = open_database(store, write=False)
    *_, found = sessions_with_hits(db, ask("nothing_like_it"), seconds=0.0)
    assert found == (set(), "there is no index yet")
    *_, found = sessions_with_hits(db, ask("nothing_like_it"))
    assert found == (set(), "")
    monkeypatch.setattr(running, "sessions_with_hits", partial(sessions_with_hits, seconds=0.0))
    listed = Listed(db, ask("tool:bash"), SessionFilter(), 10**12)
    assert list(listed.page()) == [] and listed.why == "there is no index yet"
    db.close()


async def test_names_sessions(store: Path) -> None:
    fill(store, 3, "other", "two")
    async with await Searcher.open(store) as searcher:
        *_, found = [each async for each in searcher.sessions(ask("other"))]
        assert found == ({"two"}, "")


async def test_hostile_text_is_found_and_given_as_it_is(tmp_path: Path) -> None:
    path = own(tmp_path / "store.db")
    for number, text in enumerate(CORPUS.values()):
        fill(path, 1, f"needle{number} {text}", f"s{number}")
    async with await Searcher.open(path) as searcher:
        for number, text in enumerate(CORPUS.values()):
            # A query holds no half characters; what is in a store may.
            whole = [] if "\ud800" in text else [f'"{text.split()[0]}"']
            for words in (f"needle{number}", *whole):
                last = (await all_of(searcher.search(ask(words), limit=1000)))[-1]
                assert f"s{number}" in {hit.session_id for hit in last.page.hits}, (words, text)
                for hit in last.page.hits:
                    assert all(0 <= start < end <= len(hit.excerpt.text)
                               for start, end in hit.excerpt.marks)


async def test_rows_of_any_kind_do_no_harm(tmp_path: Path) -> None:
    path = own(tmp_path / "store.db")
    fill(path, 1)
    connection = sqlite3.connect(path)
    odd = (b"\xff\xfe", "no json needle", "[1, 2", "[" * 5000, '"needle"', "17", "null",
           '{"type": 5, "text": ["needle"]}', '{"type": "tool-x", "input": 5, "output": {}}',
           '{"text": "\\ud800 needle"}')
    for number, data in enumerate(odd, 1):
        connection.execute(
            "INSERT INTO chat_parts VALUES (?, 'ses00000', 'ses', ?, 'text', ?, NULL, NULL, 0, 0)",
            (f"odd{number}", number, data))
    connection.execute("UPDATE chat_messages SET metadata_json = '{\"origin\": [1]}'")
    connection.commit()
    connection.close()
    async with await Searcher.open(path) as searcher:
        last = (await all_of(searcher.search(ask("needle"))))[-1]
        assert {hit.index for hit in last.page.hits} == {0, 2, 5, 8, 10}
        for words in ("tool:x", "is:error", "file:x", "role:user", "-needle in:text"):
            assert (await all_of(searcher.search(ask(words))))[-1].done


@pytest.mark.parametrize("damage", ["cut", "garbage", "gone"])
async def test_a_damaged_index_does_no_harm(store: Path, damage: str) -> None:
    indexer = Indexer(store)
    while indexer.step() or not indexer.idle:
        indexer.look()
    indexer.close()
    path = index_path(store)
    async with await Searcher.open(store) as searcher:
        last = (await all_of(searcher.search(ask("needle"))))[-1]
        assert last.coverage.indexed
        size = path.stat().st_size
        if damage == "gone":
            path.unlink()
        else:
            with path.open("r+b") as file:
                if damage == "cut":
                    file.truncate(size // 2)
                else:
                    file.seek(4096)
                    file.write(b"x" * (size - 4096))
        for words in ("needle", "needle 7"):
            assert (await all_of(searcher.search(ask(words))))[-1].counts.hits > 0
    async with await Searcher.open(store) as searcher:
        assert (await all_of(searcher.search(ask("needle"))))[-1].counts.hits == 300


async def test_a_searcher_is_closed_though_its_user_is_cancelled_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a filter is that changes while its search begins or ends: a server takes a while."""
    path = tmp_path / "store.db"
    own(path)
    slow = SlowOpening()
    opened = slow.opened
    monkeypatch.setattr("store.engine.connection_thread.open_database", slow)

    async def cancelled_twice(work: Coroutine[None, None, object]) -> None:
        task = asyncio.ensure_future(work)
        await asyncio.to_thread(slow.waits.wait)
        slow.waits.clear()
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        slow.go_on.set()
        await asyncio.wait([task])

    async def closed(database: Database) -> None:
        while not is_closed(database):
            await asyncio.sleep(0.001)

    await cancelled_twice(Searcher.open(path))
    async with asyncio.timeout(30):
        while not opened:
            await asyncio.sleep(0.001)
        await closed(opened.pop())
    searcher = await Searcher.open(path)
    slow.waits.set()
    await cancelled_twice(searcher.close())
    async with asyncio.timeout(30):
        await closed(opened.pop())
