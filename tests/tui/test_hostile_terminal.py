"""What the browser writes to a real terminal holds Textual's sequences and no others."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.hostile import NEVER, STEERING, controls, hostile_store
from tests.tui.terminals import on_a_terminal

TEXTUALS = re.compile(
    r"\x1b\[(?:(?:\d+;)*\d+m|\d+;\d+H|\d*[GXCK]|\?(?:25|7|1000|1003|1004|1006|1015|1049|2004|2026|2048)[hl]"
    r"|\?(?:2026|2048)\$p|>\d+u|<u)|\x1b\]22;[a-z-]+\x07"
)
"""Colours, places, blanks, the driver's modes, queries, kitty's keys, the pointer's shape."""
ESCAPE = b"\x1b[27u"
UNDER_HELP = b"WebSearch"
"""A call of the transcript that the keys cover: seen again when they are closed.

They are closed by q: escape closes a toast first, if one is still up.
"""
STEPS: tuple[tuple[bytes, bytes], ...] = (
    (b"R", b"Your title stays"), (ESCAPE + b"#", b"Separate tags"), (ESCAPE + b"T", b"Tree  "),
    (ESCAPE + b"d", b" tabs"), (ESCAPE + b"Y", b"Copy as"), (ESCAPE + b"j\r", b" pager"),
    (b"B", b"Label this message"), (ESCAPE + b"\x10", b"Transcript: "),
    (ESCAPE + b"c", b"Sent to the model"), (b"c.\r", b" find"),
    (b"]?", b"Keys: Inspector"), (b"q", UNDER_HELP), (b"]?", b"Keys: Inspector"),
    (b"q", UNDER_HELP), (b"]?", b"Keys: Inspector"), (b"q", UNDER_HELP),
)  # fmt: skip


@pytest.mark.long
def test_the_bytes_of_every_screen(tmp_path: Path) -> None:
    store = hostile_store(tmp_path / f"s{STEERING['title']}.db")
    environment = {**os.environ, "HOME": str(tmp_path)}
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        environment[f"XDG_{name}_HOME"] = str(tmp_path / name)
    command = [sys.executable, "-m", "tui", "--store", str(store)]
    whole = b""
    with on_a_terminal(command, environment, (180, 60)) as terminal:
        terminal.wait_for(b" keys")
        for keys, shown in STEPS:
            whole, terminal.received = whole + terminal.received, b""
            terminal.send(keys)
            terminal.wait_for(shown)
        terminal.send(b"\x11")
        terminal.wait_for_end()
        whole += terminal.received
    text = whole.decode()
    assert [one for one in controls(text) if not TEXTUALS.fullmatch(one)] == []
    assert not NEVER.search(text)
    assert text.count("\x1b[?1049l") == 1 and text.count("\x1b[?25h") == 1
    assert "38;5;201;7" not in "".join(re.findall(r"\x1b\[[0-9;]*m", text))
