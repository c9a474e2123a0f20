"""`y` in the whole browser: inside tmux, over ssh and at a desktop, each in a real terminal."""

from __future__ import annotations

import base64
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.seeded import Said, make_store, text, tool
from tests.tui.terminals import Terminal, on_a_terminal

COMMAND = "pytest -q tests/sync"
SAID = [
    Said("user", [text("Run the tests")]),
    Said("assistant", [tool("Bash", {"command": COMMAND, "description": "Tests"}, "3 passed")]),
]
DROPPED = ("TMUX", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY", "STY",
           "VTE_VERSION", "TERM_PROGRAM", "NO_COLOR")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    found = {name: value for name, value in os.environ.items() if name not in DROPPED}
    folders = {f"XDG_{name}_HOME": str(tmp_path / name) for name in (
        "CONFIG", "DATA", "STATE", "CACHE")}
    (tmp_path / "tmp").mkdir()
    return {**found, **folders, "HOME": str(tmp_path), "TERM": "xterm-256color",
            "LANG": "C.UTF-8", "TMPDIR": str(tmp_path / "tmp")}


def copy_in(terminal: Terminal) -> None:
    """Open the session, whose selected part is the call, and copy it."""
    terminal.wait_for(b"3 passed")
    terminal.send(b"\ry")


def command_for(store: Path) -> list[str]:
    return [sys.executable, "-m", "tui", str(store)]


def test_over_ssh_the_terminal_is_sent_the_command(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    store = make_store(tmp_path / "s.db", SAID)
    ssh = {**environment, "SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}
    with on_a_terminal(command_for(store), ssh, (120, 30)) as terminal:
        copy_in(terminal)
        terminal.wait_for(b"\x1b]52;c;" + base64.b64encode(COMMAND.encode()) + b"\x07")
        terminal.wait_for(b"Sent the command (20 characters)")
    assert not list((tmp_path / "tmp").glob("backscroll-copy-*"))


def test_a_terminal_without_a_clipboard_leads_to_a_private_file(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    store = make_store(tmp_path / "s.db", SAID)
    # A path without clipboard programs.
    console = {**environment, "TERM": "linux", "PATH": str(tmp_path / "bin")}
    with on_a_terminal(command_for(store), console, (120, 30)) as terminal:
        copy_in(terminal)
        terminal.wait_for(b"No clipboard here")
    assert b"\x1b]52;" not in terminal.received
    (file,) = (tmp_path / "tmp").glob("backscroll-copy-*")
    assert file.read_text() == COMMAND and stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.fixture
def server(tmp_path: Path, environment: dict[str, str]) -> Iterator[list[str]]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    base = ["tmux", "-S", str(tmp_path / "tmux.sock"), "-f", "/dev/null"]
    try:
        yield base
    finally:
        subprocess.run([*base, "kill-server"], env=environment, check=False)


def test_inside_tmux_the_command_is_in_the_buffer_and_the_outer_terminal(
    tmp_path: Path, environment: dict[str, str], server: list[str]
) -> None:
    store = make_store(tmp_path / "s.db", SAID)
    start = [*server, "new-session", *command_for(store)]
    with on_a_terminal(start, environment, (120, 30)) as terminal:
        copy_in(terminal)
        terminal.wait_for(b"tmux clipboard")
        terminal.wait_for(base64.b64encode(COMMAND.encode()))
        saved = subprocess.run(
            [*server, "save-buffer", "-"], env=environment, check=True, capture_output=True)
    assert saved.stdout.decode() == COMMAND


def test_at_a_desktop_the_clipboard_program_gets_the_command(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    store, kept = make_store(tmp_path / "s.db", SAID), tmp_path / "clipboard"
    program = tmp_path / "bin" / "xclip"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat > {kept}\n")
    program.chmod(0o755)
    desktop = {**environment, "DISPLAY": ":7", "PATH": f"{program.parent}:{os.environ['PATH']}"}
    with on_a_terminal(command_for(store), desktop, (120, 30)) as terminal:
        copy_in(terminal)
        terminal.wait_for(b"Copied the command (20 characters) to the clipboard")
    assert kept.read_text() == COMMAND
    assert b"\x1b]52;" not in terminal.received
