"""No command passes on what would steer a terminal, whatever a store holds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from store.exports.registry import FORMATS
from tests.cli.conftest import Run
from tests.hostile import ALL, CORPUS, NEVER, STEERING, controls, hostile_store
from tests.tui.terminals import on_a_terminal

SGR = re.compile(r"\x1b\[[0-9;]*m")
OURS = re.compile(r"\x1b\[(0|[1-3]|3[1-6]|[1-3];3[1-6]|3[1-6];[1-3])m")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_store(tmp_path_factory.mktemp("hostile") / "s.db")


def harmless(text: str) -> None:
    assert not controls(text)
    assert not NEVER.search(text)


COMMANDS = (
    ("sessions",), ("sessions", "--json"), ("tree",), ("tree", ALL), ("stats",),
    ("stats", "--json"), ("stats", "--by", "model"), ("stats", "--by", "workspace"),
    ("sources", "--problems"), ("show", ALL, "--full"), ("show", ALL, "--hidden"),
    ("show", ALL, "--json"), ("show", ALL, "--context"),
    *(("export", ALL, "--to", name) for name in FORMATS),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.one_in(2)
def test_no_command_passes_it_on(run: Run, store: Path, command: tuple[str, ...]) -> None:
    got = run(*command, "--store", store)
    harmless(got.out)
    harmless(got.err)
    if "--json" in command or command[-1] in ("json", "ui-messages"):
        assert json.loads(got.out)
    assert "this should not happen" not in got.err


@pytest.mark.parametrize("words", CORPUS.values(), ids=CORPUS)
@pytest.mark.one_in(3)
def test_no_argument_is_passed_on(run: Run, store: Path, words: str) -> None:
    given = words.replace("\0", "")
    for command in (
        ("show", given), ("export", ALL, "--to", given), (given,), ("sessions", f"--{given}"),
        ("sessions", "--store", f"/nowhere/{given}"), ("sessions", "--limit", given),
        ("sessions", "--query", given), ("fork", ALL, given), ("import", f"/nowhere/{given}"),
        ("export", ALL, "--to", "json", "--out", f"/nowhere/{given}/x"),
    ):  # fmt: skip
        got = run(*command, *(() if "--store" in command else ("--store", store)))
        harmless(got.out)
        harmless(got.err)
        assert "this should not happen" not in got.err


def test_no_name_of_a_source_is_passed_on(run: Run, store: Path) -> None:
    given = [words.replace("\0", "") for words in CORPUS.values()]
    for start in range(0, len(given), 14):
        got = run("sync", f"/n/{'/'.join(given[start:start + 14])}", "--store", store)
        assert got.code == 1 and got.err
        harmless(got.out)
        harmless(got.err)


def test_values_come_back_from_json(run: Run, store: Path) -> None:
    titles = {one["title"] for one in run("sessions", "--json", "--store", store).json}
    assert {STEERING["clipboard"], STEERING["title"]} <= titles


def test_on_a_terminal_only_our_colours_are_written(store: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    for arguments in (["show", ALL], ["sessions"], ["sessions", "--json"], ["show", "\x1b[2J"],
                      ["sessions", "--store", f"{tmp_path}/\x1b]0;x\x07"]):  # fmt: skip
        command = [sys.executable, "-m", "tui", "--store", str(store), *arguments]
        with on_a_terminal(command, environment, (120, 40)) as terminal:
            terminal.wait_for_end()
            text = terminal.received.decode()
        assert not [one for one in controls(text) if not OURS.fullmatch(one)]
        assert not NEVER.search(text)


def test_a_schema_is_passed_on_neither_by_browser_nor_commands(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "evil.db"
    with sqlite3.connect(path) as made:
        made.executescript(
            "create table chat_sessions(id text primary key, created_at int, updated_at int);"
            "create table chat_messages(id text); create table chat_parts(id text);"
        )
        made.execute("pragma writable_schema=on")
        made.execute(
            "insert into sqlite_master(type,name,tbl_name,rootpage,sql)"
            " values('table', ?, ?, 0, ?)", ("x\x1b]0;EVIL\x07\x1b[31m", "x", "create tab le"),
        )
    made.close()
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    for arguments in ([str(path)], ["sessions", "--store", str(path)]):
        with on_a_terminal([sys.executable, "-m", "tui", *arguments], environment) as terminal:
            terminal.wait_for_end()
            text = terminal.received.decode()
        assert "evil.db" in text and not controls(text)


def test_a_traceback_is_neutral_too() -> None:
    run = (
        "import sys; from store.system.streams import guard_streams; guard_streams()\n"
        "import warnings; warnings.warn('\\x1b[2J')\n"
        "raise ValueError('\\x1b]0;EVIL\\x07\\u202e')"
    )
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert "␛]0;EVIL␇" in done.stderr
    harmless(done.stderr)
