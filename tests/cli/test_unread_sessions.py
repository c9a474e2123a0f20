"""Sessions that are listed and not read yet: what the commands say instead of nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.engine.database import open_database
from tests.cli.conftest import Run, home, run
from tests.sources.samples import FIRST
from tests.store.test_sync_outlines import listed_only

__all__ = ["home", "run"]


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "listed.db"
    database = open_database(path, create=True)
    listed_only(database, FIRST["pi"])
    database.close()
    return str(path)


def test_the_list_does_not_count_what_is_not_read(store: str, run: Run) -> None:
    found = run("sessions", "--json", "--store", store).json
    assert len(found) == 3
    names = ("message_count", "hidden_count", "queued_count", "turn_count")
    assert [one[name] for one in found for name in names] == [None] * 4 * len(found)
    lines = run("sessions", "--store", store).out.splitlines()
    assert all("not read yet" in line and "0 msgs" not in line for line in lines)


@pytest.mark.parametrize("command", [
    ("show",), ("show", "--json"), ("show", "--files"), ("show", "--commands"),
    ("export", "--to", "json"), ("export", "--to", "html"), ("export", "--to", "codex"),
    ("resume", "--in", "codex", "--print"),
])  # fmt: skip
def test_what_needs_messages_says_that_they_are_not_read(
    command: tuple[str, ...], store: str, run: Run
) -> None:
    session = run("sessions", "--json", "--store", store).json[0]["id"]
    done = run(command[0], session, *command[1:], "--store", store)
    assert (done.code, done.out) == (1, "")
    assert "messages are not read yet" in done.err and "backscroll sync" in done.err


def test_all_sessions_that_are_not_read_are_named_and_not_written(
    store: str, run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run("export", "--all", "--to", "jsonl", "--out", str(out), "--store", store)
    assert done.code == 1 and done.err.count("messages are not read yet") == 3
    assert not list(out.glob("*.jsonl"))


def test_the_tree_does_not_count_the_turns_of_what_is_not_read(store: str, run: Run) -> None:
    session = run("sessions", "--json", "--store", store).json[0]["id"]
    text = run("tree", session, "--store", store).out
    assert "not read yet" in text and "0 turns" not in text
    assert {one["turns"] for one in run("tree", session, "--json", "--store", store).json} == {None}
