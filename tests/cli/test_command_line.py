"""The command line as a whole: dispatch, help, real processes, broken pipes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tui.cli import command_in, command_module, command_parser
from tui.words.commands import COMMAND_NAMES

START = "import sys; from tui.cli import main; sys.exit(main(sys.argv[1:]))"


def process(*arguments: str | Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", START, *map(str, arguments)],
        capture_output=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["sessions", "--json"], "sessions"),
        (["--store", "x.db", "show", "y"], "show"),
        (["--store=x.db", "export"], "export"),
        (["some/folder"], None),
        (["--demo"], None),
        ([], None),
        (["--store", "sessions"], None),
    ],
)
def test_finds_the_command(arguments: list[str], name: str | None) -> None:
    assert command_in(arguments) == name


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_every_command_has_help(run: Run, name: str) -> None:
    result = run(name, "--help")
    assert result.code == 0
    assert result.out.startswith(f"usage: backscroll {name}")
    assert "--store PATH" in result.out


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_every_command_has_examples_that_its_parser_takes(run: Run, name: str) -> None:
    examples = command_module(name).EXAMPLES
    assert examples
    for line, does in examples:
        assert f"{line}  " in run(name, "--help").out
        assert does
        call = re.search(rf"backscroll {name}([^|<>)]*)", line)
        assert call is not None
        command_parser(name, command_module(name)).parse_args(shlex.split(call[1]))


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["sessions", "--quer", "x"], "--query"),
        (["sessions", "--workspce=x"], "--workspace"),
        (["export", "x", "--to", "json", "--froce"], "--force"),
    ],
)
def test_an_option_like_another_is_suggested(run: Run, arguments: list[str], option: str) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert f"unrecognized arguments: {arguments[-1]}" in result.err or "--quer x" in result.err
    assert f"Did you mean {option}?" in result.err


def test_an_option_like_no_other_is_only_refused(run: Run) -> None:
    result = run("sessions", "--zzz")
    assert result.code == 2
    assert result.err.rstrip().endswith("unrecognized arguments: --zzz")


@pytest.mark.parametrize(
    ("command", "needs"), [("copy", "FROM, TO"), ("tag", "SESSION"), ("rename", "SESSION, TITLE")])
def test_only_what_a_command_needs_is_asked_for(run: Run, command: str, needs: str) -> None:
    result = run(command)
    assert result.code == 2
    assert result.err.endswith(f"the following arguments are required: {needs}\n")


@pytest.mark.parametrize("name", ["sessions", "show", "sources", "sync", "import", "forget"])
def test_help_documents_the_json(run: Run, name: str) -> None:
    assert "--json prints" in run(name, "--help").out


def test_help_names_every_command(run: Run) -> None:
    result = run("--help")
    assert result.code == 0
    commands = result.out.split("commands (")[1].split("\n\n")[0]
    listed = [line.split()[0] for line in commands.splitlines()[1:]]
    assert listed == list(COMMAND_NAMES)


def test_version(run: Run) -> None:
    assert run("--version").out.startswith("backscroll 0.")


def test_no_command(run: Run) -> None:
    assert run("nonsense").code == 2


def test_help_of_a_mistyped_command(run: Run) -> None:
    result = run("help", "sesions")
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "backscroll: no command is called 'sesions'. Did you mean `backscroll help sessions`?\n"
    )
    assert run("help", "zzz").err.endswith("'zzz'. See `backscroll --help`.\n")
    assert run("help").code == run("help", "version").code == 0


def test_store_may_stand_before_the_command(run: Run, demo: Path, tmp_path: Path) -> None:
    other = tmp_path / "missing.db"
    assert run("--store", other, "sessions").code == 1
    assert run(f"--store={demo}", "sessions").code == 0


def test_a_reader_that_goes_away_is_no_failure(demo: Path) -> None:
    command = f'"{sys.executable}" -c "{START}" export port-tests --to jsonl | head -n 1'
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.startswith(b'{"type":"session"')


def test_output_is_utf_8_whatever_the_locale(demo: Path) -> None:
    done = process("show", "ryoko", LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert done.stdout.decode("utf-8").startswith("京都旅行の計画 🧳\n")


def test_a_process_ends_with_the_code(demo: Path) -> None:
    done = process("show", "nope")
    assert done.returncode == 1 and done.stdout == b""
    assert process("sessions", "--wrong").returncode == 2


def test_reading_commands_import_no_textual(demo: Path) -> None:
    check = (
        "import sys; from tui.cli import main; main(['sessions']); main(['show', 'odd-text']);"
        "loaded = {'textual', 'pydantic', 'store.store', 'markdown_it', 'rich.text'};"
        "loaded &= set(sys.modules);"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    "arguments", [["show"], ["archive"], ["rename", "x"], ["sessions", "--query"], ["search"]]
)
def test_an_argument_that_is_no_text(run: Run, demo: Path, arguments: list[str]) -> None:
    session = run("sessions", "--json").json[0]["id"]
    before = demo.read_bytes()
    named = [session if argument == "x" else argument for argument in arguments]
    result = run(*named, os.fsdecode(b"caf\xe9"))
    reason = "backscroll: caf\N{REPLACEMENT CHARACTER} is not valid UTF-8\n"
    assert (result.code, result.out, result.err) == (1, "", reason)
    assert demo.read_bytes() == before
