"""A process of this program that works for a sync; the two talk in frames, on its pipes.

One that was stopped (SIGSTOP) would hold its parent, and the store's lock, for ever, so it is
killed: what it was writing is rolled back, and its parent has it done again.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable
from typing import IO

from store.sync.frames import Frame, receive, send
from store.system.children import child_environment
from store.system.processes import is_stopped
from store.system.programs import PIPE, CommandLine
from store.system.programs import start as start_program

LOOK_S = 1.0
"""How often a process is looked at; one that is found stopped twice in a row is killed."""


class Child:
    """The process, the thread that takes its frames, and the one that looks after it.

    Attributes:
        was_stopped: Whether it was killed because it was stopped.
    """

    def __init__(
        self, command: CommandLine, take: Callable[[Frame | None], None], *first: Frame
    ) -> None:
        """Start both.

        Args:
            command: What to run.
            take: Called in the thread with each frame of the process; with None once it has ended.
            first: The frames that it is sent first.

        Raises:
            OSError: No more processes may be started.
            RuntimeError: No more threads may be started.
        """
        self._process = start_program(
            command, environment=child_environment(), stdin=PIPE, stdout=PIPE, apart=True
        )
        self.was_stopped = False
        self._ended = threading.Event()
        self._listener = threading.Thread(target=self._listen, args=(take,), daemon=True)
        try:
            threading.Thread(target=self._look_after, daemon=True).start()
            self.send(*first)
            self._listener.start()
        except RuntimeError:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, *frames: Frame) -> None:
        """Send frames; that the process has ended is noticed by the end of its own."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            send(self._process.stdin, *frames)

    def close_stdin(self) -> None:
        """Close its stdin, which ends it after its running transaction."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def kill(self) -> None:
        """Kill the process; a running transaction is rolled back."""
        self._ended.set()
        self._process.kill()
        self._process.wait()
        self.close_stdin()
        if self._listener.ident is not None:
            self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _look_after(self) -> None:
        """Kill the process where it was stopped; what waits for it then goes on."""
        found = 0
        while found < 2 and not self._ended.wait(LOOK_S):
            found = found + 1 if is_stopped(self.pid) else 0
        if found == 2:
            self.was_stopped = True
            self._process.kill()

    def _listen(self, take: Callable[[Frame | None], None]) -> None:
        assert self._process.stdout is not None
        while (frame := receive(self._process.stdout)) is not None:
            take(frame)
        self._ended.set()
        take(None)


def pipes_to_parent() -> tuple[IO[bytes], IO[bytes]]:
    """Return the pipes of a process that was started as a ``Child``: to receive from, to send to.

    Whatever is printed goes to stderr from now on. Signals are ignored: the parent decides how to
    end.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    return questions, answers
