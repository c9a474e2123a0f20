"""Which rooms may import which; no import circle.

Imports inside functions count. Those for the type checker count where circles are looked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def modules(package: str) -> dict[str, Path]:
    """Return the modules of a package by name."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: dict[str, Path], *, types: bool = False) -> set[str]:
    """Return the known modules that a module imports anywhere, by statement or by name.

    Args:
        path: The module's file.
        known: Modules by name.
        types: Whether imports for the type checker alone count.
    """
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree) if types else _nodes(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                found.add(inner if inner in known else node.module)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node):
            texts = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
            found |= {text for text in texts if isinstance(text, str)}
    return found & known.keys()


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree, but not into what is for the type checker alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from _nodes(other)
            continue
        yield child
        yield from _nodes(child)


def graph(package: str, *, types: bool = False) -> dict[str, set[str]]:
    """Return what each module of a package imports of the package."""
    known = modules(package)
    return {name: imported(path, known, types=types) - {name} for name, path in known.items()}


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, by Tarjan's algorithm."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            group = stack[stack.index(name):]
            del stack[stack.index(name):]
            if len(group) > 1:
                found.append(sorted(group))

    for name in edges:
        if name not in number:
            visit(name)
    return found


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles(graph("tui")) == []
    assert circles(graph("tui", types=True)) == []


def test_only_the_start_imports_the_app() -> None:
    edges = graph("tui", types=True)
    importers = {name for name, imports in edges.items() if "tui.app" in imports}
    assert {name.split(".")[1] for name in importers} == {"__main__", "screenshots"}
    importers = {name for name, imports in edges.items() if "tui.main.screen" in imports}
    assert importers == {"tui.app", "tui.main.commands"}


def test_the_kit_imports_no_room() -> None:
    known = modules("tui")
    for name, path in known.items():
        if name.startswith("tui.kit."):
            rooms = {other for other in imported(path, known) if not other.startswith("tui.kit")}
            assert rooms <= {"tui.host"}, name


def test_the_store_does_not_import_the_browser() -> None:
    known = modules("tui")
    for name, path in modules("store").items():
        assert imported(path, known) == set(), name
