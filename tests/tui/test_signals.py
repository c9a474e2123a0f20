"""A signal that ends the browser gives the terminal back, and the place is kept."""

from __future__ import annotations

import os
import re
import signal
import sys
import termios
from pathlib import Path

import pytest

from tests.tui.stores import put, some
from tests.tui.terminals import on_a_terminal
from tui.state.view_state import load_state, state_path

MODES = re.compile(rb"\x1b\[\?(\d+)([hl])")
AT_REST = {b"25": b"h", b"7": b"h"}
"""Modes that are set on a terminal at rest; all others are not."""
ENDS = [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT]
BUSY = (
    "import sys, time, tui.start.hangup, tui.app; tui.start.hangup.GRACE_S = 0.2\n"
    "tui.app.BackscrollApp.action_help_quit = lambda self: (self.bell(), time.sleep(600))\n"
    "from tui.__main__ import main; sys.exit(main(sys.argv[1:]))"
)


def at_rest(received: bytes) -> bool:
    last = {mode: way for mode, way in MODES.findall(received)}
    return {mode: way for mode, way in last.items() if way == b"h"} == AT_REST


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.parametrize("number", ENDS, ids=lambda number: number.name)
@pytest.mark.one_in(2)
def test_the_terminal_is_given_back_and_the_place_kept(
    tmp_path: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    path = put(tmp_path / "s.db", some(9))
    command = [sys.executable, "-m", "tui", "--store", str(path)]
    with on_a_terminal(command, environment) as terminal:
        before = termios.tcgetattr(terminal.handle)
        terminal.wait_for(b" keys")
        terminal.send(b"d")
        terminal.wait_for(b" tabs")
        terminal.send(b"\x1b[27us")
        terminal.wait_for(b"created")
        os.kill(terminal.child, number)
        assert terminal.exit_code() == 128 + number
        assert at_rest(terminal.received) and b"\x1b[<u" in terminal.received
        assert b"Traceback" not in terminal.received
        assert termios.tcgetattr(terminal.handle) == before
    assert load_state(state_path(path)).sort == "created"


def test_one_that_is_busy_is_ended_all_the_same(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    path = put(tmp_path / "s.db", some(3))
    command = [sys.executable, "-c", BUSY, "--store", str(path)]
    with on_a_terminal(command, environment) as terminal:
        before = termios.tcgetattr(terminal.handle)
        terminal.wait_for(b" keys")
        terminal.send(b"\x03")
        terminal.wait_for(b"\a")
        os.kill(terminal.child, signal.SIGTERM)
        assert terminal.exit_code() == 128 + signal.SIGTERM
        assert at_rest(terminal.received) and b"\x1b[<u" in terminal.received
        assert termios.tcgetattr(terminal.handle) == before
    assert state_path(path).exists()
