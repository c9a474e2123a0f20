"""What every pane has: keys that run declared commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from inspect import isawaitable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.worker import Worker, WorkerState

from tui.commands.declaration import Command, Scope
from tui.commands.registry import BY_ID
from tui.messages import ProblemOccurred

if TYPE_CHECKING:
    from textual.app import App


GOES_ON_AFTER_S = 1.0
_slow: set[asyncio.Future[None]] = set()
"""What goes on while other keys are looked at; the loop itself keeps no task alive."""


class CommandPane:
    """Mixin for a widget or screen that owns the commands of one scope.

    The owner sets ``SCOPE`` and ``BINDINGS = bindings(SCOPE)`` and has a method
    ``do_<verb>`` for each command; it may be a coroutine.
    """

    SCOPE: ClassVar[Scope]

    async def action_command(self, command_id: str) -> None:
        """Run a command of this pane, or say why it cannot be run now."""
        await self.run_command(BY_ID[command_id])

    async def catch_up(self, command: Command) -> None:
        """Wait for what earlier keys began and this command acts on; a pane says what it is."""

    async def run_command(self, command: Command) -> None:
        """Run a command that this pane owns, or toast why it cannot be run now."""
        await self.catch_up(command)
        reason = command.available(self)
        if reason is not None:
            app = cast("App[None]", self.app)  # type: ignore[attr-defined]
            app.notify(reason, severity="warning", markup=False)
            return
        result = getattr(self, command.method)()
        if isawaitable(result):
            await self._finished(result)

    async def _finished(self, work: Awaitable[None]) -> None:
        """Wait for what a command began, but not for long.

        The next key waits for it, so that it finds what this one did; so does the screen,
        which is to show what is waited for where a store is not free.
        """
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task}, timeout=GOES_ON_AFTER_S)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.done():
            task.result()
        else:
            _slow.add(task)
            task.add_done_callback(self._slow_ended)

    def _slow_ended(self, task: asyncio.Future[None]) -> None:
        """Tell of a slow command that failed."""
        _slow.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            problem = ProblemOccurred("Something failed in the background", error)
            self.post_message(problem)  # type: ignore[attr-defined]

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Tell of a worker that failed; nothing that fails vanishes."""
        if event.state is WorkerState.ERROR:
            problem = ProblemOccurred("Something failed in the background", event.worker.error)
            self.post_message(problem)  # type: ignore[attr-defined]
