"""The tests' own pilot comes back when all that a key sets off is done."""

from __future__ import annotations

import asyncio
import threading

from textual.app import App

from tests.tui.idle import PATIENCE_S

HOPS = 2_000
LOOKS = 20


class Busy(App[None]):
    """Does something in many steps for each key."""

    def __init__(self) -> None:
        super().__init__()
        self.hops = 0
        self.told = ""

    def key_h(self) -> None:
        self._hop()

    def _hop(self) -> None:
        self.hops += 1
        if self.hops < HOPS:
            self.call_later(self._hop)

    async def key_t(self) -> None:
        self.run_worker(self._ask_thread())

    async def _ask_thread(self) -> None:
        """Have a thread wait for this loop, which then looks now and then for its answer."""
        go_on, answers = threading.Event(), list[str]()

        def answer() -> None:
            go_on.wait(PATIENCE_S)
            answers.append("heard")

        asking = asyncio.ensure_future(asyncio.to_thread(answer))
        for _ in range(LOOKS):
            await asyncio.sleep(0.001)
        go_on.set()
        await asking
        for _ in range(LOOKS):
            await asyncio.sleep(0.001)
        (self.told,) = answers


async def test_hops_from_message_to_message_are_waited_for() -> None:
    app = Busy()
    async with app.run_test() as pilot:
        await pilot.press("h")
        assert app.hops == HOPS


async def test_threads_and_short_rests_are_waited_for() -> None:
    app = Busy()
    async with app.run_test() as pilot:
        await pilot.press("t")
        assert app.told == "heard"
