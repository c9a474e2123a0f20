from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.demo import make_demo
from store.engine.database import Database, open_database
from tests.store.talks import Talk

NOW = 1_790_000_000_000


@pytest.fixture(scope="session")
def demo_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_demo(tmp_path_factory.mktemp("demo") / "demo.db", lambda: NOW)


@pytest.fixture
def demo(demo_path: Path) -> Iterator[Database]:
    database = open_database(demo_path, write=False)
    yield database
    database.close()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Database]:
    database = open_database(tmp_path / "empty.db", create=True)
    yield database
    database.close()


@pytest.fixture
def opened() -> Iterator[Callable[[Path], Database]]:
    """Opens stores for reading, and closes them."""
    databases: list[Database] = []

    def open_one(path: Path) -> Database:
        databases.append(open_database(path, write=False))
        return databases[-1]

    yield open_one
    for database in databases:
        database.close()


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    database = open_database(tmp_path / "talk.db", create=True)
    yield Talk(database)
    database.close()
