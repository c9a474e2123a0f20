"""Completion in real shells: commands, options, choices, files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.cli.conftest import Run

BASH = """
eval "$(cat "$SCRIPT")"
COMP_WORDS=("$@"); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
$(complete -p backscroll | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""
FISH = 'source $SCRIPT; complete -C "$argv[1]"'
ZSH = """
autoload -Uz compinit; compinit -u -D
eval "$(cat $SCRIPT)"
print -r -- $_comps[backscroll]
"""
SHELLS = {
    "bash": (["bash", "--norc", "-c"], BASH),
    "fish": (["fish", "--no-config", "-c"], FISH),
    "zsh": (["zsh", "-f", "-c"], ZSH),
}
CASES = [
    (["backscroll", "sess"], {"sessions"}),
    (["backscroll", "un"], {"undo", "unarchive"}),
    (["backscroll", "export", "4f1c", "--to", "mar"], {"markdown"}),
    (["backscroll", "sessions", "--wor"], {"--workspace"}),
    (["backscroll", "help", "exp"], {"export"}),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes.jsonl").write_text("")
    (tmp_path / "nested").mkdir()
    return tmp_path


@cache
def script_of(shell: str) -> str:
    """Return the completion script of a shell."""
    return subprocess.run(
        [sys.executable, "-m", "backscroll", "completion", shell],
        capture_output=True, text=True, check=True).stdout


def complete(shell: str, folder: Path, *words: str) -> list[str]:
    """Return what a shell prints that has read the script of its name."""
    start, program = SHELLS[shell]
    script = folder / ".script"
    script.write_text(script_of(shell))
    done = subprocess.run(
        [*start, program, *words], capture_output=True, text=True, check=False, cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "SCRIPT": str(script)})
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(("words", "wanted"), CASES)
def test_bash(folder: Path, words: list[str], wanted: set[str]) -> None:
    assert set(complete("bash", folder, "bash", *words)) == wanted


def test_bash_completes_files_and_folders(folder: Path) -> None:
    files = complete("bash", folder, "bash", "backscroll", "import", "n")
    assert {"notes.jsonl", "nested"} == {one.rstrip("/") for one in files}
    folders = complete("bash", folder, "bash", "backscroll", "sessions", "--workspace", "n")
    assert [one.rstrip("/") for one in folders] == ["nested"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(("words", "wanted"), CASES)
def test_fish(folder: Path, words: list[str], wanted: set[str]) -> None:
    lines = complete("fish", folder, " ".join(words))
    assert {line.split("\t")[0] for line in lines} == wanted


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_the_script(folder: Path) -> None:
    assert complete("zsh", folder) == ["_shtab_backscroll"]


def test_another_shell_is_refused(run: Run) -> None:
    result = run("completion", "csh")
    assert result.code == 2
    assert "choose from" in result.err
