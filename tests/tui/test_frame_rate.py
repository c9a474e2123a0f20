"""How often Textual draws at most."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.tui.stores import put, some
from tests.tui.terminals import on_a_terminal
from tests.tui.test_first_frame import environment
from tui.start.frame_rate import FRAMES_A_SECOND

TOLD = """
import os, sys
from tui.start import frame_rate
set_it = frame_rate.set_frame_rate
def tell():
    early = any(name.partition(".")[0] == "textual" for name in sys.modules)
    set_it()
    from textual.screen import UPDATE_PERIOD
    print("told", early, round(1 / UPDATE_PERIOD), os.environ.get("TEXTUAL_FPS"))
    raise SystemExit
frame_rate.set_frame_rate = tell
from tui.__main__ import main
main(["--store", sys.argv[1]])
"""


@pytest.mark.parametrize(("given", "told"), [
    (None, f"told False {FRAMES_A_SECOND} None"), ("30", "told False 30 30"),
])
def test_it_is_set_before_textual_is_loaded_and_for_no_child(
    tmp_path: Path, given: str | None, told: str
) -> None:
    path = put(tmp_path / "s.db", some(1))
    variables = environment() | ({"TEXTUAL_FPS": given} if given else {})
    command = [sys.executable, "-c", TOLD, str(path)]
    with on_a_terminal(command, variables, (120, 40)) as terminal:
        terminal.wait_for_end()
    assert told in terminal.received.decode()
