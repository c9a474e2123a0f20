"""Ends the browser in order on a signal, or when its terminal goes away.

SIGTERM, SIGHUP, SIGQUIT and SIGINT save the place and give the terminal back, as the key
that quits does. Where that does not come about in time, as in a program that is busy or has
handed its terminal to another one, the terminal is restored from here.

A terminal that closes tells the session of processes that it controls. A program in a
session of its own (``setsid``, ``runuser``, some containers), or one that ignores the signal,
hears nothing: it would read an ended input for ever. So the terminal is watched, too.

This is imported before the picture of the last screen is shown. ``signal`` would take longer than
all else until then, for the names that it gives to numbers, so what it is made of is taken.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    import signal
    from typing import NoReturn, Protocol

    class Ends(Protocol):
        """The app, as far as it is ended from here.

        Attributes:
            loop: Its event loop once that runs, else None.
        """

        loop: asyncio.AbstractEventLoop | None

        def leave(self, code: int) -> None:
            """Save the place and end with an exit code; called on the loop."""
            ...

        def save_place(self) -> None:
            """Save the place."""
            ...
else:
    import _signal as signal

EXIT_CODE = 128 + signal.SIGHUP if hasattr(signal, "SIGHUP") else 1
"""What a shell reports of a program that a hangup ended."""
GRACE_S = 5.0
"""Seconds that saving and closing may take; a second signal ends it at once."""
SIGNALS = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT")

RESTORE = (
    "\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
    "\x1b[?1016l\x1b[<u\x1b[0m\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
"""Undoes every mode that Textual's driver sets."""


def end_in_order(descriptor: int) -> Watch:
    """Heed signals from now on, and the terminal's end from ``start`` on; for the main thread.

    A signal that the program was started to ignore stays ignored.

    Args:
        descriptor: Of the terminal.

    Returns:
        What watches; give it the app once that is made.
    """
    reader, writer = os.pipe()
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    watch = Watch(descriptor, reader, frozenset(numbers))
    if os.name == "nt":
        return watch
    os.set_blocking(writer, False)
    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, watch.heard)
    # The number of each signal arrives in the pipe even while the main thread is busy.
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return watch


class Watch:
    """What the watching thread does.

    Attributes:
        descriptor: Of the terminal.
        modes: Those that the terminal had at first; None where it has none.
        app: None until it is made.
        restores: Whether the terminal is to be restored also where the app does not run yet.
    """

    def __init__(self, descriptor: int, reader: int, numbers: frozenset[int]) -> None:
        """Watch a terminal and a pipe.

        Args:
            descriptor: Of the terminal.
            reader: The end of the pipe that signals arrive in.
            numbers: The signals that end the program.
        """
        self.descriptor, self._reader, self._numbers = descriptor, reader, numbers
        self.modes = _terminal_modes(descriptor)
        self.app: Ends | None = None
        self.restores = self._is_started = False

    def heard(self, number: int, frame: object) -> None:
        """Take the place of a signal's default action: the thread acts, once there is one.

        Before, the main thread may wait for a terminal that takes no picture.
        """
        if not self._is_started:
            self._end_now(128 + number)

    def start(self) -> None:
        """Watch from now on, on a thread."""
        import threading  # The first frame does not wait for it.

        if os.name != "nt":
            self._is_started = True
            threading.Thread(target=self._run, name="hangup", daemon=True).start()

    def _run(self) -> None:
        """Wait for the end, and see to it."""
        import contextlib

        code = self._wait(None)
        app = self.app
        loop = app.loop if app is not None else None
        if code is None or app is None or loop is None:
            self._end_now(code or EXIT_CODE)
        with contextlib.suppress(RuntimeError):
            # A loop that is closed is about to end by itself.
            loop.call_soon_threadsafe(app.leave, code)
        self._wait(GRACE_S)
        with contextlib.suppress(Exception):
            # The main thread does not come to it; what it would save is better than nothing.
            app.save_place()
        self.restore()
        os._exit(code)

    def _end_now(self, code: int) -> NoReturn:
        """End where there is nothing to save yet."""
        if self.restores:
            self.restore()
        os._exit(code)

    def _wait(self, seconds: float | None) -> int | None:
        """Wait for the end that is asked for; return the exit code, None where time was up."""
        import select

        watched = select.poll()
        watched.register(self._reader, select.POLLIN)
        if seconds is None:
            # A hangup is reported whatever was asked for.
            watched.register(self.descriptor, 0)
        while True:
            ready = watched.poll(None if seconds is None else seconds * 1000)
            if not ready:
                return None
            for descriptor, events in ready:
                if descriptor == self.descriptor and events & (select.POLLHUP | select.POLLERR):
                    return EXIT_CODE
                if descriptor == self._reader:
                    for number in os.read(self._reader, 64):
                        if number in self._numbers:
                            return 128 + number

    def restore(self) -> None:
        """Give the terminal back; what one that nobody reads has not taken is dropped for it."""
        import contextlib
        import termios

        with contextlib.suppress(OSError, termios.error):
            os.set_blocking(self.descriptor, False)
            try:
                os.write(self.descriptor, RESTORE.encode())
            except BlockingIOError:
                termios.tcflush(self.descriptor, termios.TCOFLUSH)
                os.write(self.descriptor, RESTORE.encode())
        with contextlib.suppress(OSError):
            os.set_blocking(self.descriptor, True)
        if self.modes is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.descriptor, termios.TCSANOW, self.modes)


def _terminal_modes(descriptor: int) -> list[int | list[bytes | int]] | None:
    import termios

    try:
        return termios.tcgetattr(descriptor)
    except termios.error:
        return None
