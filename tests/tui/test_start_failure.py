"""An app that cannot start says so in one line and ends with exit code 1."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.tui.stores import put, some
from tests.tui.terminals import on_a_terminal

BREAKS = """
import sys, tui.main.screen as main
from tui.__main__ import main as run

def broken(*args, **kwargs):
    raise RuntimeError("no [b]such[/b] thing")

setattr(main.MainScreen, sys.argv[1], broken)
print("code", run(["--store", sys.argv[2]]), flush=True)
"""


@pytest.mark.parametrize("where", ["__init__", "compose", "on_mount"])
@pytest.mark.one_in(3)
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


def test_a_store_with_a_damaged_page_is_named(tmp_path: Path) -> None:
    store = put(tmp_path / "s.db", some(2))
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE tbl_name = 'chat_sessions'"
        ).fetchall()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with store.open("r+b") as file:
        for (page,) in pages:
            file.seek((page - 1) * size)
            file.write(b"\xee" * size)
    environment = os.environ | {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    run = "import sys; from tui.__main__ import main; print('code', main(sys.argv[1:]), flush=True)"
    command = [sys.executable, "-c", run, "--store", str(store)]
    with on_a_terminal(command, environment, (400, 24)) as terminal:
        said = terminal.wait_for(b"code 1")
    after = said.rpartition(b"\x1b")[2].decode()
    assert f"{store} is a damaged SQLite file (database disk image is malformed)" in after
    assert "Traceback" not in said.decode()
