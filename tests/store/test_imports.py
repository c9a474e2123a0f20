"""What may be imported when, asked of fresh processes."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import store

ROOT = Path(__file__).parents[2]
LIGHT = (
    "store", "store.clock", "store.ids", "store.rows", "store.schema", "store.form", "store.copies",
    "store.access", "store.database", "store.opening", "store.errors", "store.neutral",
    "store.locations", "store.config", "store.prompts", "store.queries.reading",
    "store.queries.sessions", "store.queries.messages",
)  # fmt: skip
HEAVY = ("textual", "pydantic", "aiosqlite", "markdown_it", "pygments", "rich", "asyncio")


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
    assert {"aiosqlite", "pydantic", "store.store"} & imported_by("store") == set()
    for name in store.__all__:
        assert getattr(store, name).__name__ == name
    assert set(store.__all__) <= set(dir(store))
    with pytest.raises(AttributeError, match="nothing"):
        _ = store.nothing
