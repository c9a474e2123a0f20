"""Sessions between stores from the command line: ``copy``, and ``sync`` to a team's server."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from store.demo import make_demo
from store.engine.opening import open_target
from tests.cli.conftest import Run, configure
from tests.sources.postgres_server import Server
from tests.store.engines import new_host_database, new_server_store

NOW = 1_795_900_000_000


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    return make_demo(tmp_path / "demo.db", lambda: NOW)


def ids_in(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    found = {one for (one,) in connection.execute("SELECT id FROM chat_sessions")}
    connection.close()
    return found


def test_copy_to_a_server_and_back(run: Run, demo: Path, tmp_path: Path, postgres: Server) -> None:
    url, back = new_server_store(postgres), tmp_path / "back.db"
    there = run("copy", demo, url, "--json").json
    assert there["copied"] == there["total"] == len(ids_in(demo)) and not there["failed"]
    again = run("copy", demo, f"{url}&zz=1")
    assert again.code == 0 and again.out.startswith("0 sessions copied, 21 already there")
    said = f"{url}&zz=1: the parameter zz is not understood and left out"
    assert said in again.err and said in run("sessions", "--store", f"{url}&zz=1").err
    found = run("copy", url, back, "--json").json
    assert found["hashes"] == there["hashes"] and ids_in(back) == ids_in(demo)


def test_some_sessions_by_name_or_query(run: Run, demo: Path, tmp_path: Path) -> None:
    chosen = next(iter(ids_in(demo)))
    assert run("copy", demo, tmp_path / "one.db", chosen).code == 0
    assert chosen in ids_in(tmp_path / "one.db")
    found = run("copy", demo, tmp_path / "some.db", "--query", "agent:codex", "--json").json
    assert 0 < found["copied"] < len(ids_in(demo))
    wrong = run("copy", demo, tmp_path / "x.db", chosen, "--query", "a")
    assert wrong.code == 2 and not (tmp_path / "x.db").exists()


@pytest.mark.long
def test_what_differs_is_named(run: Run, demo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    run("copy", demo, other)
    connection = sqlite3.connect(other)
    connection.execute("UPDATE chat_sessions SET agent = 'x' WHERE id = ?", (min(ids_in(demo)),))
    connection.commit()
    connection.close()
    result = run("copy", demo, other)
    assert result.code == 1 and "1 session there with other rows" in result.err
    assert run("copy", demo, other, "--replace").code == 0
    assert run("copy", demo, demo).code == 1


def test_sync_brings_sessions_to_the_server(
    run: Run, claude_home: Path, postgres: Server, home: Path
) -> None:
    url = new_server_store(postgres)
    configure(home, '[team]\nowner = "Ada"\n')
    result = run("sync", "--store", url, "--json")
    assert result.code == 0
    assert (result.json["new"], result.json["shared"]["new"]) == (1, 1)
    (session,) = run("sessions", "--json", "--query", "owner:ada", "--store", url).json
    assert session["metadata"]["owner"] == "Ada"
    again = run("sync", "--store", url)
    assert again.code == 0 and "0 new sessions and 0 changed brought to" in again.out
    # Forgotten there, it does not come again.
    gone = run("forget", session["id"], "--yes", "--store", url, "--json")
    assert (gone.code, gone.err) == (0, "")
    assert gone.json == {"forgotten": [session["id"]]}
    lines = next(claude_home.rglob("*.jsonl"))
    lines.write_text(lines.read_text() + json.dumps({"type": "summary", "summary": "x"}) + "\n")
    run("sync", "--store", url)
    assert run("sessions", "--json", "--store", url).json == []


def test_sources_of_a_team_count_what_was_brought(
    run: Run, claude_home: Path, postgres: Server, tmp_path: Path
) -> None:
    url, empty = new_server_store(postgres), new_server_store(postgres)
    moved = tmp_path / "elsewhere" / ".claude"
    copied = next(claude_home.rglob("*.jsonl"))
    other = moved / "projects" / "there" / "0b0b0b0b-0000-4000-8000-000000000001.jsonl"
    other.parent.mkdir(parents=True)
    other.write_text(copied.read_text().replace(copied.stem, other.stem))

    def counted(store: str) -> dict[str, int]:
        found = run("sources", "--problems", "--json", "--store", store).json
        return {place["path"]: place["sessions"] for place in found}

    assert counted(url) == {str(claude_home): 0}
    run("sync", "--store", url)
    run("sync", moved)
    assert counted(url) == {str(claude_home): 1, str(moved): 0}
    assert counted(empty) == {str(claude_home): 0, str(moved): 0}
    run("sync", moved, "--store", url)
    assert counted(url) == {str(claude_home): 1, str(moved): 1}
    found = run("sources", "--problems", "--json", "--store", url).json
    assert found == run("sources", "--problems", "--json").json
    # A host's store on a server has no sessions of anybody's library.
    assert set(counted(new_host_database(postgres)).values()) == {0}


def test_masks_go_before_what_is_sent_unless_that_is_asked_for(
    run: Run, claude_home: Path, postgres: Server, home: Path
) -> None:
    url = new_server_store(postgres)
    configure(home, '[masks.rules]\nours = "readme"\n')

    def sent() -> str:
        with contextlib.closing(open_target(url)) as there:
            tables = ("chat_sessions", "chat_messages", "chat_parts")
            return str([there.connection.execute(f"SELECT * FROM {one}").fetchall()
                        for one in tables])

    assert run("sync", "--store", url).code == 0
    assert "readme" not in sent() and "Nothing but a" in sent()
    assert run("sync", "--store", url, "--no-mask").code == 0
    assert "Nothing but a readme." in sent()


def test_a_mistake_in_the_masks_keeps_everything_here(
    run: Run, claude_home: Path, postgres: Server, home: Path
) -> None:
    url = new_server_store(postgres)
    configure(home, '[masks.rules]\nours = "("\n')
    result = run("sync", "--store", url)
    assert result.code == 1 and "Mend the config" in result.err
    with contextlib.closing(open_target(url)) as there:
        assert there.connection.execute("SELECT 1 FROM chat_sessions").fetchall() == []


def test_a_server_that_is_gone_leaves_the_library(run: Run, claude_home: Path) -> None:
    result = run("sync", "--store", "postgresql://nobody@127.0.0.1:1/x")
    assert result.code == 1 and result.out.startswith("1 new")
    assert len(run("sessions", "--json").json) == 1
