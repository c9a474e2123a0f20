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

from tests.tui.terminals import on_a_terminal
from tui.kit.clipboard import MOST_OSC52, Clipboard

SSH = {"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}


class Ways:
    """Stands for the terminal and the desktop."""

    def __init__(self, folder: Path, environment: dict[str, str], works: bool = True) -> None:
        self.terminal: list[str] = []
        self.desktop: list[str] = []
        self.works = works
        path = {"PATH": os.environ["PATH"]}
        self.clipboard = Clipboard(
            self.terminal.append, {**path, **environment}, self.copy, folder
        )

    def copy(self, text: str) -> None:
        if not self.works:
            raise RuntimeError("no clipboard program")
        self.desktop.append(text)


def test_over_ssh_the_terminal_gets_it(tmp_path: Path) -> None:
    ways = Ways(tmp_path, SSH)
    copied = ways.clipboard.copy("hello")
    assert ways.terminal == ["hello"] and ways.desktop == []
    assert copied.message == "sent 5 characters to the terminal's clipboard (OSC 52)"


def test_at_home_the_desktop_gets_it(tmp_path: Path) -> None:
    ways = Ways(tmp_path, {"DISPLAY": ":0"})
    copied = ways.clipboard.copy("x")
    assert ways.desktop == ["x"] and ways.terminal == []
    assert (copied.way, copied.message) == ("system", "copied 1 character to the clipboard")


def test_over_ssh_with_a_forwarded_display_the_desktop_gets_it(tmp_path: Path) -> None:
    ways = Ways(tmp_path, {**SSH, "DISPLAY": "localhost:10.0"})
    assert ways.clipboard.copy("x").way == "system"


def test_without_a_clipboard_program_the_terminal_gets_it_and_no_file_is_written(
    tmp_path: Path,
) -> None:
    ways = Ways(tmp_path, {"TERM": "xterm-256color"}, works=False)
    copied = ways.clipboard.copy("äöü", "the command")
    assert copied.way == "terminal" and ways.terminal == ["äöü"]
    assert copied.message == (
        "sent the command (3 characters) to the terminal's clipboard (OSC 52)")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("environment", [
    {"TERM": "linux"}, {"TERM": "dumb"}, {"TERM": "screen", "STY": "1.pts"},
    {"TERM": "xterm-256color", "VTE_VERSION": "7600"},
    {"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"},
])
def test_without_any_clipboard_a_private_file_holds_it(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    ways = Ways(tmp_path, environment, works=False)
    copied = ways.clipboard.copy("äöü")
    assert copied.way == "file" and copied.path is not None
    assert copied.path.read_text() == "äöü"
    assert stat.S_IMODE(copied.path.stat().st_mode) == 0o600
    assert str(copied.path) in copied.message and "3 characters" in copied.message
    assert copied.message.startswith("no clipboard here: wrote ") and ways.terminal == []


def test_too_much_for_the_terminal_goes_to_a_file(tmp_path: Path) -> None:
    ways = Ways(tmp_path, SSH)
    copied = ways.clipboard.copy("x" * (MOST_OSC52 + 1))
    assert copied.way == "file" and copied.path is not None
    assert copied.path.stat().st_size == MOST_OSC52 + 1
    assert copied.message.startswith("too much for the terminal: wrote 74,001 characters to ")
    assert ways.terminal == []


def test_copied_text_is_harmless(tmp_path: Path) -> None:
    ways = Ways(tmp_path, SSH)
    ways.clipboard.copy("a\x1b[201~rm -rf\r\n\u202eb\ud800")
    assert ways.terminal == ["a␛[201~rm -rf\n\ufffdb\ufffd"]


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[dict[str, str]]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    socket = Path("/tmp") / f"backscroll-test-{os.getpid()}.sock"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TMUX", "SSH"))}
    environment["TERM"] = "xterm-256color"
    base = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    start = [*base, "new-session", "-d", "-s", "t", "-n", "here", "cat"]
    subprocess.run(start, env=environment, check=True)
    shown = subprocess.run(
        [*base, "display-message", "-p", "#{pid}"], env=environment, check=True,
        capture_output=True, text=True,
    )
    try:
        yield {**environment, "TMUX": f"{socket},{shown.stdout.strip()},0"}
    finally:
        subprocess.run([*base, "kill-server"], env=environment, check=False)
        socket.unlink(missing_ok=True)


def test_tmux_keeps_it_and_hands_it_to_the_outer_terminal(
    tmp_path: Path, tmux: dict[str, str]
) -> None:
    socket = tmux["TMUX"].split(",")[0]
    outside = {name: text for name, text in tmux.items() if name != "TMUX"}
    with on_a_terminal(["tmux", "-S", socket, "attach"], outside) as terminal:
        terminal.wait_for(b"0:here")
        ways = Ways(tmp_path, {**tmux, **SSH})
        copied = ways.clipboard.copy("to tmux ✓")
        assert copied.message == "copied 9 characters to the tmux clipboard"
        encoded = base64.b64encode("to tmux ✓".encode())
        terminal.wait_for(encoded)
        assert b"\x1b]52;" in terminal.received
    saved = subprocess.run(
        ["tmux", "-S", socket, "save-buffer", "-"], env=outside, check=True, capture_output=True
    )
    assert saved.stdout.decode() == "to tmux ✓"
    assert ways.terminal == [] and ways.desktop == []


def test_a_tmux_that_is_gone_gives_way_to_the_next(tmp_path: Path) -> None:
    ways = Ways(tmp_path, {**SSH, "TMUX": f"{tmp_path}/none,1,0"})
    assert ways.clipboard.copy("x").way == "terminal"


APP = """
from textual.app import App
from tui.kit import clipboard
class Copying(App):
    async def on_ready(self):
        await clipboard.copy(self, "over the wire")
Copying().run()
"""


def test_the_app_writes_osc_52_to_its_terminal() -> None:
    dropped = ("TMUX", "DISPLAY", "WAYLAND_DISPLAY")
    environment = {name: text for name, text in os.environ.items() if name not in dropped}
    environment |= {**SSH, "TERM": "xterm-256color"}
    with on_a_terminal([sys.executable, "-c", APP], environment) as terminal:
        wanted = base64.b64encode(b"over the wire")
        terminal.wait_for(b"\x1b]52;c;" + wanted + b"\x07")
        terminal.wait_for(b"Sent 13 characters")
