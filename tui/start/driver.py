"""The driver on a terminal that shows the first frame already."""

from __future__ import annotations

from textual.driver import Driver

from store.system.streams import ALTERNATE_SCREEN
from tui.start.early import EarlyTerminal
from tui.terminal.driver import TerminalDriver


def driver_on(early: EarlyTerminal) -> type[Driver]:
    """Return a driver that draws over the picture, and restores the modes from before it."""

    class TakingOver(TerminalDriver):
        """Takes the terminal over once; later starts, as after a suspension, draw it anew."""

        def start_application_mode(self) -> None:
            """Take the terminal, without a switch of screens that would clear it."""
            if early.is_shown:
                self.shows(early.drawn)
            super().start_application_mode()
            if early.is_shown:
                self.attrs_before = early.watch.modes
                early.taken_over()

        def write(self, data: str) -> None:
            """Write to the terminal."""
            if not (early.is_shown and data == ALTERNATE_SCREEN):
                super().write(data)

    return TakingOver
