"""A program that was stopped goes on, and ends when it is told to."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.tui.stores import put, some
from tests.tui.terminals import on_a_terminal

TAKES_TERMINAL = b"\x1b[?1049h"


@pytest.mark.parametrize("stop", [signal.SIGSTOP, signal.SIGTSTP], ids=["by others", "by itself"])
@pytest.mark.one_in(2)
def test_it_goes_on_after_each_stop(tmp_path: Path, stop: signal.Signals) -> None:
    path = put(tmp_path / "s.db", some(3))
    command = [sys.executable, "-m", "tui", "--store", str(path)]
    with on_a_terminal(command, os.environ, (120, 40)) as terminal:
        terminal.wait_for(b" keys")
        for _ in range(3):
            os.kill(terminal.child, stop)
            _, status = os.waitpid(terminal.child, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            terminal.received = b""
            os.kill(terminal.child, signal.SIGCONT)
            terminal.wait_for(TAKES_TERMINAL)
            terminal.wait_for(b" keys")
        # Nobody else takes keys from the terminal, and nothing keeps the program from ending.
        terminal.send(b"d")
        terminal.wait_for(b" tabs")
        terminal.send(b"\x11")
        terminal.wait_for_end()
