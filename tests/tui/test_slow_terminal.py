"""The browser on a terminal that takes its bytes slowly: the newest screen, and no backlog."""

from __future__ import annotations

import os
import select
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pyte
import pytest

from tests.tui.stores import put, some
from tests.tui.terminals import Terminal, on_a_terminal
from tui.terminal.output import MOST_AHEAD

QUESTION, ANSWER = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
SIZE = 120, 40
DOWN, PAGE_DOWN, REDRAW, QUIT = b"\x1b[B", b"\x1b[6~", b"\x0c", b"\x11"
HELD = 60
STEP_BYTES, KEY_BYTES = 2_000, 20_000
BYTES_OF_A_READ = 400
IDLE_MS = 300
SCREEN_BYTES = 12_000
"""More than any screen of the browser takes at this size."""


class SlowTerminal:
    """Draws what it reads in small pieces, and answers the question that is asked behind it."""

    def __init__(
        self, terminal: Terminal, size: tuple[int, int] = SIZE, reads: int = BYTES_OF_A_READ
    ) -> None:
        self._terminal, self._reads, self._answered = terminal, reads, 0
        self.screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self.screen)
        self.got = b""
        self.answers = True

    def read(self) -> bytes:
        """Read and draw a little."""
        try:
            piece = os.read(self._terminal.handle, self._reads)
        except OSError:
            return b""
        self.got += piece
        self._stream.feed(piece)
        while self.answers and self.got.count(QUESTION) > self._answered:
            self._answered += 1
            self._terminal.send(ANSWER)
        return piece

    def read_until(self, words: str, *, there: bool = True) -> int:
        """Read until words are on the screen, or no longer; return how many bytes that took."""
        before = len(self.got)
        while any(words in row for row in self.screen.display) is not there:
            assert self.read(), "it ended"
        return len(self.got) - before

    def read_rest(self) -> None:
        """Read what comes before the next key: the end of a screen, figures that come later."""
        watched = select.poll()
        watched.register(self._terminal.handle, select.POLLIN)
        while watched.poll(IDLE_MS) and self.read():
            pass


def browser(
    tmp_path: Path, sessions: int, size: tuple[int, int] = SIZE
) -> AbstractContextManager[Terminal]:
    path = put(tmp_path / "s.db", some(sessions))
    command = [sys.executable, "-m", "tui", "--store", str(path)]
    environment = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm-256color"}
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        environment[f"XDG_{name}_HOME"] = str(tmp_path / name)
    return on_a_terminal(command, environment, size)


@pytest.mark.long
def test_keys_that_are_held_are_all_heeded_and_the_last_is_seen(tmp_path: Path) -> None:
    with browser(tmp_path, 3 * HELD) as terminal:
        slow = SlowTerminal(terminal)
        slow.read_until(" keys")
        terminal.send(DOWN * (HELD - 1))
        assert slow.read_until(f"▌○ Session {3 * (HELD - 1)} ") < STEP_BYTES * HELD
        slow.screen.reset()  # As if another program had cleared it.
        terminal.send(REDRAW)
        assert slow.read_until(" keys") < SCREEN_BYTES


@pytest.mark.parametrize("size", [SIZE, pytest.param((500, 150), marks=pytest.mark.long)])
def test_every_key_is_answered_within_a_second_at_20_kB_a_second(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    with browser(tmp_path, 3 * HELD, size) as terminal:
        slow = SlowTerminal(terminal, size, reads=4_000)
        slow.read_until(" keys")
        for key, words, there in (
            (DOWN, "▌○ Session 3 ", True), (b"?", "Keys: Sessions", True),
            (b"\x1b", "Keys: Sessions", False), (b"S", "backscroll  search", True),
            (b"\x1b", "backscroll  search", False), (DOWN, "▌○ Session 6 ", True),
        ):
            terminal.send(key)
            assert slow.read_until(words, there=there) < KEY_BYTES, (key, words)
            slow.read_rest()


@pytest.mark.long
def test_it_ends_though_nothing_is_answered_and_leaves_no_backlog(tmp_path: Path) -> None:
    with browser(tmp_path, 3 * HELD) as terminal:
        slow = SlowTerminal(terminal)
        slow.read_until(" keys")
        before = len(slow.got)
        terminal.send(DOWN * HELD + PAGE_DOWN * HELD + QUIT)
        slow.answers = False
        while slow.read():
            pass
        rest = slow.got[before:]
        assert len(rest) < MOST_AHEAD + 2 * SCREEN_BYTES and b"\x1b[?1049l" in rest
        assert terminal.exit_code() == 0


@pytest.mark.fault
@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.one_in(2)
def test_it_ends_and_gives_the_terminal_back_though_nobody_reads(
    tmp_path: Path, answers: bool
) -> None:
    with browser(tmp_path, 3 * HELD) as terminal:
        slow = SlowTerminal(terminal)
        slow.answers = answers
        slow.read_until(" keys")
        terminal.send((DOWN + PAGE_DOWN) * HELD + QUIT)
        assert os.waitstatus_to_exitcode(os.waitpid(terminal.child, 0)[1]) == 0
        terminal.child = 0
        terminal.wait_for_end()
        assert b"\x1b[?1049l" in terminal.received and b"\x1b[?25h" in terminal.received
