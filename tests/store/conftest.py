from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.engine.opening import open_target
from tests.sources.postgres_server import Server
from tests.store.engines import Form, Fresh, ServerStores, fill
from tests.store.making import own
from tests.store.talks import Talk, make_store


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every test out of the user's own folders."""
    for name in ("DATA", "CONFIG", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))


QUICK_ON_A_SERVER = frozenset((
    "test_archive", "test_contract", "test_details_query", "test_fork", "test_host_store",
    "test_known_values", "test_marks", "test_recorder_parts", "test_restore", "test_rewind",
    "test_undo", "test_versions",
))  # fmt: skip
"""Modules whose tests run on a server each time; those of others are among the long ones."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests about files out on a server, and most others to the long ones."""
    left_out = set()
    for item in filter(_is_on_server, items):
        if item.get_closest_marker("file"):
            left_out.add(item)
        elif item.path.stem not in QUICK_ON_A_SERVER:
            item.add_marker(pytest.mark.long)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _is_on_server(item: pytest.Item) -> bool:
    of = getattr(item, "callspec", None)
    names = ("engine", "talk", "own_talk", "of_any_form", "of_each_form", "sessions")
    return of is not None and any(str(of.params.get(each)).startswith("server") for each in names)


@pytest.fixture(scope="session")
def server_stores(postgres: Server) -> Iterator[ServerStores]:
    """Empty stores on a server of this process of tests."""
    with contextlib.closing(ServerStores(postgres)) as stores:
        yield stores


@pytest.fixture
def url(server_stores: ServerStores) -> Iterator[str]:
    """An empty store on a server."""
    with server_stores.lent() as found:
        yield found


@pytest.fixture(params=["file", "server"])
def engine(request: pytest.FixtureRequest) -> str:
    """Where the stores of a test are: in files, or on a server."""
    return str(request.param)


@pytest.fixture
def location(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where an empty library is: the path of its file, or its URL on a server."""
    if engine == "file":
        yield str(own(tmp_path / "library.db"))
        return
    with request.getfixturevalue("server_stores").lent() as url:
        yield url


@pytest.fixture
def db(location: str) -> Iterator[Database]:
    """An empty library, open for writing."""
    with contextlib.closing(open_target(location, write=True)) as database:
        yield database


@pytest.fixture
def fresh(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Fresh:
    """A function that lends one more empty library, such as for an example of many."""
    numbers = count(1)

    @contextlib.contextmanager
    def lent() -> Iterator[Database]:
        with contextlib.ExitStack() as stack:
            place = str(tmp_path / f"library-{next(numbers)}.db")
            if engine == "server":
                place = stack.enter_context(request.getfixturevalue("server_stores").lent())
            opening = open_target(place, create=engine == "file", write=True)
            yield stack.enter_context(contextlib.closing(opening))

    return lent


@pytest.fixture(params=["own", "contract", "server", "server contract"])
def of_any_form(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty store of our own form and of a host's, in a file and on a server."""
    with _of_form(request, tmp_path) as database:
        yield database


@pytest.fixture(params=["own", "contract", "grida", "server", "server contract"])
def of_each_form(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty store of each form that there is."""
    with _of_form(request, tmp_path) as database:
        yield database


@pytest.fixture
def opened(engine: str, request: pytest.FixtureRequest) -> Iterator[Callable[[Path], Database]]:
    """A function that opens a library file for reading, or a copy of it on a server."""
    with contextlib.ExitStack() as stack:

        def open_one(path: Path) -> Database:
            found = stack.enter_context(contextlib.closing(open_database(path, write=False)))
            if engine == "file":
                return found
            url = stack.enter_context(request.getfixturevalue("server_stores").lent())
            with contextlib.closing(open_target(url, write=True)) as copy:
                fill(copy, found)
            return stack.enter_context(contextlib.closing(open_target(url)))

        yield open_one


@pytest.fixture(params=["own", "contract", "grida", "server"])
def talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    """A store of each form, and one of our own form on a server."""
    with _of_form(request, tmp_path) as database:
        yield Talk(database)


@pytest.fixture(params=["own", "server"])
def own_talk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Talk]:
    """A store of our own form, in a file and on a server."""
    with _of_form(request, tmp_path) as database:
        yield Talk(database)


@contextlib.contextmanager
def _of_form(request: pytest.FixtureRequest, folder: Path) -> Iterator[Database]:
    """Open an empty store of a form, for writing."""
    if not request.param.startswith("server"):
        with contextlib.closing(make_store(folder / "store.db", request.param)) as database:
            yield database
        return
    form: Form = "contract" if request.param == "server contract" else "own"
    with (request.getfixturevalue("server_stores").lent(form) as url,
          contextlib.closing(open_target(url, write=True)) as database):
        yield database
