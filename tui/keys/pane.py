"""What every pane has: keys that run declared commands."""

from __future__ import annotations

from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.worker import Worker, WorkerState

from tui.keys.declaration import AnyCommand, Scope
from tui.keys.queue import enqueue
from tui.keys.registry import BY_ID
from tui.messages import ProblemOccurred

if TYPE_CHECKING:
    from textual.app import App
    from textual.widget import Widget


class CommandPane:
    """Mixin for a widget or screen that owns the commands of one scope.

    The owner sets ``SCOPE`` and ``BINDINGS = bindings(SCOPE)`` and has a method
    ``do_<verb>`` for each command; it may be a coroutine.
    """

    SCOPE: ClassVar[Scope]

    def action_command(self, command_id: str) -> None:
        """Run a command of this pane after the current input."""
        self.request_command(command_id)

    def request_command(self, command_id: str) -> None:
        """Run a command after the current input: for the mouse, the palette and bindings."""
        enqueue(cast("Widget", self), partial(self.run_command, BY_ID[command_id]))

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
        run = command.run
        result = getattr(self, command.method)() if run is None else run(self)
        if isawaitable(result):
            await result

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Report a worker that failed."""
        if event.state is WorkerState.ERROR:
            self._failed(event.worker.error)

    def _failed(self, error: BaseException | None) -> None:
        problem = ProblemOccurred("Something failed in the background", error)
        self.post_message(problem)  # type: ignore[attr-defined]
