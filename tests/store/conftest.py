from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engine.database import Database
from store.engine.opening import open_target
from tests.store.engines import new_server_store
from tests.store.talks import Talk, make_store


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every test out of the user's own folders."""
    for name in ("DATA", "CONFIG", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))


QUICK_ON_A_SERVER = frozenset(("test_archive", "test_rewind", "test_undo"))
"""Modules whose tests run on a server each time; those of others are among the long ones."""
NOT_YET_ON_A_SERVER: frozenset[str] = frozenset()
"""Modules about what does not work on a server yet."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests about files out on a server, and most others to the long ones."""
    left_out = []
    for item in filter(_is_on_server, items):
        module = item.path.stem
        if item.get_closest_marker("file") or module in NOT_YET_ON_A_SERVER:
            left_out.append(item)
        elif module not in QUICK_ON_A_SERVER:
            item.add_marker(pytest.mark.long)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_on_server(item: pytest.Item) -> bool:
    of = getattr(item, "callspec", None)
    return of is not None and "server" in (
        of.params.get("talk"), of.params.get("own_talk"), of.params.get("db"))


@pytest.fixture(params=["own", "contract", "grida", "server"])
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    """A store of each form, and one of our own form on a server."""
    db = _made(request, tmp_path)
    yield Talk(db)
    db.close()


@pytest.fixture(params=["own", "server"])
def own_talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    """A store of our own form, in a file and on a server."""
    db = _made(request, tmp_path)
    yield Talk(db)
    db.close()


def _made(request: pytest.FixtureRequest, folder: Path) -> Database:
    if request.param != "server":
        return make_store(folder / "store.db", request.param)
    return open_target(new_server_store(request.getfixturevalue("postgres")), write=True)
