"""Textual's driver with an output that sends what changed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from textual import events
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message
from textual.messages import TerminalSupportsSynchronizedOutput

from tui.terminal.output import FRAME_END, Output

WRITTEN_AT_ONCE = 4_096
"""Bytes of a write; what is left of a frame when the program ends is not written."""
CUT_SHORT = b"\x1b[0m" + FRAME_END.encode()


def erases_in_colour(environment: Mapping[str, str]) -> bool:
    """Return whether a terminal erases with the selected colour; GNU screen does not."""
    name = environment.get("TERM", "")
    if name.startswith("screen"):
        return "TMUX" in environment
    return "STY" not in environment and name.startswith((
        "xterm", "tmux", "rxvt", "alacritty", "foot", "kitty", "wezterm", "ghostty", "konsole",
        "vte", "gnome", "st-", "iterm", "contour", "linux"))


class Sender(threading.Thread):
    """Writes to the terminal what an output gives, whenever the terminal takes it."""

    def __init__(self, output: Output, descriptor: int) -> None:
        """Make it.

        Args:
            output: Used by this thread and others, with ``changed`` held.
            descriptor: Of the terminal.
        """
        super().__init__(daemon=True, name="terminal-output")
        self.changed = threading.Condition()
        self._output, self.descriptor = output, descriptor
        self._ends = False

    def stop(self) -> None:
        """Write what is said at once, drop the rest, and end."""
        with self.changed:
            self._ends = True
            self.changed.notify()
        self.join()

    def run(self) -> None:
        """Send until ``stop``."""
        while True:
            with self.changed:
                while not (piece := self._output.next(time.monotonic())):
                    if self._ends:
                        return
                    until = self._output.waits_until()
                    self.changed.wait(None if until is None else max(0, until - time.monotonic()))
            if not self._write(piece.encode()):
                return

    def _write(self, piece: bytes) -> bool:
        """Write a piece; return whether the terminal is still there."""
        framed, start = self._output.is_on, 0
        try:
            while start < len(piece):
                if framed and not self._output.is_on:
                    os.write(self.descriptor, CUT_SHORT)
                    break
                end = start + WRITTEN_AT_ONCE
                if end < len(piece):
                    # Only whole sequences: each begins with an escape.
                    end = max(piece.rfind(b"\x1b", start + 1, end), start) or end
                start += os.write(self.descriptor, piece[start:end])
        except OSError:
            return False
        return True


class TerminalDriver(LinuxDriver):
    """Reads as Textual's driver does, and sends only what changed."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Make a driver.

        Args:
            app: Drawn on the terminal that standard error goes to.
            debug: See Textual's driver.
            mouse: Whether the mouse is heeded.
            size: See Textual's driver.
        """
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._of_app = app
        self._output = Output(erases=erases_in_colour(os.environ))
        assert sys.__stderr__ is not None
        self._sender = Sender(self._output, sys.__stderr__.fileno())

    def start_application_mode(self) -> None:
        """Take the terminal."""
        self._sender = Sender(self._output, self._sender.descriptor)
        self._sender.start()
        super().start_application_mode()  # type: ignore[no-untyped-call]
        _also_on_resize(self._resized)

    def shows(self, picture: str) -> None:
        """Take what the terminal shows before this takes it; what differs is drawn over it."""
        self._output.shows(picture, self._of_app.size)

    def write(self, data: str) -> None:
        """Take what is to be written; returns at once."""
        with self._sender.changed:
            self._output.write(data, self._of_app.size)
            self._sender.changed.notify()

    def process_message(self, message: Message) -> None:
        """Pass on what was read; answers to the output's own questions stay here."""
        if isinstance(message, TerminalSupportsSynchronizedOutput):
            with self._sender.changed:
                own = self._output.answered(time.monotonic())
                self._sender.changed.notify()
            if own:
                return
        elif isinstance(message, events.Resize):
            self._resized()
        super().process_message(message)

    def close(self) -> None:
        """Give the terminal back, after all that ``stop_application_mode`` has written."""
        super().close()
        self._sender.stop()

    def _resized(self) -> None:
        self._output.stale = True


def _also_on_resize(heed: Callable[[], None]) -> None:
    """Call something at each new size, before what is called now."""
    before = signal.getsignal(signal.SIGWINCH)

    def resized(number: int, frame: FrameType | None) -> None:
        heed()
        if callable(before):
            before(number, frame)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGWINCH, resized)
