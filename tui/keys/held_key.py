"""The key whose command runs: it is held until that is done, or lets it go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

_held: ContextVar[asyncio.Future[None] | None] = ContextVar("held", default=None)
_going_on: set[asyncio.Future[object]] = set()
"""Commands that go on while other keys are looked at; the loop itself keeps no task alive."""


def let_go() -> None:
    """Let the key go whose command runs: it was told what the command waits for."""
    key = _held.get()
    if key is not None and not key.done():
        key.set_result(None)


async def hold(work: Awaitable[object], failed: Callable[[BaseException], None]) -> None:
    """Wait for what a command began, or until it lets the key go.

    The next key waits for it, so that it finds what this one did; but so does the screen,
    which is to show what is waited for where a store is not free.

    Args:
        work: What the command began.
        failed: Is told of an error that came after the key was let go.
    """
    key = asyncio.get_running_loop().create_future()
    token = _held.set(key)
    task: asyncio.Future[object] = asyncio.ensure_future(work)
    _held.reset(token)
    try:
        await asyncio.wait({task, key}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if task.done():
        task.result()
        return

    def ended(done: asyncio.Future[object]) -> None:
        _going_on.discard(done)
        if not done.cancelled() and (error := done.exception()) is not None:
            failed(error)

    _going_on.add(task)
    task.add_done_callback(ended)
