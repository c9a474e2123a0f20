"""Docstrings say what each argument is, and strings are in plain words.

The counts may only shrink: where a folder has fewer than its number here, lower the number.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("backscroll", "store", "tui")
FEWEST = 3
"""Arguments from which a docstring has to describe them."""

OF_TEXTUAL = {"get_content_height", "get_content_width", "notify", "watch_scroll_y", "render_lines"}
"""Methods that Textual calls or has; its documentation describes their arguments."""

WITHOUT_ARGS: dict[str, int] = {
    "store/recorder": 4,
    "store/store.py": 2,
    "store/sync": 31,
    "tui/app.py": 1,
    "tui/kit": 1,
    "tui/messages.py": 1,
    "tui/state": 1,
}
"""Public functions that have three arguments or more and do not describe them, by folder."""

BANNED = (
    "is told", "are told", "told of", "stands in", "by whom", "its like", "of ours", "let go",
    "breaks it off", "broke off",
)
"""Phrases that are plainer in other words."""

WITH_BANNED: dict[str, int] = {
    "store/activity": 1,
    "store/engine": 11,
    "store/queries": 3,
    "store/recorder": 5,
    "store/resume": 1,
    "store/sources": 6,
    "store/sync": 12,
    "store/verbs": 3,
    "tui/app.py": 1,
    "tui/keys": 1,
    "tui/sessions": 1,
    "tui/transcript": 2,
}
"""Docstrings and other strings with one of these, by folder."""


@cache
def modules() -> dict[str, ast.Module]:
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
        for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
    }


def folder_of(name: str) -> str:
    """The room: the first two folders, or the module that lies beside them."""
    parts = name.split("/")
    return "/".join(parts[:2])


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


def grown(found: list[str], allowed: dict[str, int]) -> list[str]:
    """What is found in the folders that have more than they may."""
    counts = Counter(folder_of(each.split(":")[0]) for each in found)
    more = {folder for folder, count in counts.items() if count > allowed.get(folder, 0)}
    return [each for each in found if folder_of(each.split(":")[0]) in more]


def test_arguments_of_public_functions_are_described() -> None:
    assert grown(functions_without_args(), WITHOUT_ARGS) == []


def test_strings_are_in_plain_words() -> None:
    assert grown(strings_with_banned_words(), WITH_BANNED) == []
