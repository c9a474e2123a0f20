"""Waiting until an app has done all that follows from what was asked of it.

Textual's pilot takes a process for idle that uses little of the processor for a
millisecond, which one on a busy machine does in the middle of its work. Here an app is idle
when its loop has nothing to run, no thread works for it, and no time is close that it waits
for, as it does where it looks again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from textual import app, pilot
from textual.pilot import Pilot

from store.engine.connection_thread import ConnectionThread

QUIET_TURNS = 3
"""Turns of the loop without anything to run: what a turn reads from a pipe is run in the next."""
SOON_S = 0.01
"""A time so close is waited for."""
PATIENCE_S = 60.0
"""After this an app is taken for one that never rests."""


class _Threads:
    """What runs on threads for the loops of this process."""

    def __init__(self) -> None:
        self.work: set[asyncio.Future[Any]] = set()

    def of_this_loop(self) -> list[asyncio.Future[Any]]:
        loop = asyncio.get_running_loop()
        return [one for one in self.work if one.get_loop() is loop]

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note that the caller waits for a thread."""
        done = asyncio.get_running_loop().create_future()
        self.work.add(done)
        try:
            yield
        finally:
            self.work.discard(done)
            if not done.done():
                done.set_result(None)


_THREADS = _Threads()


async def nothing_to_run(until: float) -> None:
    """Wait until the loop has nothing to run, but no longer than to a time."""
    loop: Any = asyncio.get_running_loop()
    quiet = 0
    while quiet < QUIET_TURNS and loop.time() < until:
        await asyncio.sleep(0)
        quiet = 0 if loop._ready else quiet + 1


async def idle(min_sleep: float = 0.0, max_sleep: float = PATIENCE_S) -> None:
    """Wait until nothing is left to do; takes the place of Textual's ``wait_for_idle``."""
    loop: Any = asyncio.get_running_loop()
    until = loop.time() + PATIENCE_S
    while loop.time() < until:
        await nothing_to_run(until)
        due = [timer.when() for timer in loop._scheduled if not timer.cancelled()]
        if threads := _THREADS.of_this_loop():
            await asyncio.wait(
                threads, timeout=until - loop.time(), return_when=asyncio.FIRST_COMPLETED
            )
        elif due and min(due) < loop.time() + SOON_S:
            await asyncio.sleep(SOON_S / 10)
        else:
            return


async def _paused(self: Pilot[Any], delay: float | None = None) -> None:
    """Wait until all is done, drawn, and what drawing asks for is done."""
    await _PAUSE(self, delay)
    await idle()


async def _pressed(self: Pilot[Any], *keys: str) -> None:
    """Press keys, and wait until all that they do is done and drawn."""
    await _PRESS(self, *keys)
    await self.pause()


_PAUSE, _PRESS = Pilot.pause, Pilot.press


def _noted(work: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Return what notes that something is done on a connection's thread."""

    async def on_thread(connection: ConnectionThread, *arguments: Any) -> Any:
        with _THREADS.noted():
            return await work(connection, *arguments)

    return on_thread


def patient_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Textual's pilot wait until an app is idle."""
    run_in_executor: Callable[..., asyncio.Future[Any]]
    run_in_executor = asyncio.BaseEventLoop.run_in_executor

    def in_executor(loop: Any, *work: Any) -> asyncio.Future[Any]:
        future = run_in_executor(loop, *work)
        _THREADS.work.add(future)
        future.add_done_callback(_THREADS.work.discard)
        return future

    monkeypatch.setattr(asyncio.BaseEventLoop, "run_in_executor", in_executor)
    for name in ("start", "run", "close"):
        monkeypatch.setattr(ConnectionThread, name, _noted(getattr(ConnectionThread, name)))
    monkeypatch.setattr(app, "wait_for_idle", idle)
    monkeypatch.setattr(pilot, "wait_for_idle", idle)
    monkeypatch.setattr(Pilot, "pause", _paused)
    monkeypatch.setattr(Pilot, "press", _pressed)
