"""Waiting for what an app does behind its screen."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from textual.app import App
from textual.worker import WorkerCancelled

from tui.keys.dispatch import CommandApp


async def inputs_done(app: App[Any]) -> None:
    """Wait until all that was typed and clicked has been run, where an app has a queue for it."""
    if isinstance(app, CommandApp):
        while app.message_queue_size:
            await asyncio.sleep(0)
        await app.inputs.drained()


async def workers_done(app: App[Any]) -> None:
    """Wait until no worker is left, those that were begun meanwhile too.

    A worker that another one of its group took the place of is done as well, which
    `WorkerManager.wait_for_complete` raises for, now and then.

    Raises:
        WorkerFailed: One of them failed.
    """
    await inputs_done(app)
    while waited := [worker for worker in app.workers if not worker.is_finished]:
        for worker in waited:
            with contextlib.suppress(WorkerCancelled):
                await worker.wait()
