"""The event log by command: switched on and off, shown, followed, and a store made of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from store.engine import schema
from store.engine.database import open_database
from store.engine.opening import open_target
from store.engine.server.connection import ServerConnection
from store.events.rebuilding import differing
from tests.cli.conftest import Run, configure
from tests.cli.stdin import answering
from tests.sources.postgres_server import Server
from tests.store.engines import new_server_store
from tests.store.talks import Talk


@pytest.fixture
def small(demo: Path) -> Path:
    """The demo with a few small sessions, so that all of it is compared quickly."""
    with contextlib.closing(sqlite3.connect(demo, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(
            "DELETE FROM chat_sessions WHERE json_extract(metadata_json, '$.source.id') NOT IN"
            " ('weekly-review', 'newsletter', 'retry-loop', 'retry-loop-explore')")
    return demo


def sizes_of(run: Run) -> dict[str, int]:
    return {name: run("events", "--json").json[name] for name in ("events", "size")}


def test_on_off_and_what_it_says(run: Run, demo: Path) -> None:
    assert "is off" in run("events").out
    assert run("events", "--json").json == {
        "on": False, "complete": False, "version": None, "since": None, "events": 0, "size": 0,
        "trimmed": None}
    found = run("events", "--on", "--json").json
    assert found["on"] and found["complete"] and found["events"] > 100 and found["since"]
    assert "is on since" in run("events").out
    sizes = run("stats", "--store", "--json").json["events"]
    assert sizes == {"count": found["events"], "size": found["size"]}
    assert "of the log" in run("stats", "--store").out
    assert run("events", "--off", "--json").json["on"] is False
    planned = run("events", "--off", "--drop", "--dry-run", "--json").json
    assert planned == {"dry_run": True, "sessions": planned["sessions"], **sizes_of(run)}
    assert run("events", "--off", "--dry-run").out == "No event would be deleted.\n"
    assert run("events", "--off", "--drop").code == 1
    with answering("y"):
        assert run("events", "--off", "--drop", "--json").json["events"] == 0
    assert run("events", "--off", "--drop", "--yes").code == 0
    assert run("stats", "--store", "--json").json["events"] is None


def test_events_of_a_session(run: Run, demo: Path) -> None:
    refused = run("events", "weekly-review")
    assert refused.code == 1 and "events --on" in refused.err
    run("events", "--on")
    assert run("rename", "weekly-review", "Naïve <b>title</b>").code == 0
    assert run("archive", "weekly-review").code == 0
    lines = [json.loads(line) for line in run("events", "weekly-review", "--json").out.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    renamed, archived = lines[-2:]
    assert renamed["payload"]["metadata"]["user"]["title"] == "Naïve <b>title</b>"
    assert archived["kind"] == "session.archived" and not archived["whole"]
    assert lines[0]["whole"] and lines[0]["payload"]["model"]
    after = run("events", "weekly-review", "--json", "--after", str(len(lines) - 1)).out
    assert json.loads(after) == archived
    shown = run("events", "weekly-review").out
    assert "session.archived" in shown and "archived_at" in shown
    assert run("undo").code == 0
    assert "session.unarchived" in run("events", "weekly-review").out
    assert run("forget", "weekly-review", "--yes").code == 0
    assert run("events", archived["session_id"]).code == 1


@pytest.mark.parametrize("arguments", [
    ("x", "--on"), ("--drop",), ("--dry-run",), ("--on", "--dry-run"), ("--after", "3"),
    ("--on", "--off"), ("--after", "x", "y"),
])  # fmt: skip
def test_wrong_usage(run: Run, demo: Path, arguments: tuple[str, ...]) -> None:
    assert run("events", *arguments).code == 2


def test_a_store_of_another_program_has_none(run: Run, tmp_path: Path) -> None:
    host = tmp_path / "host.db"
    connection = sqlite3.connect(host, isolation_level=None)
    connection.executescript(schema.CONTRACT_TABLES)
    connection.close()
    before = host.read_bytes()
    for arguments in (("events", "--on"), ("events",), ("events", "--follow"), ("events", "x"),
                      ("rebuild", tmp_path / "made.db")):
        refused = run("--store", host, *arguments)
        assert refused.code == 1 and "belongs to another program" in refused.err, arguments
    assert host.read_bytes() == before and not (tmp_path / "made.db").exists()


def test_without_a_library(run: Run) -> None:
    for command in (("events",), ("events", "--on"), ("rebuild", "x.db")):
        assert run(*command).code == 1


def test_a_store_is_made_of_the_log(run: Run, small: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.db"
    assert run("rebuild", made).code == 1 and not made.exists()
    run("events", "--on")
    run("star", "weekly-review")
    done = run("rebuild", made, "--json").json
    assert done["differing"] == [] and done["rows"]["chat_sessions"] == 4
    assert run("--store", made, "sessions", "--json").json == run("sessions", "--json").json
    assert "name a new one" in run("rebuild", made).err
    assert run("rebuild", tmp_path / "nope" / "made.db").code == 1
    connection = sqlite3.connect(small, isolation_level=None)
    connection.execute("DELETE FROM events WHERE kind = 'part.snapshot' AND id % 2")
    connection.close()
    other = run("rebuild", tmp_path / "other.db")
    assert other.code == 1 and "doctor --fix" in other.err
    sick = run("doctor")
    assert sick.code == 1 and "event log" in sick.out and "are missing" in sick.out
    assert run("doctor", "--fix").code == 0 and run("doctor").code == 0
    assert run("rebuild", tmp_path / "third.db").code == 0


def test_on_a_server(run: Run, tmp_path: Path, postgres: Server) -> None:
    url = new_server_store(postgres)
    with contextlib.closing(open_target(url, write=True)) as db:
        talk = Talk(db)
        made = talk.session()
        talk.message(made, "user", "hi")
    assert run("events", "--on", "--store", url, "--json").json["complete"]
    run("rename", made, "a title", "--store", url)
    lines = run("events", made, "--store", url, "--json").out.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == [
        "session.snapshot", "message.snapshot", "part.snapshot", "session.updated"]
    done = run("rebuild", tmp_path / "made.db", "--store", url, "--json").json
    assert done["differing"] == [] and done["rows"]["chat_parts"] == 1
    assert done["left"] == {"verb_log": 1}
    other = postgres.database().url
    assert "pg_dump keeps them" in run("rebuild", other, "--store", url).err
    assert run("show", made, "--store", other).out == run("show", made, "--store", url).out
    assert "has sessions already" in run("rebuild", other, "--store", url).err
    with contextlib.closing(open_target(url, write=True)) as db:
        assert isinstance(db.connection, ServerConnection)
        db.connection.script("ALTER TABLE chat_parts DISABLE TRIGGER event_log_part")
        db.connection.execute("UPDATE chat_parts SET type = 'data-x'")
    for arguments in (("--quick",), ("--fix", "--dry-run")):
        found = run("doctor", *arguments, "--store", url, "--json").json["findings"]
        assert [one["fixed"] for one in found if one["check"] == "event log"] == [False]
    assert run("doctor", "--fix", "--store", url).code == 0
    assert run("rebuild", tmp_path / "again.db", "--store", url, "--json").json["differing"] == []
    assert run("events", "--off", "--drop", "--yes", "--store", url, "--json").json["events"] == 0


def test_the_doctor_completes_a_log(run: Run, small: Path) -> None:
    run("events", "--on")
    connection = sqlite3.connect(small, isolation_level=None)
    connection.execute("DROP TRIGGER event_log_part_updated")
    connection.execute("UPDATE chat_parts SET type = 'data-x' WHERE type = 'text'")
    connection.close()
    found = run("doctor", "--json").json["findings"]
    assert [(one["check"], one["fixable"]) for one in found if not one["note"]] == [
        ("event log", True)]
    assert run("doctor", "--fix").code == 0
    database = open_database(small)
    assert differing(database) == []
    database.connection.execute("UPDATE events SET role = 'x' WHERE role = 'user'")
    database.close()
    assert "not as it says" in run("doctor").out
    assert run("doctor", "--quick").code == 0
    assert run("doctor", "--fix").code == 0 and run("doctor").code == 0


def test_old_events_are_cut(run: Run, small: Path, home: Path) -> None:
    run("events", "--on")
    for number in range(8):
        run("rename", "weekly-review", f"title {number}")
    assert "[events]" in run("events", "--trim").err
    configure(home, "[events]\nmax_mb = 1\nkeep_days = 1\n")
    connection = sqlite3.connect(small, isolation_level=None)
    connection.execute("UPDATE events SET at = 1")
    connection.close()
    before = run("events", "--json").json
    planned = run("events", "--trim", "--dry-run", "--json").json
    assert run("events", "--json").json == before
    assert "would be deleted, about" in run("events", "--trim", "--dry-run").out
    after = run("events", "--trim", "--json").json
    assert after["events"] <= before["events"] - 7 and after["trimmed"]
    assert planned["events"] == before["events"] - after["events"]
    assert planned["size"] == before["size"] - after["size"]
    assert run("doctor").code == 0


@pytest.mark.parametrize("session", [["weekly-review"], []])
def test_following_until_ctrl_c(run: Run, demo: Path, session: list[str]) -> None:
    """Takes about a second: a process that follows."""
    run("events", "--on")
    command = [sys.executable, "-m", "backscroll", "events", *session, "--follow", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=os.environ | {"BACKSCROLL_STORE": str(demo)}) as process:
        assert process.stdout is not None
        if session:
            count = len(run("events", *session, "--json").out.splitlines())
            for _ in range(count):
                process.stdout.readline()
        titles = iter(range(1000))
        line = ""
        while "session.updated" not in line:  # It may not be looking yet.
            run("rename", "weekly-review", f"title {next(titles)}")
            os.set_blocking(process.stdout.fileno(), bool(session))
            line = process.stdout.readline()
        assert json.loads(line)["payload"]["metadata"]["user"]["title"].startswith("title")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr is not None and process.stderr.read() == ""


@pytest.mark.parametrize("how", ["closed", pytest.param("killed", marks=pytest.mark.long)])
@pytest.mark.parametrize("of_session", [True, False])
def test_following_goes_on_where_the_server_was_lost(
    run: Run, postgres: Server, monkeypatch: pytest.MonkeyPatch, of_session: bool, how: str
) -> None:
    """Each event is printed once, also of what was written meanwhile."""
    url = new_server_store(postgres)
    with contextlib.closing(open_target(url, write=True)) as db:
        talk = Talk(db)
        made = talk.session()
    database = postgres.database_of(url)
    run("events", "--on", "--store", url)

    def write(number: int) -> None:
        database.execute(f"UPDATE public.chat_sessions SET agent = '{number}'")

    def lose() -> None:
        if how == "killed":
            postgres.stop()
            return
        database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                         " WHERE datname = current_database() AND pid <> pg_backend_pid()")
        write(3)

    def come_back() -> None:
        postgres.start()
        if how == "killed":
            write(3)

    steps: Iterator[Callable[[], object]] = iter([
        partial(write, 1), partial(write, 2), lose, come_back, partial(write, 4), lambda: None])

    def sleep(seconds: float) -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr("tui.cli.events.time", SimpleNamespace(sleep=sleep))
    found = run("events", *([made] if of_session else []), "--follow", "--json", "--store", url)
    events = [json.loads(line) for line in found.out.splitlines()]
    assert found.code == 0
    assert [one["payload"]["agent"] for one in events if not one["whole"]] == list("1234")
    assert [line.rpartition("; ")[2] for line in found.err.splitlines()[:1]] == [
        "trying again until it answers"]
    assert found.err.endswith("answers again\n") and len(found.err.splitlines()) == 2
