from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.talks import Talk, make_store


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every test out of the user's own folders."""
    for name in ("DATA", "CONFIG", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))


@pytest.fixture(params=["own", "contract", "grida"])
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    """A store of each form."""
    db = make_store(tmp_path / "store.db", request.param)
    yield Talk(db)
    db.close()


@pytest.fixture
def own_talk(tmp_path: Path) -> Iterator[Talk]:
    """A store of our own form."""
    db = make_store(tmp_path / "store.db", "own")
    yield Talk(db)
    db.close()
