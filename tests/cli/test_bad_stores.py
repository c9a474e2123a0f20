"""Everything that may be handed in as a store and is none, through the command line."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def make(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("command", [["sessions"], ["show", "x"], ["export", "x", "--to", "json"]])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02" * 400, "not a SQLite"),
        (b"SQLite format 3\x00" + b"\xff" * 600, ""),
    ],
)
def test_files_that_are_no_store(
    run: Run, tmp_path: Path, command: list[str], content: bytes, reason: str
) -> None:
    path = make(tmp_path / "file", content)
    result = run(*command, "--store", path)
    assert (result.code, result.out) == (1, "")
    assert str(path) in result.err and result.err.count("\n") == 1
    assert reason.lower() in result.err.lower()
    assert path.read_bytes() == content


def test_a_missing_file_is_not_made(run: Run, tmp_path: Path) -> None:
    result = run("sessions", "--store", tmp_path / "missing.db")
    assert result.code == 1 and "missing.db" in result.err
    assert not (tmp_path / "missing.db").exists()


def test_a_folder(run: Run, tmp_path: Path) -> None:
    result = run("sessions", "--store", tmp_path)
    assert result.code == 1 and "folder" in result.err


def test_a_torn_store(run: Run, demo: Path) -> None:
    content = demo.read_bytes()
    demo.write_bytes(content[: len(content) // 2])
    result = run("sessions")
    assert result.code == 1 and str(demo) in result.err and result.err.count("\n") == 1


def test_sqlite_without_the_tables(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE things (id)")
    connection.close()
    result = run("sessions", "--store", path)
    assert result.code == 1 and "chat_sessions" in result.err


def test_a_newer_version_is_read_and_not_written(run: Run, demo: Path) -> None:
    with sqlite3.connect(demo) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    listed = run("sessions", "--json")
    assert len(listed.json) == 20 and "opened read only" in listed.err
    result = run("forget", "retry-loop")
    assert result.code == 1 and "written by a newer Backscroll" in result.err
    assert run("show", "retry-loop").code == 0


def test_a_change_waits_for_another_writer_and_says_so(
    run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = sqlite3.connect(demo, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("store.engine.schema.CONNECTION_PRAGMAS", ("PRAGMA busy_timeout = 1",))
    told: list[str] = []

    @contextlib.contextmanager
    def showing() -> Iterator[Callable[[str, int, int], None]]:
        def show(what: str, _done: int, _total: int) -> None:
            told.append(what)
            writer.close()

        yield show

    monkeypatch.setattr("tui.cli.verbs.showing", showing)
    assert run("archive", "retry-loop").code == 0
    assert told == ["waiting: another program writes to the store"]


def test_a_locked_store_can_be_read(
    run: Run, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = sqlite3.connect(demo, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert run("sessions").code == 0
        monkeypatch.setattr("store.engine.schema.CONNECTION_PRAGMAS", ("PRAGMA busy_timeout = 1",))
        monkeypatch.setattr("store.engine.transactions.VERB_PATIENCE_S", 0)
        result = run("archive", "retry-loop")
        assert (result.code, result.out) == (1, "")
        assert f"{demo} is locked by another program; wait until it is done" in result.err
    finally:
        writer.close()


@pytest.mark.skipif(os.getuid() == 0, reason="the superuser may write anything")
def test_a_file_that_may_not_be_written(run: Run, demo: Path) -> None:
    demo.chmod(0o400)
    assert run("sessions").code == 0
    assert run("forget", "retry-loop").code == 1


def test_a_server(run: Run) -> None:
    result = run("sessions", "--store", "postgresql://localhost:1/none")
    assert result.code == 1 and "cannot be reached: Connection refused" in result.err
