"""``NO_COLOR`` on a real terminal: what is drawn is shades of grey, and says the same."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.tui.stores import Told, put
from tests.tui.terminals import on_a_terminal

COLOURS = re.compile(rb"[34]8;2;(\d+);(\d+);(\d+)[;m]")


@pytest.mark.parametrize("without", [True, False])
def test_colours_are_left_out_where_that_is_asked_for(without: bool, tmp_path: Path) -> None:
    store = put(tmp_path / "s.db", [Told("ses_a", "Only one", activity="waiting-approval")])
    environment = os.environ | {
        "HOME": str(tmp_path), "COLORTERM": "truecolor", "TERM": "xterm-256color",
    }  # fmt: skip
    environment |= {"NO_COLOR": "1"} if without else {}
    command = [sys.executable, "-m", "tui", "--store", str(store)]
    with on_a_terminal(command, environment, (120, 40)) as terminal:
        drawn = terminal.wait_for(b"Only one")
    colours = {tuple(map(int, found)) for found in COLOURS.findall(drawn)}
    assert colours
    assert all(len(set(colour)) == 1 for colour in colours) == without
