"""The search on a real terminal: what is typed faster than it is drawn arrives all the same."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyte

from tests.tui.seeded import Said, make_store, text
from tests.tui.terminals import on_a_terminal

KITTY = (b"\x1b[?2026$p", b"\x1b[?2048$p", b"\x1b[>25u", b"\x1b[<u")


def test_keys_typed_at_once_are_all_in_the_query(tmp_path: Path) -> None:
    said = [Said("user", [text(f"line {number} has the upload retried")]) for number in range(30)]
    store = make_store(tmp_path / "s.db", said)
    environment = {**os.environ, "HOME": str(tmp_path), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    for name in ("DATA", "CONFIG", "CACHE", "STATE"):
        environment[f"XDG_{name}_HOME"] = str(tmp_path / name)
    command = [sys.executable, "-m", "tui", "--store", str(store)]
    with on_a_terminal(command, environment, (150, 40)) as terminal:
        terminal.wait_for(b" keys")
        terminal.send(b"S" + b"the upload retried line 29")
        terminal.wait_for(b"1 hit in 1 session")
        screen = pyte.Screen(150, 40)
        written = terminal.received
        for sequence in KITTY:
            written = written.replace(sequence, b"")
        pyte.ByteStream(screen).feed(written)
        assert "the upload retried line 29" in screen.display[1]
        terminal.send(b"\x11")
        terminal.wait_for_end()
