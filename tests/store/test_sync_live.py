"""Recorded runs, synced after every append: the store ends as one sync of the files has it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from store.engine.database import open_database
from store.sources import registry
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.store.sync_fakes import SIDE_TABLES, TABLES, dump

LIVE = Path(__file__).parent.parent / "data" / "claude-code" / "live"


def appends(name: str) -> list[tuple[str, bytes]]:
    lines = (LIVE / f"{name}.timeline.jsonl").read_text().splitlines()
    events = sorted((json.loads(line) for line in lines), key=lambda event: event["t"])
    return [
        (event["file"], event["append"].encode("utf-8", "surrogateescape"))
        for event in events
        if "append" in event
    ]


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("name", ["2.1.332-terminal", "2.1.332-print", "2.0.77-print"])
def test_followed_is_the_same_as_read_once(name: str, torn: bool, tmp_path: Path) -> None:
    root = tmp_path / "claude"
    database = open_database(tmp_path / "live.db", create=True)
    target = Target(registry.source("claude-code"), root)
    (root / "projects").mkdir(parents=True)
    for file, body in appends(name):
        path = root / "projects" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        half = len(body) // 2 if torn else 0
        for piece in filter(None, (body[:half], body[half:])):
            with path.open("ab") as out:
                out.write(piece)
            Sync(database, Settings(helpers=0)).run([target])
    total = database.connection.total_changes
    assert Sync(database, Settings(helpers=0)).run([target]).read == 0
    assert database.connection.total_changes == total
    assert database.connection.execute("SELECT * FROM source_problems").fetchall() == []
    other = open_database(tmp_path / "once.db", create=True)
    Sync(other, Settings(helpers=0)).run([Target(registry.source("claude-code"), root)])
    assert dump(database, (*TABLES, *SIDE_TABLES)) == dump(other, (*TABLES, *SIDE_TABLES))
    assert dump(other)["chat_parts"]
    database.close()
    other.close()


def test_the_samples_sync_in_any_order_and_only_once(tmp_path: Path) -> None:
    """Parents and children link up whoever is read first; the sources stay as they were."""
    rows = []
    for order in (1, -1):
        here = tmp_path / "same" / "home"
        shutil.copytree(LIVE.parent / "home", here)
        files = sorted(path for path in here.rglob("*") if path.is_file())
        for number, path in enumerate(files):
            os.utime(path, ns=((10_000 + order * number) * 10**9,) * 2)
        before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
        database = open_database(tmp_path / f"{order}.db", create=True)
        target = Target(registry.source("claude-code"), here / ".claude")
        Sync(database, Settings(helpers=0)).run([target])
        total = database.connection.total_changes
        again = Sync(database, Settings(helpers=0)).run([target])
        assert (again.read, database.connection.total_changes) == (0, total)
        assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files} == before
        assert sorted(path for path in here.rglob("*") if path.is_file()) == files
        rows.append(dump(database, (*TABLES, *SIDE_TABLES)))
        database.close()
        shutil.rmtree(tmp_path / "same")
    assert rows[0] == rows[1]
    assert rows[0]["chat_sessions"]
