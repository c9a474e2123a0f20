"""Saves that a recorder of a host begins without waiting, on a file and on a server."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from store import NotFound, Refused, Store
from store.engine.async_database import AsyncDatabase
from store.engine.late_work import LateWork
from store.engine.opening import open_target
from store.engine.server.connection import ServerConnection
from store.engine.server.sent import Sent
from store.engine.transactions import is_lost
from store.recorder import at_once, saving
from store.recorder.deadline import Deadline
from store.recorder.policy import SavePolicy
from store.recorder.recorder import Recorder
from store.recorder.saving import Saver
from store.verbs.delete import delete
from store.verbs.shelf import archive

START = {"type": "text-start", "id": "t"}
END = {"type": "text-end", "id": "t"}


def delta(number: int) -> dict[str, Any]:
    return {"type": "text-delta", "id": "t", "delta": f"word {number} "}


def words(count: int) -> str:
    return "".join(f"word {number} " for number in range(count))


@pytest.fixture(autouse=True)
def one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saves are one statement however long ago, on a slow machine, its number was reserved."""
    monkeypatch.setattr(at_once, "_KEPT_S", float("inf"))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Sent]]:
    """The statements that loops sent themselves."""
    found: list[Sent] = []
    send = ServerConnection.send

    def note(self: ServerConnection, sql: str, given: Any, /) -> Sent | None:
        made = send(self, sql, given)
        if made is not None:
            found.append(made)
        return made

    monkeypatch.setattr(ServerConnection, "send", note)
    yield found


def break_connections(url: str) -> None:
    """End all other connections to a database."""
    other = open_target(url, write=True)
    other.connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND datname = current_database()").fetchall()
    other.close()


async def texts(store: Store, session: str) -> list[str]:
    return [part["text"] for message in await store.messages(session)
            for part in message["parts"]]


async def changes(store: Store) -> int:
    def count(db: Any) -> int:
        return int(db.connection.execute("SELECT count(*) FROM changes").fetchone()[0])

    return await store.read(count)


async def test_a_usual_save_is_one_statement_of_the_loop(url: str, sent: list[Sent]) -> None:
    async with await Store.open(url) as store, await Recorder.open(store) as recorder:
        await recorder.feed(START)
        for number in range(80):
            await recorder.feed(delta(number))
            await recorder.flush()
        # Every so often a thread has its turn, to do what the connection left for later.
        assert 70 <= len(sent) <= 80
        assert await texts(store, recorder.session_id) == [words(80)]
        written = await changes(store)
        await recorder.feed(delta(80))
        await recorder.flush()
        assert await changes(store) == written + 1


async def test_what_waits_is_saved_while_others_use_the_connection(url: str) -> None:
    async with await Store.open(url) as store:
        session = await store.create_session("mine")
        async with await Recorder.open(store) as recorder:
            await recorder.feed(START)
            for number in range(30):
                await recorder.feed(delta(number))
                done = await asyncio.gather(
                    recorder.flush(), store.rename(session, f"Title {number}"),
                    recorder.feed(delta(-1)) if number == 29 else asyncio.sleep(0))
                assert done[0] is None
            await recorder.flush()
            assert await texts(store, recorder.session_id) == [words(30) + "word -1 "]


@pytest.mark.parametrize(("policy", "waits"), [
    (SavePolicy(), [16, 16, 36, 50]),
    (SavePolicy(busy_buffer_ms=0), [16, 16, 16, 16]),
    (SavePolicy(save_buffer_ms=100), [100, 100, 100, 100]),
])
async def test_a_server_that_takes_long_gets_fewer_saves(
    url: str, monkeypatch: pytest.MonkeyPatch, policy: SavePolicy, waits: list[int]
) -> None:
    now, waited, note_end = [0.0], list[float](), Saver._note_end
    takes = iter((0.001, 0.004, 60.0, 0.0))

    def end_later(self: Saver, begun: Any, error: BaseException | None) -> bool:
        now[0] += next(takes)
        return note_end(self, begun, error)

    monkeypatch.setattr(saving, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(Saver, "_note_end", end_later)
    monkeypatch.setattr(Deadline, "set", lambda self, after_s: waited.append(after_s))
    async with await Store.open(url) as store, await Recorder.open(store, policy=policy) as made:
        await made.feed(START)
        for number in range(4):
            await made.flush()
            await made.feed(delta(number))
        assert [round(each * 1_000) for each in waited] == waits


async def test_a_server_that_drops_the_connection_loses_nothing(url: str) -> None:
    async with await Store.open(url) as store, await Recorder.open(store) as recorder:
        await recorder.feed(START)
        await recorder.flush()
        written = await changes(store)
        for number in range(6):
            await recorder.feed(delta(number))
            if number % 2:
                await asyncio.to_thread(break_connections, url)
            await recorder.flush()
        assert await texts(store, recorder.session_id) == [words(6)]
        assert await changes(store) >= written + 6


async def test_a_session_that_is_deleted_takes_no_text_until_it_is_back(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a recorder on another machine that is only slow, a server's users know nothing.
    monkeypatch.setattr("store.verbs.delete.refuse_while_running", lambda *_: None)
    async with await Store.open(location) as store, await Store.open(location) as other:
        recorder = await Recorder.open(store, policy=SavePolicy(save_on="turn"))
        await recorder.feed(START)
        await recorder.feed(delta(0))
        await recorder.flush()
        await other.write(delete, recorder.session_id, now=1)
        await recorder.feed(delta(1))
        for _ in range(2):
            with pytest.raises(NotFound, match=r"message msg_.* is no longer in the store"):
                await recorder.flush()
        await other.undo()
        await recorder.flush()
        assert await texts(store, recorder.session_id) == [words(2)]
        await other.write(delete, recorder.session_id, now=1)
        await recorder.feed({"type": "text-start", "id": "second"})
        with pytest.raises(NotFound, match=r"message msg_.* is no longer in the store"):
            await recorder.flush()
        await other.undo()
        await recorder.feed(delta(2))
        await recorder.flush()
        await other.write(delete, recorder.session_id, now=1)
        await recorder.feed(delta(3))
        with pytest.raises(NotFound, match="is no longer in the store"):
            await recorder.close()
        await recorder.close()
        with pytest.raises(Refused, match="is closed"):
            await recorder.flush()
        await other.undo()
        async with await Recorder.open(store, session=recorder.session_id) as again:
            await again.feed(START)
            await again.feed(delta(5))
        assert (await texts(store, recorder.session_id))[:2] == [words(3), ""]
        assert (await texts(store, recorder.session_id))[2:] == ["word 5 "]


async def test_an_answer_that_was_lost_is_not_written_twice(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await Store.open(url) as store, await Recorder.open(store) as recorder:
        await recorder.feed(START)
        await recorder.feed(delta(0))
        await recorder.flush()
        written = await changes(store)
        receive, lost = Sent.receive, list[Sent]()

        def end(self: Sent) -> bool:
            if not lost:
                # The answer is there, but nobody reads it.
                lost.append(self)
                os.read(self.descriptor, 1 << 16)
                break_connections(url)
            return receive(self)

        monkeypatch.setattr(Sent, "receive", end)
        await recorder.feed(delta(1))
        await recorder.flush()
        assert len(lost) == 1
        assert await texts(store, recorder.session_id) == [words(2)]
        assert await changes(store) == written + 1


def test_a_connection_that_ends_once_it_has_prepared_is_lost(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = asyncpg.Connection.prepare

    async def end(self: Any, *given: Any, **named: Any) -> Any:
        statement = await prepare(self, *given, **named)
        self.terminate()
        return statement

    database = open_target(url, write=True)
    try:
        monkeypatch.setattr(asyncpg.Connection, "prepare", end)
        with pytest.raises(sqlite3.Error) as caught:
            database.connection.execute("SELECT 'never asked before'")
        assert is_lost(caught.value)
    finally:
        database.close()


async def test_who_holds_the_session_is_waited_for_by_the_thread(
    url: str, sent: list[Sent]
) -> None:
    async with await Store.open(url) as store, await Recorder.open(store) as recorder:
        await recorder.feed(START)
        await recorder.feed(delta(0))
        await recorder.flush()
        other = open_target(url, write=True)
        other.connection.execute("BEGIN IMMEDIATE")
        before = len(sent)
        await recorder.feed(delta(1))
        flushing = asyncio.create_task(recorder.flush())
        async with asyncio.timeout(120):
            while len(sent) == before or not sent[-1].is_answered:
                await asyncio.sleep(0)
        assert not flushing.done()
        other.connection.execute("COMMIT")
        other.close()
        await flushing
        assert await texts(store, recorder.session_id) == [words(2)]


async def test_a_slow_answer_is_left_to_the_thread(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.engine.following._QUIET_S", 0.0)
    waited: list[Sent] = []
    wait, receive = Sent.wait, Sent.receive

    def note(self: Sent) -> None:
        waited.append(self)
        wait(self)

    monkeypatch.setattr(Sent, "wait", note)
    monkeypatch.setattr(Sent, "receive", lambda self: self in waited and receive(self))
    async with await Store.open(url) as store, await Recorder.open(store) as recorder:
        await recorder.feed(START)
        for number in range(4):
            await recorder.feed(delta(number))
            await recorder.flush()
        assert waited
        assert await texts(store, recorder.session_id) == [words(4)]


def test_a_loop_that_ends_before_the_answer(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stores: list[tuple[Store, str]] = []

    async def begin() -> None:
        store = await Store.open(url)
        recorder = await Recorder.open(store, policy=SavePolicy(save_on="turn"))
        stores.append((store, recorder.session_id))
        await recorder.feed(START)
        await recorder.feed(delta(0))
        await recorder.flush()
        await recorder.feed(delta(1))
        await recorder.flush()
        await recorder.feed(delta(2))
        flushing = asyncio.create_task(recorder.flush())
        await asyncio.sleep(0)
        assert not flushing.done()

    async def go_on() -> None:
        store, session = stores[0]
        await store.write(archive, [session], now=1)
        assert (await texts(store, session))[0] in (words(2), words(3))
        await store.close()

    asyncio.run(begin())
    asyncio.run(go_on())


@pytest.mark.parametrize("ending", ["closed", "replaced"])
async def test_a_file_that_is_no_longer_there(tmp_path: Path, ending: str) -> None:
    problems: list[str] = []
    async with await Store.open(tmp_path / "store.db", create=True) as store:
        recorder = await Recorder.open(store, problem=problems.append)
        await recorder.feed(START)
        await recorder.feed(delta(0))
        await recorder.flush()
        if ending == "replaced":
            async with store.none_open():
                data = store.path.read_bytes()
                store.path.rename(tmp_path / "old.db")
                store.path.write_bytes(data)
        else:
            await store._writer.close()  # type: ignore[union-attr]
        await recorder.feed(delta(1))
        await recorder.flush()
        assert await texts(store, recorder.session_id) == [words(2)]
        await recorder.close()
        assert not problems


async def test_a_save_that_cannot_begin_is_done_by_a_writer_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await Store.open(tmp_path / "store.db", create=True) as store:
        recorder = await Recorder.open(store, policy=SavePolicy(save_on="turn"))
        await recorder.feed(START)
        await recorder.feed(delta(0))
        assert store._writer is not None
        await store._writer.close()
        with monkeypatch.context() as late:
            # The writer was closed a moment after the look.
            late.setattr(AsyncDatabase, "can_begin", True)
            await recorder.flush()
        assert await texts(store, recorder.session_id) == [words(1)]
        await recorder.close()


async def test_calls_during_a_save_come_after_it(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "store.db", create=True) as store:
        recorder = await Recorder.open(store)
        await recorder.feed(START)
        await recorder.feed(delta(0))
        order: list[str] = []

        async def call(name: str, work: Callable[[], Any]) -> None:
            await work()
            order.append(name)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(call("flush", recorder.flush))
            tasks.create_task(call("feed", lambda: recorder.feed(delta(1))))
            tasks.create_task(call("end", lambda: recorder.feed(END)))
            tasks.create_task(call("finish", recorder.finish))
            tasks.create_task(call("close", recorder.close))
        assert order[-2:] == ["finish", "close"]
        assert await texts(store, recorder.session_id) == [words(2)]
        with pytest.raises(Refused, match="closed"):
            await recorder.flush()


@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_chunk_does_not_overtake_one_that_waits(tmp_path: Path, cancelled: bool) -> None:
    async with await Store.open(tmp_path / "store.db", create=True) as store:
        recorder = await Recorder.open(store, policy=SavePolicy(save_on="turn"))
        await recorder.feed(START)
        before = asyncio.create_task(recorder.user_message("and then?"))
        waiting = asyncio.create_task(recorder.feed(delta(0)))
        await asyncio.sleep(0)
        if cancelled:
            waiting.cancel()
        await before
        await recorder.feed(delta(1))
        assert recorder.message is not None
        assert recorder.message["parts"][0]["text"] == words(2)
        await asyncio.wait([waiting])
        await recorder.close()


async def test_what_waits_is_saved_late_by_the_thread_whatever_else_it_does(
    tmp_path: Path,
) -> None:
    async with await Store.open(tmp_path / "store.db", create=True) as store:
        session = await store.create_session("mine")
        recorder = await Recorder.open(store, policy=SavePolicy(save_buffer_ms=1))
        await recorder.feed(START)
        for number in range(400):
            await recorder.feed(delta(number))
            if number % 7 == 0:
                await asyncio.sleep(0.001)
            if number % 50 == 0:
                await store.rename(session, f"Title {number}")
                assert recorder.message == {"id": "", "role": "assistant", "parts": [
                    {"type": "text", "text": words(number + 1), "state": "streaming"}]}
            if number % 90 == 0:
                await recorder.user_message("and then?")
        found: list[str] = []
        async with asyncio.timeout(120):
            while words(400) not in found:
                found = await texts(store, recorder.session_id)
        assert found == [words(400)]  # What was said meanwhile waits.
        await recorder.close()


@pytest.mark.parametrize("ending", ["closed", "replaced", "held"])
async def test_a_late_save_that_fails_is_done_again(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.recorder.backoff.FIRST_S", 0)
    problems: list[str] = []
    async with await Store.open(tmp_path / "store.db", create=True) as store:
        await store.write(lambda db: db.connection.execute("PRAGMA busy_timeout = 0").fetchall())
        recorder = await Recorder.open(store, problem=problems.append)
        await recorder.feed(START)
        await recorder.feed(delta(0))
        other = sqlite3.connect(store.path, isolation_level=None)
        if ending == "replaced":
            store.path.rename(tmp_path / "old.db")
            other.execute("VACUUM INTO ?", (str(store.path),))
        elif ending == "held":
            other.execute("BEGIN IMMEDIATE")
        else:
            assert store._writer is not None
            await store._writer.close()
        await recorder.feed(delta(1))
        async with asyncio.timeout(120):
            while ending == "held" and not problems:
                await asyncio.sleep(0.001)
        other.close()
        async with asyncio.timeout(120):
            while await texts(store, recorder.session_id) != [words(2)]:
                await asyncio.sleep(0.001)
        assert bool(problems) == (ending == "held")
        await recorder.close()


def test_late_work_is_done_in_order_and_ends_where_the_thread_is_wanted() -> None:
    late, done = LateWork(), list[int]()
    assert late.add(lambda: done.append(1), 0.001)
    assert not late.add(lambda: done.append(2), 3600)
    thread = threading.Thread(target=late.serve)
    thread.start()
    seen = threading.Event()
    assert late.add_now(seen.set)
    assert seen.wait(120)
    late.leave()
    thread.join(120)
    assert done == [1, 2]
    assert not late.add_now(seen.set)
    assert late.add(lambda: done.append(3), 0.001)
    late.serve()
    assert done == [1, 2, 3]


def test_work_that_comes_without_end_does_not_keep_the_thread() -> None:
    late, done = LateWork(), list[int]()

    def again() -> None:
        done.append(len(done))
        late.add(again, 3600)
        if len(done) < 50:
            late.leave()

    assert late.add(again, 0.001)
    late.leave()
    late.serve()
    assert done == [0]
    assert not late.add_now(again)
    late.serve()
    assert done == [0, 1]


class Odd:
    """What a host gave that has no text at first."""

    def __init__(self) -> None:
        self.asked = 0

    def __str__(self) -> str:
        self.asked += 1
        if self.asked < 3:
            raise LookupError("no text yet")
        return "odd"


async def test_what_cannot_be_saved_late_holds_up_nothing_else(tmp_path: Path) -> None:
    loop, said = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda _, context: said.append(context.get("exception")))
    async with await Store.open(tmp_path / "store.db", create=True) as store:
        recorder = await Recorder.open(store, policy=SavePolicy(save_buffer_ms=1))
        odd = Odd()
        await recorder.feed({"type": "start", "messageId": "m"})
        await recorder.flush()
        await recorder.feed({"type": "message-metadata", "messageMetadata": {"a": 1}})
        await recorder.feed({"type": "data-odd", "data": odd})
        async with asyncio.timeout(120):
            while odd.asked < 2:
                await asyncio.sleep(0.001)
            await recorder.flush()
        assert [type(each) for each in said] == [LookupError]
        (message,) = await store.messages(recorder.session_id)
        assert message["parts"] == [{"type": "data-odd", "data": "odd"}]
        await recorder.close()


@pytest.mark.parametrize("milliseconds", [1e13, float("inf")])
async def test_what_waits_for_ever_is_saved_by_a_flush(
    tmp_path: Path, milliseconds: Any
) -> None:
    async with await Store.open(tmp_path / "store.db", create=True) as store:
        recorder = await Recorder.open(store, policy=SavePolicy(save_buffer_ms=milliseconds))
        await recorder.feed(START)
        await recorder.feed(delta(0))
        async with asyncio.timeout(120):
            await recorder.flush()
            await recorder.feed(delta(1))
            await recorder.close()
        assert await texts(store, recorder.session_id) == [words(2)]


async def test_what_a_host_was_given_stays_as_it_is(tmp_path: Path) -> None:
    odd = {"type": "of-the-future", "id": "a"}
    async with await Store.open(tmp_path / "store.db", create=True) as store:
        recorder = await Recorder.open(store)
        for chunk in (START, delta(0), odd):
            await recorder.feed(chunk)
        given = recorder.message
        assert given is not None
        held = given["parts"][1]["data"]["chunks"]
        for chunk in (delta(1), odd):
            await recorder.feed(chunk)
        await recorder.flush()
        assert given["parts"][0]["text"] == words(1)
        assert held == [odd]
        await recorder.close()


def test_a_late_save_that_fails_after_its_loop_waits_for_the_next_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[Store, Recorder]] = []
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    ended = threading.Event()

    async def leave() -> None:
        store = await Store.open(tmp_path / "store.db", create=True)
        await store.write(lambda db: db.connection.execute("PRAGMA busy_timeout = 0").fetchall())
        recorder = await Recorder.open(store)
        kept.append((store, recorder))
        take, taken = recorder._saver._take_late, threading.Event()

        def late() -> Any:
            taken.set()
            assert closed.wait(120)
            found = take()
            if found is None:
                return None
            change, end = found

            def note(error: BaseException | None) -> None:
                end(error)
                ended.set()

            return change, note

        monkeypatch.setattr(recorder._saver, "_take_late", late)
        await recorder.feed(START)
        await recorder.feed(delta(0))
        other.execute("BEGIN IMMEDIATE")
        assert await asyncio.to_thread(taken.wait, 120)

    async def go_on() -> None:
        store, recorder = kept[0]
        async with asyncio.timeout(120):
            await recorder.feed(delta(1))
            await recorder.close()
        assert await texts(store, recorder.session_id) == [words(2)]
        await store.close()

    closed = threading.Event()
    asyncio.run(leave())
    closed.set()
    assert ended.wait(120)
    other.execute("COMMIT")
    other.close()
    asyncio.run(go_on())


def hold(file: Path) -> sqlite3.Connection:
    """Return a connection that holds a store until it is closed."""
    held = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    held.execute("BEGIN IMMEDIATE")
    return held


USAGE = {"type": "message-metadata", "messageMetadata": {"usage": {
    "input": 5, "output": 0, "reasoning": 0, "cache_read": 0, "cache_write": 0}}}


@pytest.mark.parametrize("wanted", ["flush", "finish", "user_message", "close", "late"])
@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_loop_that_ends_while_a_save_waits_for_others(
    tmp_path: Path, wanted: str, is_cancelled: bool
) -> None:
    file = tmp_path / "store.db"
    kept: list[tuple[Store, Recorder]] = []

    async def leave() -> None:
        store = await Store.open(file, create=True)
        recorder = await Recorder.open(store, policy=SavePolicy(save_buffer_ms=1))
        kept.append((store, recorder))
        await recorder.feed({"type": "start"})
        await recorder.feed(START)
        await recorder.flush()
        held.append(hold(file))
        await recorder.feed(USAGE)
        await recorder.feed(delta(0))
        calls: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "flush": recorder.flush, "finish": recorder.finish, "close": recorder.close,
            "user_message": lambda: recorder.user_message("next")}
        if wanted in calls:
            tasks.append(asyncio.ensure_future(calls[wanted]()))
        for _ in range(20):
            await asyncio.sleep(0.001)

    async def go_on() -> None:
        store, recorder = kept[0]
        async with asyncio.timeout(120):
            await recorder.feed(delta(1))
            await recorder.flush()
            await recorder.feed({"type": "finish"})
            await recorder.close()
        assert (await texts(store, recorder.session_id))[0] == words(2)
        assert (await store.session(recorder.session_id)).usage.input == 5
        await store.close()

    held: list[sqlite3.Connection] = []
    tasks: list[asyncio.Future[Any]] = []
    if is_cancelled:
        asyncio.run(leave())
    else:
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)  # That a task was left is what is tried.
        loop.run_until_complete(leave())
        loop.close()
    release = threading.Timer(0.05, held[0].close)
    release.start()
    asyncio.run(go_on())
    release.join()


async def test_a_recorder_at_work_in_another_loop_is_refused(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "store.db", create=True) as store:
        recorder = await Recorder.open(store, policy=SavePolicy(save_on="turn"))
        await recorder.feed(START)
        await recorder.feed(delta(0))
        held = hold(store.path)
        finishing = asyncio.create_task(recorder.finish())
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="another event loop"):
            await asyncio.to_thread(lambda: asyncio.run(recorder.feed(delta(1))))
        held.close()
        await finishing
        # Between two calls, another loop may go on.
        await asyncio.to_thread(lambda: asyncio.run(recorder.feed(START)))
        await recorder.feed(delta(1))
        await recorder.close()
        assert await texts(store, recorder.session_id) == ["word 0 ", "word 1 "]
