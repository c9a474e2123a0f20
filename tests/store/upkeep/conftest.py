from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from store.demo import make_demo

NOW = 1_790_000_000_000


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_demo(tmp_path_factory.mktemp("pristine") / "library.db", lambda: NOW)


@pytest.fixture
def library(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library with the sessions of the demo, private as one that we make."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name))
    path = folder / "library.db"
    shutil.copy(pristine, path)
    path.chmod(0o600)
    return path


Sql = Callable[..., list[tuple[object, ...]]]


@pytest.fixture
def sql() -> Sql:
    def run(path: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            return connection.execute(statement, values).fetchall()
        finally:
            connection.close()

    return run
