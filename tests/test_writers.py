"""The code has no way to a terminal but the guarded ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = sorted(path for name in ("store", "tui") for path in (ROOT / name).rglob("*.py"))
SAFE_MAKERS = {"store/system/streams.py": {"Painted"}, "tui/kit/text_line.py": {"Input"}}
"""Who may make what others only get from them."""
FRAMES = {"store/sync/child.py"}
"""A helper process talks in frames to the one that started it, on pipes."""
DESCRIPTORS = {"store/system/stopping.py", "tui/start/hangup.py", "tui/start/stopped.py",
               "store/exports/bulk.py", "tui/terminal/driver.py"}
"""They write to pipes of their own, ``hangup`` what restores the terminal, ``bulk`` a file, and
``driver`` what Textual draws, whose texts the guards of the widgets have made harmless."""
STREAMS = {"tui/terminal/driver.py"}
"""The driver draws where Textual's own does, which the guarded streams would escape."""
MACHINE_ENTRIES = {
    "store/sync/helper.py", "store/sync/by_turns.py", "store/demo/__main__.py",
}  # fmt: skip


FILTERING = ("filtered(self", "super().render_lines", "lines_of(self")
"""What a ``render_lines`` may call: ``lines_of`` puts its lines through ``filtered``."""


LAST_WORDS = frozenset({"__stdout__", "__stderr__", "ttyname", "buffer", "_driver"})
CALLED = frozenset({"Painted", "Input", "from_markup", "print_exc", "write", "Static"})
"""What is looked at more closely, as writing a node as code takes a while."""


def last_word(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ast.unparse(node).rpartition(".")[2]


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(), str(path)))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_module_goes_round_the_writers() -> None:
    found = {name(path): wrong for path in FILES if (wrong := ways_round(path))}
    assert found == {}


def ways_round(path: Path) -> list[str]:
    wrong: list[str] = []
    where = name(path)
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and node.attr in LAST_WORDS:
            written = ast.unparse(node)
            if written in ("sys.__stdout__", "os.ttyname") or (
                    written == "sys.__stderr__" and where not in STREAMS):
                wrong.append(written)
            if written in ("sys.stdout.buffer", "sys.stderr.buffer") and where not in FRAMES:
                wrong.append(written)
            is_textuals = written.endswith("._driver") and where.startswith("tui/")
            if is_textuals and where != "tui/live/notifying.py":
                wrong.append(written)
        if isinstance(node, ast.Call) and last_word(node.func) in CALLED:
            called = ast.unparse(node.func)
            last = called.rpartition(".")[2]
            if last in ("Painted", "Input") and last not in SAFE_MAKERS.get(where, ()):
                wrong.append(f"{called}() at line {node.lineno}")
            if last in ("from_markup", "print_exc"):
                wrong.append(f"{called}() at line {node.lineno}")
            if called == "os.write" and where not in DESCRIPTORS:
                wrong.append(f"{called}() at line {node.lineno}")
            if last == "Static" and node.args and not isinstance(node.args[0], ast.Constant):
                wrong.append(f"{called}() of what is no constant at line {node.lineno}")
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            if "Input" in bases and where != "tui/kit/text_line.py":
                wrong.append(f"{node.name} is an Input and no TextLine")
        if isinstance(node, ast.FunctionDef) and node.name == "render_lines":
            body = ast.unparse(node)
            if not any(way in body for way in FILTERING):
                wrong.append(f"render_lines at line {node.lineno} is not filtered")
    return wrong


def test_each_program_guards_its_streams() -> None:
    programs = [path for path in FILES if 'if __name__ == "__main__"' in path.read_text()]
    unguarded = {name(path) for path in programs if "guard_streams(" not in path.read_text()}
    assert unguarded == MACHINE_ENTRIES


def test_the_tests_that_the_security_page_names_are_there() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    named = set(re.findall(r"`((?:tests|store|tui)/[\w/]+(?:\.py)?)`", page))
    assert len(named) > 15 and [name for name in named if not (ROOT / name).exists()] == []
