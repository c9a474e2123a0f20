"""What a command line is made of, and that nothing else starts a program."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from store.errors import Refused
from store.system.programs import CommandLine, find, quoted, run

ROOT = Path(__file__).parents[2]
MODULES = [path for top in ("store", "tui") for path in sorted((ROOT / top).rglob("*.py"))]
THE_PLACE = ROOT / "store" / "system" / "programs.py"
OF_PROCESSES = {"subprocess", "pty", "webbrowser", "multiprocessing", "_posixsubprocess"}
STARTERS = (
    "system", "popen", "fork", "forkpty", "startfile",
    "create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell",
    "open_url", "Popen",
)  # fmt: skip
MAY_START = re.compile("|".join([
    *OF_PROCESSES, "pyperclip", "CommandLine", "_of_words", "from (?:os|asyncio) import",
    *(rf"\.\s*{name}\b" for name in (*STARTERS, r"exec\w+", r"spawn\w+", r"posix_\w+"))]))
"""A module without any of these words starts no program."""
CLIPBOARD = ROOT / "tui" / "kit" / "clipboard.py"
"""The one module that may use pyperclip, which gives a fixed program the text on its stdin."""


def test_a_value_goes_where_it_is_no_option() -> None:
    command = CommandLine.of("agent", "resume").separate("--session", "abc")
    command = command.option("--prompt", "--yolo")
    assert list(command) == ["agent", "resume", "--session", "abc", "--prompt=--yolo"]
    assert list(command.operand("-x\ny", lines=True).operand("--z"))[5:] == ["--", "-x\ny", "--z"]
    assert list(CommandLine.of("agent").path("/a b")) == ["agent", "/a b"]


@pytest.mark.parametrize("value", [
    "-x", "--yolo", "-", "--", "a\nb", "a\0b", "\x1b[31m", "a\ud800",
])  # fmt: skip
def test_what_could_be_taken_for_an_option_is_refused(value: str) -> None:
    with pytest.raises(Refused):
        CommandLine.of("agent").separate("--session", value)
    with pytest.raises(Refused):
        CommandLine.of("agent").bare_operand(value)
    with pytest.raises(Refused):
        CommandLine.of("agent").path(value)


@pytest.mark.parametrize("value", [
    "a\0b", "\x1b]52;c;eA==\x07", "\x9b31m", "a\rb", "\ud800", "x" * 200_000,
])  # fmt: skip
def test_what_no_program_can_be_given_is_refused(value: str) -> None:
    with pytest.raises(Refused):
        CommandLine.of("agent").operand(value)
    with pytest.raises(Refused):
        CommandLine.of("agent").option("--prompt", value)


def test_a_mark_of_the_program_is_refused() -> None:
    with pytest.raises(Refused, match="'@' and would be read as a file"):
        CommandLine.of("pi").bare_operand("@/etc/passwd", marks="@")


@pytest.mark.parametrize("words", [("--yolo x",), ("a b",), ("",), ("/bin/sh",), ("-x",), ("a\n",)])
def test_no_value_names_a_program(words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="not a program name"):
        CommandLine.of(*words)
    with pytest.raises(TypeError):
        CommandLine(words)


def test_behind_the_operands_there_are_no_options() -> None:
    with pytest.raises(ValueError, match="operands only"):
        CommandLine.of("agent").operand("x").option("--prompt", "y")


@pytest.mark.parametrize("word", [
    "plain", "two words", "it's", "$(touch x)", "a\nb", "\u202eabc'\\", "tab\t", "\u200b", "",
])  # fmt: skip
def test_what_is_shown_is_what_a_shell_reads(word: str) -> None:
    shown = CommandLine.of("printf", "x").operand(word, lines=True).shown()
    done = subprocess.run(
        ["bash", "-c", f"set -- {shown}; printf %s \"${{@: -1}}\""], capture_output=True, check=True
    )
    assert done.stdout.decode() == word
    if word.isprintable():
        assert quoted(word) == shlex.quote(word)


def test_a_program_of_the_folder_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session's folder is where the agent runs, not where it is looked for."""
    (tmp_path / "agent").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "agent").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".:")
    assert find("agent") is None
    with pytest.raises(Refused, match="agent is not on PATH"):
        run(CommandLine.of("agent"), folder=str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(CommandLine.of("agent"), folder=str(tmp_path)).code == 9


@pytest.mark.parametrize("folder", ["relative", "-x", "", "/a\nb", "/a\0b"])
def test_a_folder_is_an_absolute_path(folder: str) -> None:
    with pytest.raises(Refused):
        run(CommandLine.of("true"), folder=folder)


def test_nothing_else_starts_a_program() -> None:
    """Only ``store.system.programs`` starts a process, of a ``CommandLine``."""
    found = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        for path in MODULES if path != THE_PLACE and MAY_START.search(path.read_text())
        for node in ast.walk(ast.parse(path.read_text()))
        if _starts_a_program(node, path)
    ]  # fmt: skip
    assert found == []


@pytest.mark.parametrize("line", [
    "import subprocess", "from subprocess import run", "import pty", "import webbrowser",
    "os.execvp(a, b)", "os.system(a)", "from os import posix_spawn", "app.open_url(a)",
    "asyncio.create_subprocess_exec(a)", "loop.subprocess_exec(a)", "import pyperclip",
    "CommandLine.of(session.title)", "CommandLine.of('x', title)", "CommandLine._of_words(a)",
    "tuple.__new__(CommandLine, a)",
])  # fmt: skip
def test_what_would_start_one_is_found(line: str) -> None:
    nodes = ast.walk(ast.parse(line))
    assert any(_starts_a_program(node, ROOT / "tui" / "app.py") for node in nodes)


def _starts_a_program(node: ast.AST, path: Path) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "asyncio"):
            return any(map(_starts, names))
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        tops = {name.partition(".")[0] for name in names}
        return bool(tops & OF_PROCESSES) or ("pyperclip" in tops and path != CLIPBOARD)
    if isinstance(node, ast.Attribute):
        return node.attr == "_of_words" or (_starts(node.attr) and _of_a_module(node))
    if isinstance(node, ast.Call) and _is_of(node.func):
        return not all(map(_is_named_by_code, node.args))
    if isinstance(node, ast.Call):
        return any(isinstance(one, ast.Name) and one.id == "CommandLine" for one in node.args)
    return False


def _starts(name: str) -> bool:
    return name in STARTERS or bool(re.fullmatch(r"(exec|spawn)[lv]p?e?|posix_spawnp?", name))


def _of_a_module(node: ast.Attribute) -> bool:
    """Tell whether an attribute is one of ``os``, ``asyncio``, an event loop or the app."""
    owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(
        node.value, "id", "")  # fmt: skip
    return owner in ("os", "asyncio", "loop", "app", "nt", "posix")


def _is_of(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute) and function.attr == "of"
        and isinstance(function.value, ast.Name) and function.value.id == "CommandLine"
    )  # fmt: skip


def _is_named_by_code(argument: ast.expr) -> bool:
    """Tell whether an argument is a literal, a constant, or an agent's ``program``."""
    if isinstance(argument, ast.Starred):
        return isinstance(argument.value, ast.Name)
    if isinstance(argument, ast.Attribute):
        return argument.attr == "program"
    return isinstance(argument, ast.Constant) or (
        isinstance(argument, ast.Name) and argument.id.isupper()
    )
