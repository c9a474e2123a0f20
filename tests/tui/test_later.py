"""Calls after a pause, which come also where the pause is over before anything looks at it."""

from __future__ import annotations

import asyncio

from textual.app import App

from tui.kit.later import Later


async def test_a_call_after_the_shortest_pause_comes() -> None:
    """A timer of Textual that is due before its task begins is skipped, here half of them."""
    app: App[None] = App()
    async with app.run_test():
        called = list[int]()
        for number in range(200):
            Later(app, 1e-7, lambda number=number: called.append(number))  # type: ignore[misc]
        Later(app, 0.001, lambda: called.append(-1)).stop()
        last = asyncio.Event()
        Later(app, 0.01, last.set)
        await last.wait()
        assert called == list(range(200))
