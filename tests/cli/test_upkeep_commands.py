"""The commands that keep a store: sizes, checkpoint, vacuum, backup, restore-backup."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Run, configure
from tests.cli.stdin import answering


def test_sizes_of_the_store(run: Run, demo: Path) -> None:
    found = run("stats", "--store", "--json").json
    assert found["path"] == str(demo) and found["form"] == "own"
    assert found["files"][0]["size"] == demo.stat().st_size
    assert found["rows"]["chat_sessions"] > 0 and found["pragmas"]["foreign_keys"] == 1
    shown = run("stats", "--store").out
    assert "chat_messages" in shown and "busy_timeout" in shown and "free on the disk" in shown
    assert run("stats", "--store", str(demo)).out.startswith(" ")  # the tokens, as before


def test_sizes_of_another_store(run: Run, demo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    shutil.copy(demo, other)
    for first in (("--store", other, "stats"), ("stats", "--store", other)):
        assert run(*first, "--store", "--json").json["path"] == str(other)
        assert run(*first, "--sizes", "--json").json["path"] == str(other)
    assert run("stats", "--sizes", "--json").json["path"] == str(demo)
    for other_figures in ("--csv", "--live", "--since=3d", "--limit=2", "weekly-review"):
        assert run("stats", "--sizes", other_figures).code == 2
    assert run("stats", "--store", tmp_path / "nope.db", "--store").code == 1


def test_a_backup_and_back(run: Run, demo: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    dry = run("backup", backup, "--dry-run", "--json").json
    assert dry["dry_run"] and not backup.exists()
    made = run("backup", backup, "--json").json
    assert made["backup"] == str(backup) and made["rows"] == dry["rows"]
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    again = run("backup", backup)
    assert again.code == 1 and "--force" in again.err
    assert run("backup", backup, "--force").code == 0
    assert run("backup", demo, "--force").code == 1
    assert run("forget", "weekly-review", "--yes").code == 0
    refused = run("restore-backup", backup)
    assert refused.code == 1 and "--yes" in refused.err
    with answering("n"):
        assert run("restore-backup", backup).code == 1
    assert "goes in the place" in run("restore-backup", backup, "--dry-run").out
    assert run("show", "weekly-review").code == 1
    with answering("y"):
        done = run("restore-backup", backup, "--json")
    assert done.code == 0 and Path(done.json["kept"]).exists() and not done.json["damaged"]
    assert run("show", "weekly-review").code == 0


def test_paths_from_the_working_folder_on(
    run: Run, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(demo, tmp_path / "here.db")
    monkeypatch.chdir(tmp_path)
    for command in (
        ("backup", "copy.db"), ("backup", "copy.db", "--force"), ("backup", "./?a#b%20.db"),
        ("restore-backup", "copy.db", "--yes"),
    ):
        done = run("--store", "here.db", *command)
        assert done.code == 0, (command, done.err)
    assert {"copy.db", "?a#b%20.db"} <= {path.name for path in tmp_path.iterdir()}


def test_nightly_by_the_config(run: Run, demo: Path, home: Path, tmp_path: Path) -> None:
    assert "[backup]" in run("backup", "--nightly").err
    configure(home, f'[backup]\nfolder = "{tmp_path}/nights"\nkeep = 3\n')
    assert run("backup", "--nightly", "--json").code == 0
    assert run("backup", "--nightly", "x").code == 2 and run("backup").code == 2


def test_space(run: Run, demo: Path) -> None:
    for command in ("vacuum", "checkpoint"):
        assert run(command, "--dry-run", "--json").code == 0
        assert run(command).code == 0
        found = run(command, "--json").json
        assert found["after"] <= found["before"] and found["busy"] is False
    reader = sqlite3.connect(demo, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT 1 FROM chat_sessions").fetchall()
    assert run("checkpoint", "--mode", "passive").code == 0
    reader.close()


def test_a_store_of_another_program_is_left_alone(run: Run, tmp_path: Path, demo: Path) -> None:
    host = tmp_path / "host.db"
    shutil.copy(demo, host)
    connection = sqlite3.connect(host)
    connection.execute("PRAGMA application_id = 0")
    connection.commit()
    connection.close()
    for command in ("vacuum", "checkpoint"):
        refused = run(command, "--store", host)
        assert refused.code == 1 and "another program" in refused.err
    assert run("backup", tmp_path / "of-host.db", "--store", host).code == 0
    refused = run("restore-backup", tmp_path / "of-host.db", "--yes")
    assert refused.code == 1 and "no backup of a library" in refused.err


def test_dry_runs_of_a_library_that_cannot_be_written(
    run: Run, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = tmp_path / "backup.db"
    assert run("backup", backup).code == 0
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)  # Root may write all.
    before = demo.read_bytes()
    for command in (["prune", "--keep-newest=3"], ["vacuum"], ["checkpoint"]):
        assert run(*command, "--dry-run", "--json").code == 0
        refused = run(*command, *(["--yes"] if command[0] == "prune" else []))
        assert refused.code == 1 and "not writable" in refused.err
    for options in (["--yes"], ["--dry-run"]):
        refused = run("restore-backup", backup, *options)
        assert refused.code == 1 and "not writable" in refused.err
    assert demo.read_bytes() == before


def test_without_a_library(run: Run, tmp_path: Path) -> None:
    for command in (["vacuum"], ["checkpoint"], ["backup", tmp_path / "x"], ["stats", "--store"]):
        result = run(*command)
        assert result.code == 1 and "backscroll sync" in result.err
    assert not list(tmp_path.glob("home/.local/**/*.db"))


def test_the_doctor(run: Run, demo: Path) -> None:
    demo.chmod(0o600)
    demo.parent.chmod(0o700)
    assert run("doctor").code == 0
    connection = sqlite3.connect(demo)
    connection.execute(
        "UPDATE chat_sessions SET prompt_tokens = 7 WHERE id IN (SELECT session_id FROM"
        " chat_messages WHERE role = 'assistant')")
    connection.commit()
    connection.close()
    sick = run("doctor", "--json")
    assert sick.code == 1 and not sick.json["well"]
    (finding,) = [one for one in sick.json["findings"] if one["check"] == "rollups"]
    assert finding["fixable"] and not finding["fixed"] and "--fix" in finding["way_out"]
    assert "problem" in run("doctor").out
    fixed = run("doctor", "--fix")
    assert fixed.code == 0 and "fixed" in fixed.out
    assert run("doctor", "--quick").code == 0
    demo.write_text("no database")
    assert run("doctor").code == 1


def test_the_doctor_cannot_reach_a_server(run: Run) -> None:
    done = run("doctor", "--store", "postgresql:///team?host=/nowhere")
    assert done.code == 1 and "postgresql:///team?host=/nowhere cannot be reached" in done.err


def test_pruning(run: Run, demo: Path) -> None:
    assert run("prune").code == 2 and run("prune", "--older-than", "soon").code == 2
    assert run("prune", "--keep-newest", "x").code == 2
    assert "codex" in run("prune", "--keep-newest", "1", "--source", "nope").err
    count = len(run("sessions", "--json", "--limit", "500").json)
    dry = run("prune", "--keep-newest", "5", "--dry-run", "--json").json
    assert dry["sessions"] == len(dry["pruned"]) > 3 and dry["kept"]["newest"] == 5
    refused = run("prune", "--keep-newest", "5")
    assert refused.code == 1 and "--yes" in refused.err
    assert len(run("sessions", "--json", "--limit", "500").json) == count
    with answering("y"):
        done = run("prune", "--keep-newest", "5", "--json").json
    assert set(dry["pruned"]) <= set(done["pruned"])
    assert len(run("sessions", "--json", "--limit", "500").json) < count
    assert "no session is to be removed" in run("prune", "--keep-newest", "500").out
