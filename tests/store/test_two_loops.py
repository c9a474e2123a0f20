"""A store that threads share, each with an event loop of its own, whichever ends first."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from store.engine import loops_lock
from store.engine.database import Database
from store.engine.loops_lock import LoopsLock
from store.errors import StoreError
from store.recorder.policy import SavePolicy
from store.recorder.recorder import Recorder
from store.store import Store

pytestmark = pytest.mark.filterwarnings(
    "error::pytest.PytestUnhandledThreadExceptionWarning")
FAR_S = 60.0


def leave(work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Run something in a loop that is closed with whatever it has begun."""
    stop(work).close()


def stop(work: Callable[[], Coroutine[Any, Any, object]]) -> asyncio.AbstractEventLoop:
    """Run something in a loop that stops with whatever it has begun, and return the loop."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # That tasks are left is what is tried.
    loop.run_until_complete(work())
    return loop


def in_thread(work: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
    """Run something in a loop of its own thread."""
    pool = ThreadPoolExecutor(1)
    found = pool.submit(lambda: asyncio.run(asyncio.wait_for(work(), FAR_S)))
    pool.shutdown(wait=False)
    return found


def opened(location: str) -> Store:
    return asyncio.run(_opened(location))


async def _opened(location: str) -> Store:
    return await Store.open(location)


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_call_behind_one_of_a_loop_that_ended_is_done(location: str, kind: str) -> None:
    store = opened(location)
    started, queued, free = threading.Event(), threading.Event(), threading.Event()

    def slow(db: Database) -> None:
        started.set()
        assert free.wait(FAR_S)

    def count(db: Database) -> int:
        (found,) = db.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()
        return int(found)

    async def begin() -> None:
        tasks.append(asyncio.ensure_future(getattr(store, kind)(slow)))
        assert await asyncio.to_thread(started.wait, FAR_S)

    async def behind() -> int:
        call = asyncio.ensure_future(getattr(store, kind)(count))
        await asyncio.sleep(0)
        queued.set()
        return int(await call)

    tasks: list[asyncio.Future[Any]] = []
    held = threading.Event()

    async def begin_and_hold() -> None:
        await begin()
        assert await asyncio.to_thread(held.wait, FAR_S)

    first = threading.Thread(target=leave, args=(begin_and_hold,))
    first.start()
    assert started.wait(FAR_S)
    second = in_thread(behind)
    assert queued.wait(FAR_S)
    held.set()
    first.join(FAR_S)
    free.set()
    assert second.result(FAR_S) == 0
    asyncio.run(store.close())
    del tasks[:]


def test_calls_of_two_loops_while_the_store_is_closed(location: str) -> None:
    for _ in range(5):
        store = opened(location)
        go = threading.Barrier(3)

        async def calls(store: Store = store, go: threading.Barrier = go) -> list[object]:
            await asyncio.to_thread(go.wait, FAR_S)
            return await asyncio.gather(
                *(call for _ in range(4) for call in (store.sessions(), store.create_session("a"))),
                return_exceptions=True)

        async def close(store: Store = store, go: threading.Barrier = go) -> None:
            await asyncio.to_thread(go.wait, FAR_S)
            await store.close()

        both = [in_thread(calls), in_thread(calls), in_thread(close)]
        for answer in [each for one in both[:2] for each in one.result(FAR_S)]:
            if isinstance(answer, BaseException):
                assert isinstance(answer, StoreError)
                assert "is closed; open it again" in str(answer)
        both[2].result(FAR_S)


def test_loops_that_end_in_the_middle_lose_nothing_of_another(location: str) -> None:
    store, stop = opened(location), threading.Event()

    async def some() -> None:
        tasks.append(asyncio.ensure_future(store.sessions()))
        tasks.append(asyncio.ensure_future(store.create_session("left")))
        await asyncio.sleep(0)
        await store.sessions()

    def come_and_go() -> None:
        while not stop.is_set():
            leave(some)

    async def work() -> list[str]:
        made = []
        for _ in range(20):
            made.append((await store.create_session("kept")).id)
            assert made[-1] in {each.id for each in await store.sessions(limit=1_000)}
        return made

    tasks: list[asyncio.Future[Any]] = []
    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        made = in_thread(work).result(FAR_S)
    finally:
        stop.set()
        other.join(FAR_S)
    assert len(set(made)) == 20
    asyncio.run(store.close())
    tasks.clear()
    gc.collect()


def delta(number: int) -> dict[str, Any]:
    return {"type": "text-delta", "id": "1", "delta": f"word {number} "}


def test_a_recorder_beside_writes_of_another_loop(location: str) -> None:
    store = opened(location)

    async def record() -> str:
        recorder = await Recorder.open(store)
        await recorder.feed({"type": "start"})
        await recorder.feed({"type": "text-start", "id": "1"})
        for number in range(40):
            await recorder.feed(delta(number))
            if number % 4 == 0:
                await recorder.flush()
        await recorder.close()
        return recorder.session_id

    async def write() -> None:
        for _ in range(40):
            await store.create_session("a")

    recorded, other = in_thread(record), in_thread(write)
    session = recorded.result(FAR_S)
    other.result(FAR_S)

    async def look() -> str:
        async with store:
            (message,) = await store.messages(session)
            return "".join(str(part["text"]) for part in message["parts"])

    assert asyncio.run(look()) == "".join(f"word {number} " for number in range(40))


def test_a_loop_that_begins_before_it_hears_that_it_was_stopped(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.engine.following._QUIET_S", FAR_S * FAR_S)

    async def record() -> str:
        async with await Store.open(url) as store:
            recorder = await Recorder.open(store, policy=SavePolicy(save_buffer_ms=0))
            await recorder.feed({"type": "start"})
            await recorder.feed({"type": "text-start", "id": "1"})
            for number in range(3):
                await recorder.flush()
                await recorder.feed(delta(number))
                # No round of this loop is between the other one's call and the next chunk.
                in_thread(lambda: store.write(lambda db: None)).result(FAR_S)
                await recorder.feed(delta(number))
            await recorder.close()
            (message,) = await store.messages(recorder.session_id)
            return "".join(str(part["text"]) for part in message["parts"])

    said = "".join(2 * f"word {number} " for number in range(3))
    assert asyncio.run(asyncio.wait_for(record(), FAR_S)) == said


async def test_who_closes_and_is_cancelled_leaves_it_closed(location: str) -> None:
    store = await Store.open(location)
    await store.create_session("a")
    threads = store._reader, store._writer
    async with store._changing.held():
        closing = asyncio.ensure_future(store.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
    assert all(each is not None and each.closed for each in threads)
    with pytest.raises(StoreError, match="is closed; open it again"):
        await store.sessions()


def test_loops_search_one_after_the_other(tmp_path: Path) -> None:
    async def fill() -> Store:
        store = await Store.open(tmp_path / "store.db", create=True)
        recorder = await Recorder.open(store)
        await recorder.user_message("the needle")
        await recorder.close()
        return store

    async def search() -> list[int]:
        return [len(await store.search("needle")) for _ in range(5)]

    store = asyncio.run(fill())
    both = [in_thread(search) for _ in range(3)]
    assert [each.result(FAR_S) for each in both] == [[2] * 5] * 3  # Its title, too.
    asyncio.run(store.close())


@pytest.mark.parametrize("ends", [True, False])
def test_a_lock_is_held_by_one_and_let_go_by_a_loop_that_ends_or_stops(
    ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops_lock, "STOPPED_S", 0.05)
    lock, inside = LoopsLock(), list[int]()
    entered, go = threading.Event(), threading.Event()

    async def hold_for_good() -> None:
        async def hold() -> None:
            async with lock.held():
                entered.set()
                await asyncio.Event().wait()

        kept.append(asyncio.ensure_future(hold()))
        assert await asyncio.to_thread(go.wait, FAR_S)

    async def enter() -> None:
        for _ in range(50):
            async with lock.held():
                inside.append(1)
                assert inside == [1]
                await asyncio.sleep(0)
                inside.pop()

    kept: list[asyncio.Future[None]] = []
    loops = list[asyncio.AbstractEventLoop]()
    first = threading.Thread(target=lambda: loops.append(stop(hold_for_good)))
    first.start()
    assert entered.wait(FAR_S)
    others = [in_thread(enter) for _ in range(3)]
    assert lock.locked()
    go.set()
    first.join(FAR_S)
    if ends:
        loops[0].close()
    for other in others:
        other.result(FAR_S)
    assert not lock.locked()
    if not ends:
        # Who goes on later releases nothing that another one holds.
        kept[0].cancel()
        loops[0].run_until_complete(asyncio.wait(kept))
        loops[0].close()
    kept.clear()


def test_a_loop_that_runs_now_and_then_keeps_what_it_holds(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(loops_lock, "time", SimpleNamespace(monotonic=lambda: now))
    lock, loop = LoopsLock(), asyncio.new_event_loop()
    free = loop.create_future()

    async def hold() -> None:
        async with lock.held():
            await free

    holding = loop.create_task(hold())
    for _ in range(4):
        loop.run_until_complete(asyncio.sleep(0))
        assert lock.locked()
        now += loops_lock.STOPPED_S / 2
        assert lock.locked()
    now += loops_lock.STOPPED_S
    assert not lock.locked()
    free.set_result(None)
    loop.run_until_complete(holding)
    loop.close()


async def test_waiting_for_a_lock_has_a_limit() -> None:
    lock = LoopsLock()
    async with lock.held():
        with pytest.raises(TimeoutError):
            async with lock.held(within_s=0.01):
                pytest.fail("two hold it")
    async with lock.held(within_s=0.01):
        assert lock.locked()
