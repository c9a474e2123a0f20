"""A child process on a pty of its own, whose bytes are read as a terminal would."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic

DEADLINE = 120.0
"""Seconds after which a child that writes nothing wanted has failed."""


class Terminal:
    """The terminal's side of the pty."""

    def __init__(self, handle: int, child: int, *, frames: bool = False) -> None:
        self._handle, self.child, self._frames = handle, child, frames
        self.received = b""

    @property
    def handle(self) -> int:
        """The descriptor of the terminal's side."""
        return self._handle

    def exit_code(self) -> int:
        """Read until the child has ended; return its exit code, minus a signal's number."""
        self.wait_for_end()
        status = os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])
        self.child = 0
        return status

    def wait_for(self, wanted: bytes) -> bytes:
        """Read until some bytes came; return all that came so far."""
        end = monotonic() + DEADLINE
        while wanted not in self.received:
            if not self._read(end, wanted):
                raise AssertionError(f"ended before {wanted!r}; got {self.received[-400:]!r}")
        return self.received

    def wait_for_end(self) -> None:
        """Read until the child has ended."""
        end = monotonic() + DEADLINE
        while self._read(end, "its end"):
            pass

    def _read(self, end: float, wanted: object) -> bytes:
        """Read once; nothing is left where the child has ended."""
        watched = select.poll()
        watched.register(self._handle, select.POLLIN)
        if not watched.poll(max(0.0, end - monotonic()) * 1000):
            raise AssertionError(f"{wanted!r} did not come; got {self.received[-400:]!r}")
        try:
            chunk = os.read(self._handle, 65536)
        except OSError:
            chunk = b""
        self.received += chunk
        if self._frames and chunk:
            os.write(self._handle, b"\x1b[?2026;2$y" * chunk.count(b"\x1b[?2026$p"))
        return chunk

    def send(self, keys: bytes) -> None:
        """Type something."""
        os.write(self._handle, keys)


@contextmanager
def on_a_terminal(
    command: Sequence[str], environment: Mapping[str, str], size: tuple[int, int] = (80, 24), *,
    frames: bool = False,
) -> Iterator[Terminal]:
    """Run a command on a new pty; ``frames`` says that it draws each frame at once."""
    columns, rows = size
    child, handle = pty.fork()
    if child == 0:
        # Set before the program starts, which may look at it but once.
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.execvpe(command[0], list(command), dict(environment))
    terminal = Terminal(handle, child, frames=frames)
    try:
        yield terminal
    finally:
        if terminal.child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(handle)
