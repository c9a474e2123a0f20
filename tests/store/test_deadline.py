"""The moment at which a recorder saves what waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from store.recorder.deadline import Deadline


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times of the timers that the running loop was asked for."""
    made: list[float] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def note(delay: float, *rest: Any) -> asyncio.TimerHandle:
        made.append(delay)
        return call_later(delay, *rest)

    monkeypatch.setattr(loop, "call_later", note)
    return made


async def test_many_moments_take_one_timer(timers: list[float]) -> None:
    rung = asyncio.Event()
    deadline = Deadline(rung.set)
    for _ in range(100):
        deadline.set(3_000)
        assert deadline.at is not None
        deadline.take_back()
        assert deadline.at is None
    assert timers == [3_000]
    # An earlier one is not kept waiting by the timer of a later one.
    deadline.set(0)
    await rung.wait()
    assert timers == [3_000, 0] and deadline.at is None


async def test_a_timer_that_rings_too_early_is_set_again(timers: list[float]) -> None:
    rung = asyncio.Event()
    deadline = Deadline(rung.set)
    deadline.set(0)
    deadline.set(0.05)
    await rung.wait()
    assert len(timers) == 2 and timers[0] == 0 and 0 < timers[1] <= 0.05


async def test_nothing_is_called_for_what_was_taken_back(timers: list[float]) -> None:
    rung = list[str]()
    taken_back, ended, other = (
        Deadline(lambda: rung.append("taken back")), Deadline(lambda: rung.append("ended")),
        asyncio.Event())
    for deadline in (taken_back, ended):
        deadline.set(0)
    taken_back.take_back()
    ended.end()
    last = Deadline(other.set)
    last.set(0.01)
    await other.wait()
    assert rung == [] and (taken_back.at, ended.at) == (None, None)
    taken_back.set(0)  # Its timer has rung; another one is made.
    while not rung:
        await asyncio.sleep(0)
    assert rung == ["taken back"]


def test_the_timer_of_a_loop_that_has_ended_can_be_taken_back() -> None:
    rung = list[str]()
    deadline = Deadline(lambda: rung.append("rung"))

    async def begin() -> None:
        deadline.set(3_000)

    async def go_on() -> None:
        deadline.end()
        deadline.set(0)
        while not rung:
            await asyncio.sleep(0)

    asyncio.run(begin())
    asyncio.run(go_on())
    assert rung == ["rung"]
