"""What every pane has: keys that run declared commands."""

from __future__ import annotations

from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.worker import Worker, WorkerState

from tui.keys.declaration import AnyCommand, Scope
from tui.keys.queue import enqueue
from tui.keys.table import commands_of
from tui.messages import ProblemOccurred

if TYPE_CHECKING:
    from textual.app import App
    from textual.widget import Widget


class CommandPane:
    """Mixin for a widget or screen that owns the commands of one scope.

    The owner sets ``SCOPE``; the app's queue finds the commands of that scope by their keys.
    """

    SCOPE: ClassVar[Scope]

    def request_command(self, command_id: str) -> None:
        """Run a command after the current input: for the mouse and the palette."""
        widget = cast("Widget", self)
        enqueue(widget, partial(self.run_command, commands_of(widget).by_id[command_id]))

    async def catch_up(self, command: AnyCommand) -> None:
        """Wait for what earlier commands began and this one acts on; a pane overrides it."""

    async def run_command(self, command: AnyCommand) -> None:
        """Run a command of this pane, or show why it cannot be run now; the queue calls it."""
        await self.catch_up(command)
        reason = command.available(self)
        if reason is not None:
            app = cast("App[None]", self.app)  # type: ignore[attr-defined]
            app.notify(reason, severity="warning", markup=False)
            return
        result = command.run(self)
        if isawaitable(result):
            await result

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Report a worker that failed."""
        if event.state is WorkerState.ERROR:
            self._failed(event.worker.error)

    def _failed(self, error: BaseException | None) -> None:
        problem = ProblemOccurred("Something failed in the background", error)
        self.post_message(problem)  # type: ignore[attr-defined]
