"""What every pane, screen and dialog has: keys that run declared commands."""

from __future__ import annotations

from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.worker import Worker, WorkerState

from tui.keys.declaration import AnyCommand, Scope
from tui.keys.queue import HasQueue, Work, enqueue
from tui.keys.table import commands_of
from tui.messages import ProblemOccurred

if TYPE_CHECKING:
    from textual.app import App
    from textual.dom import DOMNode


class CommandOwner:
    """Mixin for a widget, a screen or the app that owns the commands of one scope.

    The owner sets ``SCOPE``; the app's queue finds the commands of that scope by their keys.
    """

    SCOPE: ClassVar[Scope]

    @property
    def escape_clears(self) -> bool:
        """Whether escape clears something here, which toasts do not put off."""
        return False

    def request_command(self, command_id: str) -> None:
        """Run a command after the current input: for the mouse and the palette."""
        node = cast("DOMNode", self)
        enqueue(node, partial(self.run_command, commands_of(node).by_id[command_id]))

    def work_for(self, key: str) -> Work | None:
        """Return what a key runs here; None where it is no key of this scope."""
        command = commands_of(cast("DOMNode", self)).for_key(self.SCOPE, key)
        return None if command is None else partial(self.run_command, command)

    def footer_label(self, command: AnyCommand) -> str | None:
        """Return a command's words in the footer; None where it cannot be run now."""
        return command.label if command.available(self) is None else None

    async def catch_up(self, command: AnyCommand) -> None:
        """Wait for what earlier commands began and this one acts on; a pane overrides it."""

    async def run_command(self, command: AnyCommand) -> None:
        """Run a command of this owner, or show why it cannot be run now; the queue calls it."""
        app = cast("App[None]", self.app)  # type: ignore[attr-defined]
        if command.group == "Move":
            cast("HasQueue", app).inputs.moves()
        await self.catch_up(command)
        reason = command.available(self)
        if reason is not None:
            app.notify(reason, severity="warning", markup=False)
            return
        result = command.run(self)
        if isawaitable(result):
            await result


class CommandPane(CommandOwner):
    """A pane or screen that owns commands, and reports its workers that failed."""

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Report a worker that failed."""
        if event.state is WorkerState.ERROR:
            self._failed(event.worker.error)

    def _failed(self, error: BaseException | None) -> None:
        problem = ProblemOccurred("Something failed in the background", error)
        self.post_message(problem)  # type: ignore[attr-defined]


def owners_of(focus: DOMNode) -> list[CommandOwner]:
    """Return what the keys of a focused widget go to, from the inside out."""
    return [node for node in focus.ancestors_with_self if isinstance(node, CommandOwner)]
