"""A program on a pseudoterminal, with the time at which each of its bytes arrived.

It answers as a terminal that knows synchronised output does, so each frame ends with a mark.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from store.system.locations import cache_dir
from store.system.readable import readable

FRAME_END = b"\x1b[?2026l"
_NOT_TAKEN = (
    "XDG_", "TEXTUAL", "BACKSCROLL", "NO_COLOR", "TMUX", "PYTHONDONTWRITEBYTECODE",
    "PYTHONPROFILEIMPORTTIME", "PYTHONOPTIMIZE", "PYTHONASYNCIODEBUG", "PYTHONDEVMODE",
)  # fmt: skip
_ANSWERS = {b"\x1b[?2026$p": b"\x1b[?2026;2$y", b"\x1b[?2048$p": b"\x1b[?2048;0$y"}
COLUMNS, LINES = 120, 40
PATIENCE_S = 120.0


class Terminal:
    """Runs a command on a pty, of 120x40 unless told otherwise, and keeps what it writes.

    Attributes:
        started: When the process was asked for, on ``time.perf_counter``'s clock.
        frames: How many frames are whole.
        log: Chunks in the order in which they arrived, with their time.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, columns: int = COLUMNS,
        lines: int = LINES,
    ) -> None:
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._master = master
        self.log: list[tuple[float, bytes]] = []
        self.frames = 0
        self._cut_off = b""
        self._fresh = bytearray()
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=dict(environment),
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process and the terminal."""
        self.process.terminate()
        try:
            deadline = time.perf_counter() + 5
            while self.process.poll() is None and time.perf_counter() < deadline:
                self.pump(0.02)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            os.close(self._master)

    @property
    def received(self) -> int:
        """How many bytes have arrived."""
        return sum(len(data) for _, data in self.log)

    def pump(self, seconds: float) -> bool:
        """Read one chunk, waiting so long for it; say whether there was one."""
        if not readable([self._master], seconds):
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:
            data = b""
        if not data:
            time.sleep(0.001)
            return False
        self.log.append((time.perf_counter(), data))
        # A mark or a question may come in two pieces.
        marked = self._cut_off + data
        self.frames += marked[-len(data) - len(FRAME_END) + 1:].count(FRAME_END)
        self._cut_off = marked[-max(map(len, _ANSWERS)) + 1:]
        self._fresh += data
        for question, answer in _ANSWERS.items():
            if question in marked:
                os.write(self._master, answer)
        return True

    def rest(self, seconds: float) -> None:
        """Read on for so long."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.pump(left)

    def quiet(self, seconds: float = 0.3) -> None:
        """Read on until nothing has come for so long."""
        deadline = time.perf_counter() + PATIENCE_S
        while self.pump(seconds) and time.perf_counter() < deadline:
            pass

    def send(self, keys: bytes) -> float:
        """Press keys; returns when. What arrives from now on is looked through by ``until``."""
        while self.pump(0):
            pass
        self._fresh.clear()
        pressed = time.perf_counter()
        os.write(self._master, keys)
        return pressed

    def until(self, needle: bytes, *, frame: bool = False) -> float:
        """Return when a text had arrived that came since the last keys.

        Args:
            needle: The text, drawn in one style.
            frame: Wait for the end of the frame that holds it.
        """
        def seen() -> bool:
            at = self._fresh.find(needle)
            return at >= 0 and (not frame or self._fresh.find(FRAME_END, at) >= 0)

        return self._until(seen, repr(needle))

    def until_match(self, pattern: re.Pattern[bytes]) -> float:
        """Return when the frame was whole that holds what a pattern finds, since the last keys."""
        def seen() -> bool:
            found = pattern.search(self._fresh)
            return found is not None and self._fresh.find(FRAME_END, found.end()) >= 0

        return self._until(seen, repr(pattern.pattern))

    def _until(self, seen: Callable[[], bool], what: str) -> float:
        deadline = time.perf_counter() + PATIENCE_S
        while not seen():
            if not self.pump(0.05) and (
                self.process.poll() is not None or time.perf_counter() > deadline
            ):
                tail = bytes(self._fresh[-600:])
                raise RuntimeError(f"{what} did not come to the screen; last were {tail!r}")
        return self.log[-1][0]

    def until_frame(self) -> float:
        """Return when the first frame since the last keys was whole."""
        return self._until(lambda: FRAME_END in self._fresh, "a frame")


@contextlib.contextmanager
def clean_environment(*, poll_ms: int | None = None) -> Iterator[dict[str, str]]:
    """Give an environment whose config, state and cache folders are new and empty.

    Modules are compiled once and kept, whatever the shell says: an installed program has its
    bytecode, and a floor that had it beside an app that had not would measure the compiler.
    """
    bytecode = cache_dir() / "bench" / "bytecode"
    with tempfile.TemporaryDirectory() as folder:
        kept = {
            name: value for name, value in os.environ.items()
            if not name.startswith(_NOT_TAKEN)
        }  # fmt: skip
        places = {f"XDG_{name}_HOME": folder for name in ("CONFIG", "STATE", "CACHE", "DATA")}
        if poll_ms is not None:
            config = Path(folder) / "backscroll" / "config.toml"
            config.parent.mkdir()
            config.write_text(f"[live]\npoll_ms = {poll_ms}\n")
        yield kept | places | {
            "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8",
            "PYTHONPYCACHEPREFIX": str(bytecode),
        }  # fmt: skip
