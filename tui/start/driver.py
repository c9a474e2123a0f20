"""Textual's driver on a terminal that shows the first frame already."""

from __future__ import annotations

from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver

from store.system.streams import ALTERNATE_SCREEN
from tui.start.early import EarlyTerminal


def driver_on(early: EarlyTerminal) -> type[Driver]:
    """Return a driver that draws over the picture, and restores the modes from before it."""

    class TakingOver(LinuxDriver):
        """Takes the terminal over once; later starts, as after a suspension, are Textual's own."""

        def start_application_mode(self) -> None:
            """Take the terminal, without a switch of screens that would clear it."""
            super().start_application_mode()  # type: ignore[no-untyped-call]
            if early.is_shown:
                self.attrs_before = early.watch.modes
                early.taken_over()

        def write(self, data: str) -> None:
            """Write to the terminal."""
            if not (early.is_shown and data == ALTERNATE_SCREEN):
                super().write(data)

    return TakingOver
