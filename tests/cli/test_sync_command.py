from __future__ import annotations

import os
import shlex
import sqlite3
from pathlib import Path

import pytest

from store.search.index.checking import check
from tests.cli.conftest import Run
from tui.cli import sync


def test_the_usual_places_into_the_library(run: Run, claude_home: Path) -> None:
    result = run("sync", "--json")
    assert result.code == 0
    assert set(result.json) == {"units", "read", "new", "updated", "problems", "stopped",
                                "seconds", "unreadable"}
    assert (result.json["new"], result.json["read"], result.json["problems"]) == (1, 1, 1)
    assert "1 problem; see: backscroll sources --problems" in result.err
    (summary,) = run("sessions", "--json").json
    assert summary["source"]["id"] == "11111111-2222-4333-8444-555555555555"
    assert summary["message_count"] == 2 and summary["workspace_root"] == "/home/mira/code"
    again = run("sync", "--json").json
    assert (again["new"], again["updated"], again["read"]) == (0, 0, 0)


def test_a_sync_leaves_an_index_that_takes_long_to_the_next(
    run: Run, claude_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = tmp_path / "library.db"
    monkeypatch.setattr(sync, "INDEXING_S", 0.0)
    result = run("sync", "--store", store)
    assert result.code == 0 and result.out.startswith("1 new")
    assert "0 of 0 messages are in the search index" in result.err
    assert len(run("sessions", "--json", "--store", store).json) == 1
    monkeypatch.setattr(sync, "INDEXING_S", 60.0)
    again = run("sync", "--store", store, "--json")
    assert again.json["new"] == 0 and "search index" not in again.err
    assert check(store) == []


def test_a_folder_and_a_kind_by_name(run: Run, claude_home: Path, tmp_path: Path) -> None:
    moved = claude_home.rename(tmp_path / "elsewhere")
    store = tmp_path / "other.db"
    result = run("sync", moved, "--store", store)
    assert result.code == 0
    assert result.out.startswith("1 new and 0 changed sessions from 1 of 1 files")
    assert run("sync", "claude-code", "--store", store).out.startswith("no sessions found")


def test_a_source_by_nearly_its_name(run: Run) -> None:
    result = run("sync", "claude")
    assert result.code == 1
    assert result.err == "backscroll: claude does not exist. Did you mean the source claude-code?\n"


def test_problems_of_another_store_are_listed_by_what_is_printed(
    run: Run, claude_home: Path, tmp_path: Path
) -> None:
    store = tmp_path / "a b.db"
    command = run("sync", "--store", store).err.rpartition("see: backscroll ")[2]
    assert "✗ 1 problem" in run(*shlex.split(command)).out


@pytest.mark.long
def test_what_cannot_be_synced(run: Run, tmp_path: Path, demo: Path) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name, reason in ((tmp_path / "missing", "does not exist"),
                         (tmp_path / "empty", "has no sessions"),
                         (tmp_path / "pipe.jsonl", "is not a file or folder")):
        result = run("sync", name)
        assert result.code == 1 and reason in result.err and result.err.count("\n") == 1
    other = "is not the database of a known agent; to browse it as a store, run"
    for root, reason in (
        ("n" * 300, f"{'n' * 300} cannot be read: File name too long"),
        (os.fsdecode(b"\xff"), "\N{REPLACEMENT CHARACTER} does not exist"),
        (str(demo), f"{demo} {other} 'backscroll {demo}'"),
    ):
        result = run("sync", root)
        assert (result.code, result.err) == (1, f"backscroll: {reason}\n")
    empty = run("sync", "")
    assert empty.code == 2 and "the name of a source is empty" in empty.err


@pytest.mark.parametrize(
    ("leads_to", "reason"),
    [("claude", "cannot be read: Too many levels of symbolic links"),
     ("gone", "is a link to gone, which is not there")],
)  # fmt: skip
@pytest.mark.one_in(2)
def test_a_place_that_cannot_be_read(
    run: Run, claude_home: Path, tmp_path: Path, leads_to: str, reason: str
) -> None:
    run("sync")
    claude_home.rename(tmp_path / "away")
    claude_home.symlink_to(claude_home.name if leads_to == "claude" else leads_to)
    result = run("sync")
    assert result.code == 1
    assert result.out == "no sessions could be read\n"
    assert result.err.splitlines()[0] == f"{claude_home} {reason}"
    assert run("sync", "--json").json["unreadable"] == [f"{claude_home} {reason}"]
    (place,) = [one for one in run("sources", "--problems", "--json").json
                if one["path"] == str(claude_home)]  # fmt: skip
    assert place["reason"] == reason
    assert place["problem_list"][0]["reason"] == reason
    assert f"1 session; it {reason}" in run("sources").out
    # What the library has of it stays, and the place is read again when it is there.
    assert len(run("sessions", "--json").json) == 1
    claude_home.unlink()
    (tmp_path / "away").rename(claude_home)
    assert run("sync").code == 0


@pytest.mark.long
def test_a_store_with_a_damaged_page(run: Run, demo: Path, claude_home: Path) -> None:
    run("sync")
    with sqlite3.connect(demo) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'source_units'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with demo.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xee" * size)
    result = run("sync")
    assert result.code == 1
    assert result.err == (
        f"backscroll: {demo} is a damaged SQLite file (database disk image is malformed); restore a"
        f" backup, or save what it still has with `sqlite3 {demo.name} .recover`\n"
    )
