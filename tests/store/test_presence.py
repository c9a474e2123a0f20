"""Who is alive where no watcher runs: real processes, asked by the plain commands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from store.activity import attendance, presence
from store.activity.judgement import RUNNING_FOR_MS, leave_to_watcher
from store.engine.database import Database
from store.errors import Refused
from store.ids import derived_session_id
from store.sources.claude_code import ClaudeCodeSource
from store.sources.gemini import GeminiSource
from store.sources.opencode import OpencodeSource
from store.sources.pi import PiSource
from store.sync.locking import watcher_lock
from store.system.clock import system_clock
from store.system.processes import Process, process_of
from store.system.stopping import Stop
from tests.sources import test_pi
from tests.sources.opencode_rows import Rows, text
from tests.store.test_liveness import PATIENCE_S, doing, kill, start, synced, try_to_fork

SLEEPER = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def agents() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for one in started:
        one.kill()
        one.communicate(timeout=PATIENCE_S)


@pytest.fixture(autouse=True)
def asked_anew(agents: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask each time, and see the agents of this test alone."""

    def mine() -> attendance.Processes:
        found = attendance.running_processes()
        pids = {one.pid for one in agents}
        return attendance.Processes([one for one in found.seen if one.pid in pids], found.known)

    monkeypatch.setattr(presence, "HOLDS_S", 0)
    monkeypatch.setattr(presence, "running_processes", mine)


def program(tmp_path: Path, name: str) -> Path:
    path = tmp_path / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(SLEEPER)
    return path


def work_of(tmp_path: Path, name: str = "work") -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


def only_session(database: Database) -> tuple[str, int]:
    ((session, updated_at),) = database.connection.execute(
        "SELECT id, updated_at FROM chat_sessions").fetchall()
    return session, updated_at


def pi_session(tmp_path: Path, work: Path) -> Database:
    header = test_pi.header() | {"cwd": str(work)}
    test_pi.session(tmp_path, header, test_pi.user("u", None, 1, "hi"))
    return synced(tmp_path, PiSource(), tmp_path / "sessions")


def gemini_session(tmp_path: Path, work: Path) -> Database:
    root = tmp_path / "gemini"
    chats = root / "tmp" / "work" / "chats"
    chats.mkdir(parents=True)
    (root / "projects.json").write_bytes(orjson.dumps({"projects": {str(work): "work"}}))
    lines: list[dict[str, Any]] = [
        {"sessionId": "aaaaaaaa-0000-4000-8000-000000000001", "projectHash": "x",
         "startTime": "2026-11-27T10:00:00.000Z", "lastUpdated": "2026-11-27T10:00:00.000Z",
         "kind": "main"},
        {"id": "u", "timestamp": "2026-11-27T10:00:01.000Z", "type": "user",
         "content": [{"text": "hi"}]},
    ]  # fmt: skip
    path = chats / "session-2026-11-27T10-00-aaaaaaaa.jsonl"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    (root / "tmp" / "work" / ".project_root").write_text(str(work))
    return synced(tmp_path, GeminiSource(), root)


@pytest.mark.parametrize(("name", "made"), [("pi", pi_session), ("gemini", gemini_session)])
def test_a_session_ends_with_the_process_in_its_folder(
    name: str, made: Any, tmp_path: Path, agents: list[subprocess.Popen[str]]
) -> None:
    work, elsewhere = work_of(tmp_path), work_of(tmp_path, "elsewhere")
    database = made(tmp_path, work)
    session, updated_at = only_session(database)
    now = updated_at + 3_000
    start(agents, sys.executable, program(tmp_path, name), cwd=elsewhere)
    agent = start(agents, sys.executable, program(tmp_path, name), cwd=work)
    assert doing(database, session, now)[:2] == ("running", "guessed")
    assert doing(database, session, now).busy
    # As long as it lives, however long it thinks.
    assert doing(database, session, updated_at + 20 * 60_000).busy
    kill(agent)
    assert doing(database, session, now)[:2] == ("interrupted", "guessed")
    assert not doing(database, session, now).busy
    # Its beginning may not be seen yet.
    assert doing(database, session, updated_at + 1_000).state == "running"
    try_to_fork(database, session)
    database.close()


def test_of_two_sessions_in_a_folder_the_newer_one_has_the_process(
    tmp_path: Path, agents: list[subprocess.Popen[str]]
) -> None:
    work = work_of(tmp_path)
    database = pi_session(tmp_path, work)
    session, updated_at = only_session(database)
    start(agents, sys.executable, program(tmp_path, "pi"), cwd=work)
    assert doing(database, session, updated_at + 5_000).state == "running"
    database.connection.execute(
        "INSERT INTO chat_sessions(id, agent, model_json, workspace_root, metadata_json,"
        " created_at, updated_at) SELECT 'ses_newer', agent, model_json, workspace_root,"
        " metadata_json, created_at, updated_at + 1000 FROM chat_sessions")
    assert doing(database, session, updated_at + 5_000).state == "interrupted"
    assert doing(database, "ses_newer", updated_at + 5_000).state == "running"
    start(agents, sys.executable, program(tmp_path, "pi"), cwd=work)
    assert doing(database, session, updated_at + 5_000).state == "running"
    database.close()


def test_a_session_of_a_folder_that_is_not_here_goes_by_its_age(tmp_path: Path) -> None:
    database = pi_session(tmp_path, tmp_path / "missing")
    session, updated_at = only_session(database)
    assert doing(database, session, updated_at + 20_000).state == "running"
    database.close()


def test_opencode_ends_with_the_process_that_has_its_database_open(
    tmp_path: Path, agents: list[subprocess.Popen[str]]
) -> None:
    work, elsewhere = work_of(tmp_path), work_of(tmp_path, "elsewhere")
    at = system_clock() - 10_000
    rows = Rows(tmp_path / "opencode.db", now=at)
    rows.session("ses_one", directory=str(work))
    rows.message("ses_one", "user", text("hello"))
    rows.connection.close()
    database = synced(tmp_path, OpencodeSource(), rows.path)
    session = derived_session_id("opencode", "ses_one")
    opencode = program(tmp_path, "opencode")
    agent = start(agents, sys.executable, opencode, cwd=work)
    assert doing(database, session, at + 5 * 60_000).state == "running"
    with pytest.raises(Refused, match="is running"):
        try_to_fork(database, session)
    other = start(agents, sys.executable, opencode, cwd=elsewhere)
    kill(agent)
    # The other one may serve it.
    assert doing(database, session).state == "running"
    assert doing(database, session, at + RUNNING_FOR_MS * 40).state == "interrupted"
    kill(other)
    assert doing(database, session)[:2] == ("interrupted", "guessed")
    try_to_fork(database, session)
    database.close()


def claude_session(tmp_path: Path, work: Path, name: str) -> None:
    folder = tmp_path / "claude" / "projects" / "work"
    folder.mkdir(parents=True, exist_ok=True)
    row = {"type": "user", "uuid": name, "parentUuid": None, "sessionId": name, "cwd": str(work),
           "timestamp": "2026-11-27T10:00:00.000Z", "version": "2.1.0", "isSidechain": False,
           "message": {"role": "user", "content": "hello"}}  # fmt: skip
    (folder / f"{name}.jsonl").write_bytes(orjson.dumps(row) + b"\n")


def word(tmp_path: Path, process: Process, name: str, status: str, at: int) -> Path:
    folder = tmp_path / "claude" / "sessions"
    folder.mkdir(exist_ok=True)
    path = folder / f"{process.pid}.json"
    path.write_bytes(orjson.dumps({
        "pid": process.pid, "procStart": str(process.started), "sessionId": name,
        "status": status, "statusUpdatedAt": at,
    }))  # fmt: skip
    return path


def test_claude_code_is_asked_by_the_files_of_its_processes(
    tmp_path: Path, agents: list[subprocess.Popen[str]]
) -> None:
    one, two = (f"aaaaaaaa-0000-4000-8000-00000000000{n}" for n in "12")
    work = work_of(tmp_path)
    claude_session(tmp_path, work, one)
    claude_session(tmp_path, work, two)
    database = synced(tmp_path, ClaudeCodeSource(), tmp_path / "claude" / "projects")
    first, second = (derived_session_id("claude-code", name) for name in (one, two))
    (now,) = database.connection.execute("SELECT max(updated_at) FROM chat_sessions").fetchone()
    claude = program(tmp_path, "claude")
    agent, other = (start(agents, sys.executable, claude, cwd=work) for _ in range(2))
    said = word(tmp_path, process_of(agent.pid), one, "busy", now)
    word(tmp_path, process_of(other.pid), two, "idle", now)
    later = now + 30 * 60_000
    assert doing(database, first, later)[:2] == ("running", "stored")
    assert doing(database, second, later)[:2] == ("idle", "stored")
    word(tmp_path, process_of(agent.pid), one, "waiting", now)
    assert doing(database, first, later).state == "waiting-input"
    word(tmp_path, process_of(agent.pid), one, "busy", now)
    kill(agent)
    # Its file says busy for ever; the other process in the folder runs its own session.
    assert said.exists()
    assert doing(database, first, now)[:2] == ("interrupted", "guessed")
    try_to_fork(database, first)
    said.unlink()
    assert doing(database, first, now + 3_000).state == "interrupted"
    database.close()


def test_who_is_followed_by_a_watcher_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = pi_session(tmp_path, work_of(tmp_path))
    session, updated_at = only_session(database)
    asked: list[int] = []

    def none() -> attendance.Processes:
        asked.append(1)
        return attendance.Processes()

    monkeypatch.setattr(presence, "running_processes", none)
    stop = Stop()
    watching = watcher_lock(database.path, "", stop, lambda: None)
    with watching as mine:
        assert mine
        assert doing(database, session, updated_at + 5_000).state == "running"
        assert asked == []
    assert doing(database, session, updated_at + 5_000).state == "interrupted"
    assert asked
    asked.clear()
    leave_to_watcher(database.path)
    assert doing(database, session, updated_at + 5_000).state == "running"
    assert asked == []
    leave_to_watcher(database.path, left=False)
    assert doing(database, session, updated_at + 5_000).state == "interrupted"
    database.close()
