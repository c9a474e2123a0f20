"""Textual's driver with an output that sends what changed."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from textual import events
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message
from textual.messages import TerminalSupportsSynchronizedOutput

from store.system.streams import erases_in_colour
from tui.terminal.cells import Cells
from tui.terminal.output import FRAME_END, Held, Output

WRITTEN_AT_ONCE = 1_024
"""Bytes of a write; what is left of a frame when the program ends is not written."""
STUCK_S = 1.0
"""A terminal that takes nothing for so long does not hold up the end of the program."""
LOOKED_AFTER_MS = 50
"""A terminal is looked at so often for room; not each tells when its buffer was emptied."""
HELD_S = 10.0
"""A picture stays for so long at most while the app draws the same."""
TAKEN_WITHIN_S = 0.05
"""After a frame it is waited so long at most until the sending thread has taken it."""
CUT_SHORT = b"\x1b[0m" + FRAME_END.encode()


class Sender(threading.Thread):
    """Writes to the terminal what an output gives, whenever the terminal takes it."""

    def __init__(self, output: Output, descriptor: int) -> None:
        """Make it.

        Args:
            output: Used by this thread and others, with ``changed`` held.
            descriptor: Of the terminal.
        """
        super().__init__(daemon=True, name="terminal-output")
        lock = threading.RLock()
        self.changed, self._taken = threading.Condition(lock), threading.Condition(lock)
        self._rests = False
        self._output, self.descriptor = output, descriptor
        self._ends = self._is_given_up = False
        self._writes = 0

    def stop(self) -> None:
        """Write what is said at once, drop the rest, and end.

        What a terminal that nobody reads has not taken is dropped, for what gives it back.
        """
        with self.changed:
            self._ends = True
            self.changed.notify()
        writes = -1
        while self.is_alive() and writes != self._writes:
            writes = self._writes
            self.join(STUCK_S)
        if self.is_alive():
            # Imported here: the module is imported where there is no such thing too.
            import termios

            with suppress(termios.error):
                termios.tcflush(self.descriptor, termios.TCOFLUSH)
            self.join(STUCK_S)
            self._is_given_up = True

    def run(self) -> None:
        """Send until ``stop``."""
        opened = _opened_anew(self.descriptor)
        try:
            while (piece := self._next()) and self._write(opened, piece.encode()):
                pass
        finally:
            os.close(opened)

    def _next(self) -> str:
        """Wait for something to send; "" where this ends."""
        with self.changed:
            while not (piece := self._output.next(time.monotonic())) and not self._ends:
                until = self._output.waits_until()
                self._rests = True
                self._taken.notify()
                self.changed.wait(None if until is None else max(0, until - time.monotonic()))
                self._rests = False
            self._taken.notify()
        return piece

    def take_now(self) -> None:
        """Have what changed taken before the caller goes on.

        It would go on for some milliseconds, until it leaves the interpreter's lock to this
        thread. Nothing is waited for while this thread waits for the terminal.
        """
        with self.changed:
            if self._rests:
                self._rests = False
                self._taken.wait(TAKEN_WITHIN_S)

    def _write(self, opened: int, piece: bytes) -> bool:
        """Write a piece; return whether the terminal is still there.

        Args:
            opened: The terminal.
            piece: What is left of it when the program ends is not written.
        """
        framed, start = self._output.is_on, 0
        room = select.poll()
        room.register(opened, select.POLLOUT)
        while start < len(piece):
            if framed and not self._output.is_on:
                framed, start, piece = False, 0, CUT_SHORT
            try:
                start += os.write(opened, piece[start:_end_of_write(piece, start)])
                self._writes += 1
            except BlockingIOError:
                room.poll(LOOKED_AFTER_MS)
            except OSError:
                return False
            if self._is_given_up:
                return False
        return True


def _end_of_write(piece: bytes, start: int) -> int:
    """Return where a write from ``start`` ends: behind whole sequences and characters."""
    end = start + WRITTEN_AT_ONCE
    if end >= len(piece):
        return len(piece)
    sequence = piece.rfind(b"\x1b", start + 1, end)
    if sequence > start:
        return sequence
    # A text as long as a wide screen has no sequence in it.
    while piece[end] & 0xC0 == 0x80:
        end -= 1
    return end


def _opened_anew(descriptor: int) -> int:
    """Return a terminal's descriptor that does not wait where it takes no more.

    Other programs that share the given one would find it changed. A terminal that does not
    control this process cannot be opened a second time, and is waited for.
    """
    try:
        os.tcgetpgrp(descriptor)
        return os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return os.dup(descriptor)


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
        _also_on_resize(self.draw_anew)

    def shows(self, picture: str, held: range = range(0), start: int = 0) -> None:
        """Take what the terminal shows before this takes it; what differs is drawn over it.

        Args:
            picture: As it was written.
            held: Where the picture stays until the app draws the same in these rows, or for
                ``HELD_S``, or until a key or ``let_go``; empty where it does not stay.
            start: The first column in which they are compared.
        """
        self._output.shows(picture, self._of_app.size)
        if held:
            self._output.hold(Held(time.monotonic() + HELD_S, held, start))

    def draw_anew(self) -> None:
        """Send everything that is drawn, as nobody knows what the terminal shows."""
        self._output.stale = True

    def hold(self) -> None:
        """Send nothing of what is drawn from now on: the program is about to end."""
        with self._sender.changed:
            self._output.hold(Held(time.monotonic() + HELD_S))

    def let_go(self) -> None:
        """Send what is drawn, whatever the picture is that stays until then."""
        with self._sender.changed:
            self._output.let_go()
            self._sender.changed.notify()

    @property
    def cells(self) -> Cells:
        """What the terminal should show."""
        return self._output.cells

    def write(self, data: str) -> None:
        """Take what is to be written; returns at once."""
        with self._sender.changed:
            self._output.write(data, self._of_app.size)
            self._sender.changed.notify()

    def flush(self) -> None:
        """Have a frame taken that is whole; Textual calls this after each."""
        self._sender.take_now()

    def process_message(self, message: Message) -> None:
        """Pass on what was read; answers to the output's own questions stay here."""
        if isinstance(message, TerminalSupportsSynchronizedOutput):
            with self._sender.changed:
                own = self._output.answered(time.monotonic())
                self._sender.changed.notify()
            if own:
                return
        elif isinstance(message, events.Resize):
            self.draw_anew()
        elif isinstance(message, events.Key | events.MouseDown | events.Paste):
            self.let_go()
        super().process_message(message)

    def close(self) -> None:
        """Give the terminal back, after all that ``stop_application_mode`` has written."""
        super().close()
        self._sender.stop()


def _also_on_resize(heed: Callable[[], None]) -> None:
    """Call something at each new size, before what is called now."""
    before = signal.getsignal(signal.SIGWINCH)

    def resized(number: int, frame: FrameType | None) -> None:
        heed()
        if callable(before):
            before(number, frame)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGWINCH, resized)
