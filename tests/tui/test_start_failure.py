"""An app that cannot start says so in one line and ends with exit code 1."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.tui.stores import put, some
from tests.tui.terminals import on_a_terminal

BREAKS = """
import sys, tui.screens.main as main
from tui.__main__ import main as run

def broken(*args, **kwargs):
    raise RuntimeError("no [b]such[/b] thing")

setattr(main.MainScreen, sys.argv[1], broken)
print("code", run(["--store", sys.argv[2]]), flush=True)
"""


@pytest.mark.parametrize("where", ["__init__", "compose", "on_mount"])
def test_an_error_before_the_first_screen(where: str, tmp_path: Path) -> None:
    store = put(tmp_path / "s.db", some(2))
    environment = os.environ | {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", BREAKS, where, str(store)]
    with on_a_terminal(command, environment, (400, 24)) as terminal:
        said = terminal.wait_for(b"code 1")
    after = said.rpartition(b"\x1b")[2]
    lines = [line for line in after.decode().splitlines() if "backscroll:" in line]
    assert len(lines) == 1
    assert "could not start: RuntimeError: no [b]such[/b] thing; log: " in lines[0]
    assert "Traceback" not in said.decode()
    logged = next(tmp_path.rglob("*.log")).read_text()
    assert "RuntimeError: no [b]such[/b] thing" in logged
