"""Upkeep of a store on a server: doctor, sizes, prune, export; what is about files refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, in_transaction
from store.engine.opening import open_target
from store.stats.keeping import Counter
from store.stats.tables import STATISTICS
from store.system.processes import this_process
from store.verbs.marks import star
from store.verbs.rollups import write
from tests.sources.postgres_server import Server
from tests.store.engines import new_server_store
from tests.store.stats.test_rollups import answers, catch_up
from tests.store.talks import Talk
from tui.cli import main


@pytest.fixture
def url(postgres: Server) -> str:
    return new_server_store(postgres)


@pytest.fixture
def talk(url: str) -> Talk:
    database = open_target(url, write=True)
    found = Talk(database)
    for _ in range(3):
        write(database, answers(found))
    return found


def looker(postgres: Server, url: str, rights: str = "SELECT") -> str:
    """Return the URL of a new role."""
    database = postgres.database_of(url)
    name = database.name
    database.execute(
        f"CREATE ROLE looker_{name} LOGIN;"
        f" GRANT USAGE ON SCHEMA public, backscroll TO looker_{name};"
        f" GRANT {rights} ON ALL TABLES IN SCHEMA public TO looker_{name};"
        f" GRANT SELECT ON ALL TABLES IN SCHEMA backscroll TO looker_{name}")
    return url.replace("postgres@", f"looker_{name}@", 1)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    code = main([*words, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found | {"code": code}


def problems(found: dict[str, Any]) -> set[str]:
    return {one["check"] for one in found["findings"] if not one["note"] and not one["fixed"]}


def of_rights(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in found["findings"] if one["check"] == "permissions"]


def rows(db: Database, table: str) -> list[Any]:
    return db.connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()


def test_the_doctor_mends_rows_sums_and_dead_sessions(
    url: str, talk: Talk, capsys: pytest.CaptureFixture[str]
) -> None:
    run = talk.db.connection.execute
    sessions = [row[0] for row in run("SELECT id FROM chat_sessions ORDER BY id").fetchall()]
    well = printed(capsys, "doctor", "--store", url)
    assert well["well"] and well["code"] == 0 and problems(well) == set()
    parts = rows(talk.db, "chat_parts")
    run("UPDATE chat_parts SET session_id = ? WHERE message_id IN (SELECT id FROM chat_messages"
        " WHERE session_id = ?)", (sessions[0], sessions[1]))
    run("UPDATE chat_sessions SET prompt_tokens = 7 WHERE id = ?", (sessions[2],))
    gone = {"state": "running", "from": "stored", "since": 1} | this_process().as_json()
    run("UPDATE chat_sessions SET metadata_json = ? WHERE id = ?",
        (json.dumps({"activity": gone | {"started": 1}}), sessions[0]))
    found = printed(capsys, "doctor", "--store", url)
    assert problems(found) == {"orphans", "rollups", "running sessions"}
    assert found["code"] == 1
    fixed = printed(capsys, "doctor", "--store", url, "--fix")
    assert fixed["well"] and fixed["code"] == 0
    assert problems(printed(capsys, "doctor", "--store", url)) == set()
    assert rows(talk.db, "chat_parts") == parts
    (stored,) = run("SELECT metadata_json FROM chat_sessions WHERE id = ?",
                    (sessions[0],)).fetchone()
    assert json.loads(stored)["activity"]["state"] == "interrupted"


@pytest.mark.long
def test_the_doctor_compares_the_statistics_of_this_machine(
    url: str, talk: Talk, capsys: pytest.CaptureFixture[str]
) -> None:
    counter = Counter(talk.db.path)
    catch_up(counter)
    assert problems(printed(capsys, "doctor", "--store", url)) == set()
    counter.file.execute("UPDATE spent SET input = input + 1")
    counter.close()
    assert problems(printed(capsys, "doctor", "--store", url)) == {"statistics"}
    assert printed(capsys, "doctor", "--store", url, "--fix")["well"]
    assert not STATISTICS.path(talk.db.path).exists()


@pytest.mark.long
def test_the_doctor_makes_indexes_again(
    url: str, talk: Talk, capsys: pytest.CaptureFixture[str]
) -> None:
    talk.db.connection.execute("DROP INDEX public.chat_messages_newest")
    talk.db.connection.execute(
        "UPDATE pg_catalog.pg_index SET indisvalid = false"
        " WHERE indexrelid = CAST('public.chat_sessions_number' AS regclass)")
    notes = {one["check"]: one for one in printed(capsys, "doctor", "--store", url)["findings"]}
    assert notes["search index"]["fixable"] and "REINDEX" in notes["integrity"]["way_out"]
    printed(capsys, "doctor", "--store", url, "--fix")
    found = printed(capsys, "doctor", "--store", url)["findings"]
    assert not any("newest" in one["words"] for one in found)


def test_the_doctor_says_what_a_role_lacks(
    postgres: Server, url: str, talk: Talk, capsys: pytest.CaptureFixture[str]
) -> None:
    role = looker(postgres, url)
    found = printed(capsys, "doctor", "--store", role, "--fix")
    (only,) = of_rights(found)
    assert found["well"] and "may only read" in only["words"]
    database = postgres.database_of(url)
    name = database.name
    database.execute(
        f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO looker_{name};"
        " GRANT SELECT ON public.chat_parts TO PUBLIC")
    found = printed(capsys, "doctor", "--store", role)
    assert problems(found) == {"permissions"} and found["code"] == 1
    lacks, public = of_rights(found)
    assert "GRANT SELECT, INSERT" in lacks["way_out"]
    assert "open to every role" in public["words"]


def test_sizes_on_a_server(
    postgres: Server, url: str, talk: Talk, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, "--store", url, "stats", "--store")
    assert found["rows"]["chat_sessions"] == 3 and found["rows"]["verb_log"] == 0
    assert 0 < found["total"] < found["database"]
    settings = found["settings"]
    assert settings["server_encoding"] == "UTF8" and settings["role"] == "postgres"
    assert printed(capsys, "--store", looker(postgres, url), "stats", "--store")["total"] > 0
    assert main(["--store", url, "stats", "--store"]) == 0
    assert "  backscroll.changes  " in capsys.readouterr().out


def test_old_sessions_are_pruned(
    postgres: Server, url: str, talk: Talk, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = talk.db.connection.execute("SELECT min(id) FROM chat_sessions").fetchone()[0]
    in_transaction(talk.db, star, kept, now=talk.now)
    prune = ("prune", "--older-than", "2030-01-01", "--store")
    dry = printed(capsys, *prune, url, "--dry-run")
    assert dry["sessions"] == 2 and dry["kept"]["starred"] == 1
    assert main([*prune, looker(postgres, url), "--yes"]) == 1
    assert "may only read" in capsys.readouterr().err
    assert main([*prune, url, "--yes"]) == 0
    assert "vacuum" not in capsys.readouterr().out
    assert [row[0] for row in rows(talk.db, "chat_sessions")] == [kept]


@pytest.mark.long
def test_every_session_is_exported(
    url: str, talk: Talk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = ("export", "--all", "--store", url, "--to", "jsonl", "--out", str(tmp_path / "all"))
    assert printed(capsys, *export, "--dry-run")["written"] == 3
    assert printed(capsys, *export)["written"] == 3
    assert printed(capsys, *export)["unchanged"] == 3


@pytest.mark.parametrize(("command", "way_out"), [
    (["backup", "FILE"], "pg_dump"), (["backup", "--nightly"], "pg_dump"),
    (["vacuum"], "VACUUM"), (["checkpoint"], "CHECKPOINT"),
    (["restore-backup", "FILE", "--yes"], "pg_restore"),
])
def test_a_command_about_files_names_what_serves_on_a_server(
    postgres: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str],
    way_out: str,
) -> None:
    words = [str(tmp_path / "b.db") if one == "FILE" else one for one in command]
    assert main([*words, "--store", new_server_store(postgres)]) == 1
    said = capsys.readouterr().err
    assert "is on a server" in said and way_out in said
    assert not (tmp_path / "b.db").exists()


def test_a_session_of_a_store_that_is_only_read_is_resumed(
    postgres: Server, url: str, talk: Talk, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    session = talk.session(workspace_root="/some/where")
    talk.message(session, "user", "one")
    talk.message(session, "assistant", "done")
    only_reads = looker(postgres, url)
    told = printed(capsys, "resume", session, "--store", only_reads)
    assert told["code"] == 0 and told["writes_file"] and not Path(told["path"]).exists()
    assert main(["resume", session, "--print", "--store", only_reads]) == 0
    assert capsys.readouterr().out.startswith("cd /some/where && claude --resume ")
    (file,) = (tmp_path / ".claude" / "projects").glob("*/*.jsonl")
    connection = talk.db.connection
    noted = "SELECT count(*) FROM exported_sessions WHERE session_id = ?"
    assert connection.execute(noted, (session,)).fetchone() == (0,)
    # Who may write leaves the note by which sync links what continues the session.
    assert main(["resume", session, "--print", "--store", url]) == 0
    assert connection.execute(noted, (session,)).fetchone() == (1,)
