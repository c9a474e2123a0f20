"""What may be imported when, asked of fresh processes."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import store

ROOT = Path(__file__).parents[2]
LIGHT = (
    "store", "store.system.clock", "store.ids", "store.rows", "store.engine.schema",
    "store.engine.form", "store.engine.companions", "store.engine.access", "store.engine.database",
    "store.engine.opening", "store.errors", "store.text.neutral", "store.system.locations",
    "store.config", "store.engine.prompts", "store.engine.reading", "store.engine.values",
    "store.queries.sessions", "store.queries.messages",
)  # fmt: skip
SHARED = {"store.sources.registry", "store.exports.registry"}
"""They load every source and every format, so no rule of one holds for them."""
COMMON = {"base"}
"""The folder beside the sources' own that every source may use."""
STATEMENT = re.compile(r"\s*(SELECT|INSERT INTO|INSERT OR \w+ INTO|UPDATE \w+ SET|DELETE FROM)\s")
HEAVY = ("textual", "pydantic", "markdown_it", "pygments", "rich", "asyncio")


def imported_by(*modules: str) -> set[str]:
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(result.stdout.split())


def submodules() -> list[str]:
    """Every module of the package, but those that run when they are imported."""
    found = pkgutil.walk_packages(store.__path__, "store.")
    return [module.name for module in found if not module.name.endswith("__main__")]


def test_the_store_never_imports_the_screen() -> None:
    imported = imported_by("store", *submodules())
    assert "store.store" in imported
    assert {"textual", "tui"} & imported == set()


def test_what_the_first_paint_needs_imports_nothing_heavy() -> None:
    assert set(HEAVY) & imported_by(*LIGHT) == set()


def test_the_public_names_come_when_they_are_asked_for() -> None:
    assert {"asyncio", "pydantic", "store.store"} & imported_by("store") == set()
    for name in store.__all__:
        assert getattr(store, name).__name__ == name
    assert set(store.__all__) <= set(dir(store))
    with pytest.raises(AttributeError, match="nothing"):
        _ = store.nothing


def modules(package: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the name and the code of each module below a package."""
    for path in sorted((ROOT / package.replace(".", "/")).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        yield name, ast.parse(path.read_text("utf-8"))


def named_in(code: ast.Module) -> Iterator[str]:
    """Yield the names of all that a module imports, also inside of functions."""
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("kind", ["sources", "exports"])
def test_sources_and_exports_know_nothing_of_each_other(kind: str) -> None:
    package = f"store.{kind}"
    folders = {path.name for path in (ROOT / "store" / kind).iterdir() if path.is_dir()} - COMMON
    other = {"sources": "store.exports", "exports": "store.sources"}[kind]
    found = []
    for name, code in modules(package):
        own = name.split(".")[2] if name.count(".") > 1 else ""
        for imported in named_in(code):
            steps = imported.split(".")
            is_folder = imported.startswith(f"{package}.") and steps[2] in folders
            if imported.startswith(other) or (is_folder and steps[2] != own):
                found.append((name, imported))
    assert [pair for pair in found if pair[0] not in SHARED] == []


def test_sql_stands_in_the_store_only() -> None:
    assert STATEMENT.match("SELECT 1 FROM chat_sessions") and not STATEMENT.match("Select a part")
    found = [
        (name, node.value)
        for name, code in modules("tui")
        for node in ast.walk(code)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        and STATEMENT.match(node.value)
    ]
    assert found == []
