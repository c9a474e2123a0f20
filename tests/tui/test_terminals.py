"""The browser with 16 colours, without Unicode, without a mouse, in screen, in tmux, by ssh."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.tui.stores import Told, put
from tests.tui.terminals import on_a_terminal

SESSIONS = [Told("ses_a", "Über 漢字 ě2J ❤️ first", activity="waiting-approval"),
            Told("ses_b", "Second", age=5)]
TRUE_COLOUR, PALETTE = re.compile(rb"\x1b\[[0-9;]*[34]8;2;"), re.compile(rb"\x1b\[[0-9;]*[34]8;5;")
KINDS = {
    "linux": {"TERM": "linux"}, "screen": {"TERM": "screen"},
    "tmux": {"TERM": "tmux-256color", "TMUX": "/nowhere,1,0"}, "C": {"LANG": "C"},
    "ssh, no mouse": {"COLORTERM": "truecolor", "SSH_TTY": "/dev/9", "SSH_CONNECTION": "a 1 b 2"},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.one_in(2)
def test_it_starts_is_read_and_ends_on(kind: str, tmp_path: Path) -> None:
    store = put(tmp_path / "s.db", SESSIONS)
    environment = {**os.environ, "HOME": str(tmp_path), **KINDS[kind]}
    environment["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    if "no mouse" in kind:
        (tmp_path / "config" / "backscroll").mkdir(parents=True)
        (tmp_path / "config" / "backscroll" / "config.toml").write_text("[ui]\nmouse = false\n")
    command = [sys.executable, "-m", "tui", "--store", str(store)]
    with on_a_terminal(command, environment, (100, 30)) as terminal:
        terminal.wait_for(b"Second")
        terminal.wait_for(b" keys")
        terminal.send(b"?")
        terminal.wait_for(b"Previous session")
        terminal.send(b"\x11\x11")
        assert terminal.exit_code() == 0
    written = terminal.received
    assert written.isascii() == (kind == "C")
    assert (b"?ber ???? ?2J ? first" in written) == (kind == "C")
    assert bool(TRUE_COLOUR.search(written)) == ("ssh" in kind)
    assert bool(PALETTE.search(written)) == (kind in ("tmux", "C"))
    assert (b"\x1b[?1000h" in written) == ("no mouse" not in kind)


def test_a_command_without_unicode_writes_ascii(tmp_path: Path) -> None:
    store = put(tmp_path / "s.db", SESSIONS)
    environment = {**os.environ, "HOME": str(tmp_path), "LANG": "C"}
    command = [sys.executable, "-m", "tui", "rename", "ses_a", "ě2J … ●", "--store", str(store)]
    with on_a_terminal(command, environment) as terminal:
        assert terminal.exit_code() == 0
    assert terminal.received == b'renamed to "\\u011b2J ~ *"\r\n'
