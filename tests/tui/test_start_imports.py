"""The first paint must not wait for the slow half of the libraries."""

from __future__ import annotations

import importlib
import pkgutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tui.stores import put, some

PRESENCE = "store.activity.presence"
SLOW = ("pydantic", "store.engine.async_database", "markdown_it", "pygments", "watchfiles",
        "zstandard", "pyperclip")
NOT_YET_SHOWN = ("tui.dialogs.choose", "tui.kit.line_view", "tui.words.calls",
                 "store.conversation.touched", "tui.keys.registry", "store.queries.places",
                 "orjson", "tui.query.line", "tui.kit.text_line", "store.engine.server_url")
"""What no first screen shows: dialogs, calls in words, commands of other screens, marks, lines
to type into."""

ROOMS_OF_LATER = ("store.stats", "store.prices", "store.sharing", "store.exports", "tui.serve")
WITH_COMMANDS = ("tui.stats", "tui.share")
"""Rooms of which the first screen needs the declarations of their commands alone."""

FIRST_PAINT = """
import asyncio, sys
from pathlib import Path
from tui.browser import browser_request
from store.config import quick_config
from tui.start.startup import open_library
from tui.app import BackscrollApp

class Probe(BackscrollApp):
    def _after_first_paint(self):
        view = self.main.sessions.view
        painted = "".join(view.render_line(y).text for y in range(20))
        print("Session 0" in painted, sorted(
            name for name in sys.modules
            if any(f"{name}.".startswith(f"{each}.") for each in sys.argv[2:])))

async def run():
    request = browser_request(["--store", sys.argv[1]])
    app = Probe(open_library(request.target, request.store), quick_config(), poll_ms=0)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.pause()

asyncio.run(run())
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_rows_are_painted_before_slow_imports(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(5))
    assert run(FIRST_PAINT, str(path), *SLOW) == "True []\n"


def test_the_first_screen_waits_for_nothing_that_it_does_not_show(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(5))
    assert run(FIRST_PAINT, str(path), *NOT_YET_SHOWN) == "True []\n"


def test_the_first_screen_waits_for_no_statistics_prices_and_sharing(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(5))
    parts = [
        f"{room}.{module.name}" for room in WITH_COMMANDS
        for module in pkgutil.iter_modules(importlib.import_module(room).__path__)
        if module.name != "commands"
    ]
    assert len(parts) > 8
    assert run(FIRST_PAINT, str(path), *ROOMS_OF_LATER, *parts) == "True []\n"


def test_no_process_is_asked_for_before_the_rows_are_painted(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", some(5))
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE chat_sessions SET updated_at = ?, metadata_json = json_patch(metadata_json,"
            """ '{"source": {"kind": "pi", "id": "x", "path": "/x"}, "activity":"""
            """ {"state": "running", "from": "guessed"}}')""", (int(time.time() * 1000),))
    connection.close()
    assert run(FIRST_PAINT, str(path), PRESENCE) == "True []\n"


@pytest.mark.parametrize("module", ["store.store", "store.queries.listing", "store.sync.engine"])
def test_the_store_never_imports_textual(module: str) -> None:
    code = f"import sys, {module}; print('textual' in sys.modules)"
    assert run(code) == "False\n"


def test_a_command_needs_no_textual() -> None:
    code = (
        "import sys; from tui.__main__ import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print('textual.app' in sys.modules)"
    )
    assert run(code).splitlines()[-1] == "False"


def test_asyncio_is_imported_without_tls_and_only_asyncio() -> None:
    code = (
        "import sys; from tui.start.lighter import import_asyncio\n"
        "import_asyncio(); print('asyncio' in sys.modules, 'ssl' in sys.modules)\n"
        "import ssl; print(sys.modules['asyncio.sslproto'].ssl, ssl.__name__)"
    )
    assert run(code) == "True False\nNone ssl\n"


def test_a_browser_that_reads_loads_no_openssl() -> None:
    code = (
        "import sys; from tui.start.lighter import import_asyncio\n"
        "import_asyncio(); import tui.app, store.store, tui.main.screen\n"
        "import tui.transcript.pane, tui.inspector.pane, tui.sessions.filter_line\n"
        "print({'_ssl', '_hashlib'} & set(sys.modules))"
    )
    assert run(code) == "set()\n"
