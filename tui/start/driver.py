"""The driver of the browser: on a terminal that may show a picture already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.driver import Driver

from store.system.streams import ALTERNATE_SCREEN
from tui.start.early import EarlyTerminal
from tui.terminal.driver import TerminalDriver


def driver_on(
    early: EarlyTerminal | None, made: Callable[[TerminalDriver], None]
) -> type[Driver]:
    """Return a driver that draws over the picture, and restores the modes from before it.

    Args:
        early: What shows the picture; None where there is none.
        made: Called with the driver once it is made.
    """

    class TakingOver(TerminalDriver):
        """Takes the terminal over once; later starts, as after a suspension, draw it anew."""

        def __init__(
            self, app: App[Any], *, debug: bool = False, mouse: bool = True,
            size: tuple[int, int] | None = None,
        ) -> None:
            """Make it; see ``TerminalDriver``."""
            super().__init__(app, debug=debug, mouse=mouse, size=size)
            made(self)

        def start_application_mode(self) -> None:
            """Take the terminal, without a switch of screens that would clear it.

            After a new size nobody knows what of the picture is still there, and where.
            """
            if early is not None and early.is_shown:
                self.shows(early.drawn, early.held, early.held_from)
            super().start_application_mode()
            if early is not None and early.is_shown:
                self.attrs_before = early.watch.modes
                if early.is_resized or early.size != self._of_app.size:
                    self.draw_anew()
                early.taken_over()

        def write(self, data: str) -> None:
            """Write to the terminal."""
            if not (early is not None and early.is_shown and data == ALTERNATE_SCREEN):
                super().write(data)

    return TakingOver
