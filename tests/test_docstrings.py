"""Docstrings say what each argument is, and strings are in plain words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("backscroll", "store", "tui")
FEWEST = 3
"""Arguments from which a docstring has to describe them."""

OF_TEXTUAL = {"get_content_height", "get_content_width", "notify", "watch_scroll_y", "render_bar",
              "render_lines"}
"""Methods that Textual calls or has; its documentation describes their arguments."""

BANNED = (
    "is told", "are told", "told of", "stands in", "by whom", "its like", "of ours", "let go",
    "breaks it off", "broke off",
)
"""Phrases that are plainer in other words."""


@cache
def modules() -> dict[str, ast.Module]:
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
        for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
    }


def public_functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods that others call; not those inside of functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_") or node.name == "__init__":
                yield node
        elif isinstance(node, ast.ClassDef):
            if not node.name.startswith("_"):
                yield from public_functions(node)
        elif isinstance(node, ast.If | ast.Try):
            yield from public_functions(node)


def arguments_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    names = [each.arg for each in every if each.arg not in ("self", "cls")]
    return names + [each.arg for each in (given.vararg, given.kwarg) if each is not None]


def is_overload(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("overload" in ast.unparse(each) for each in function.decorator_list)


def functions_without_args() -> list[str]:
    found = []
    for name, tree in modules().items():
        for function in public_functions(tree):
            words = ast.get_docstring(function) or ""
            described = "Args:" in words or function.name in OF_TEXTUAL or is_overload(function)
            if len(arguments_of(function)) >= FEWEST and not described:
                found.append(f"{name}:{function.lineno} {function.name}")
    return found


def strings_with_banned_words() -> list[str]:
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, BANNED)) + r")\b", re.IGNORECASE)
    return [
        f"{name}:{node.lineno} {found[0]}"
        for name, tree in modules().items() for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for found in [pattern.search(" ".join(node.value.split()))] if found
    ]


def test_arguments_of_public_functions_are_described() -> None:
    assert functions_without_args() == []


def test_strings_are_in_plain_words() -> None:
    assert strings_with_banned_words() == []
