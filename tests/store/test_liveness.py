"""Who is alive: real processes that hold locks and files, and are killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from store.activity.attendance import QUIET_ELSEWHERE_MS, QUIET_MS, Processes, running_processes
from store.activity.judgement import Activity, current
from store.engine.database import Database, open_database
from store.errors import Refused
from store.ids import IdMinter, derived_session_id
from store.queries import activities
from store.queries.sessions import get
from store.sources.base.protocol import RunningSession, Source
from store.sources.codex import CodexSource
from store.sources.opencode import OpencodeSource
from store.sources.pi import PiSource
from store.sync import watch_activity
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target
from store.sync.watch_activity import ActivityBoard, ProcessFinder
from store.system import processes
from store.system.clock import system_clock
from store.system.processes import is_alive, lock_is_held, this_process
from store.verbs.fork import fork
from tests.sources import test_pi
from tests.sources.codex_lines import Lines, thread_id
from tests.sources.opencode_rows import Rows, text

HOLD = "import fcntl, sys; f = open(sys.argv[1], 'rb'); {how}; print('ready', flush=True);" \
       " sys.stdin.read()"
PATIENCE_S = 60


@pytest.fixture
def agents() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for one in started:
        one.kill()
        one.communicate(timeout=PATIENCE_S)


def start(agents: list[subprocess.Popen[str]], *command: str | Path, **more: Any) -> Any:
    agent = subprocess.Popen(
        list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)
    agents.append(agent)
    assert agent.stdout is not None
    assert agent.stdout.readline() == "ready\n"
    return agent


def holding(agents: list[subprocess.Popen[str]], path: Path, how: str = "pass") -> Any:
    return start(agents, sys.executable, "-c", HOLD.format(how=how), path)


def kill(agent: Any) -> None:
    os.kill(agent.pid, signal.SIGKILL)
    agent.wait(PATIENCE_S)


def synced(tmp_path: Path, source: Source, root: Path) -> Database:
    database = open_database(tmp_path / "s.db", create=True)
    Sync(database, Settings(helpers=0)).run([Target(source, root)])
    return database


def doing(database: Database, session: str, now: int | None = None) -> Activity:
    """What the session does, on which list and header agree."""
    row, now = get(database, session), now or system_clock()
    assert row is not None
    found = current(database, row, now)
    (listed,) = activities.rows(database, (), [session], now).values()
    assert (listed.activity, listed.activity_from) == (found.state, found.from_)
    return found


def try_to_fork(database: Database, session: str) -> None:
    (message,) = database.connection.execute(
        "SELECT id FROM chat_messages WHERE session_id = ? ORDER BY created_at DESC", (session,)
    ).fetchone()
    now = system_clock()
    with database.file:
        database.connection.execute("BEGIN IMMEDIATE")
        fork(database, session, message, ids=IdMinter(system_clock), now=now)


def test_codex_runs_while_its_lock_is_held(
    tmp_path: Path, agents: list[subprocess.Popen[str]]
) -> None:
    home, now = tmp_path / "codex", system_clock()
    lines = Lines(thread_id(1), at=now - 40 * 60_000)
    lines.event("task_started", turn_id="t")
    lines.user("go on")
    lines.call("exec_command", cmd="make")
    lines.write(home)
    lock = home / "thread-writer-locks" / f"{lines.thread}.lock"
    lock.parent.mkdir()
    lock.touch()
    before = lock.stat()
    agent = holding(agents, lock, "fcntl.flock(f, fcntl.LOCK_EX)")
    database = synced(tmp_path, CodexSource(), home)
    session = derived_session_id("codex", lines.thread)
    assert doing(database, session)[:2] == ("running", "stored")
    with pytest.raises(Refused, match="is running \\(exec_command has no result yet\\)"):
        try_to_fork(database, session)
    kill(agent)
    assert doing(database, session)[:2] == ("interrupted", "guessed")
    try_to_fork(database, session)
    assert lock.stat() == before
    lock.unlink()
    # An older version, which takes no lock: the age of what moved tells.
    assert doing(database, session).state == "interrupted"
    assert doing(database, session, now - 39 * 60_000)[:2] == ("running", "guessed")
    database.close()


def test_codex_waits_for_an_approval(
    tmp_path: Path, agents: list[subprocess.Popen[str]]
) -> None:
    home = tmp_path / "codex"
    lines = Lines(thread_id(1), at=system_clock() - 5_000)
    lines.event("task_started", turn_id="t")
    lines.user("go on")
    call = lines.call("exec_command", cmd="make", sandbox_permissions="require_escalated")
    lines.write(home)
    lock = home / "thread-writer-locks" / f"{lines.thread}.lock"
    lock.parent.mkdir()
    lock.touch()
    agent = holding(agents, lock, "fcntl.flock(f, fcntl.LOCK_EX)")
    database = synced(tmp_path, CodexSource(), home)
    session = derived_session_id("codex", lines.thread)
    assert doing(database, session).state == "waiting-approval"
    lines.output(call, "done")
    lines.write(home)
    Sync(database, Settings(helpers=0)).run([Target(CodexSource(), home)])
    assert doing(database, session).state == "running"
    kill(agent)
    assert doing(database, session).state == "interrupted"
    database.close()


def test_a_lock_is_looked_at_and_never_taken(
    tmp_path: Path, agents: list[subprocess.Popen[str]]
) -> None:
    path = tmp_path / "a.lock"
    assert lock_is_held(str(path)) is None
    path.touch()
    assert lock_is_held(str(path)) is False
    shared = holding(agents, path, "fcntl.flock(f, fcntl.LOCK_SH)")
    assert lock_is_held(str(path)) is False
    kill(shared)
    held = holding(agents, path, "fcntl.flock(f, fcntl.LOCK_EX)")
    (tmp_path / "link").symlink_to(path)
    assert lock_is_held(str(path)) is lock_is_held(str(tmp_path / "link")) is True
    kill(held)
    assert lock_is_held(str(path)) is False
    # Where there is no /proc: F_GETLK, which on Linux knows of POSIX locks only.
    held = holding(agents, path, "f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX)")
    assert processes._held_by_getlk(str(path)) is True
    kill(held)
    assert processes._held_by_getlk(str(path)) is False


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")
def test_a_reused_number_is_told_apart_without_proc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agents: list[subprocess.Popen[str]]
) -> None:
    path = tmp_path / "f"
    path.touch()
    monkeypatch.setattr(processes, "PROC", tmp_path / "no-proc")
    monkeypatch.setattr(processes, "PS_HOLDS_S", 0)
    agent = holding(agents, path)
    known = processes.process_of(agent.pid).as_json()
    assert isinstance(known["started"], str) and isinstance(this_process().started, str)
    assert is_alive(known) is True
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert is_alive(known) is True
    assert is_alive(known | {"started": "Thu Jan 1 00:00:00 1970"}) is False
    assert is_alive(known | {"started": 346}) is True
    os.kill(agent.pid, signal.SIGKILL)
    os.waitid(os.P_PID, agent.pid, os.WEXITED | os.WNOWAIT)
    # It has ended, though its parent has not asked yet.
    assert is_alive(known) is False
    agent.wait(PATIENCE_S)
    assert is_alive(known) is False
    monkeypatch.setenv("PATH", str(tmp_path))
    assert is_alive(this_process().as_json() | {"started": "x"}) is True


def board_of(database: Database) -> tuple[ActivityBoard, ProcessFinder]:
    board = ActivityBoard(database)
    return board, ProcessFinder(board)


def test_pi_in_its_folder_runs_until_it_is_killed(
    tmp_path: Path, agents: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_activity, "LOOK_EVERY_MS", 0)
    work = tmp_path / "work"
    work.mkdir()
    program = tmp_path / "bin" / "pi"
    program.parent.mkdir()
    program.write_text("import sys; print('ready', flush=True); sys.stdin.read()")
    header = test_pi.header() | {"cwd": str(work)}
    test_pi.session(tmp_path, header, test_pi.user("u", None, 1, "hi"))
    database = synced(tmp_path, PiSource(), tmp_path / "sessions")
    ((session, updated_at),) = database.connection.execute(
        "SELECT id, updated_at FROM chat_sessions").fetchall()
    now = updated_at + 20 * 60_000
    board, found = board_of(database)
    board.clock = lambda: now
    found.moved([session])
    agent = start(agents, sys.executable, program, cwd=work)
    assert found.look() == []
    assert doing(database, session, now).state == "running"
    now += 60 * 60_000
    assert found.look() == []
    assert doing(database, session, now).state == "running"
    kill(agent)
    # At once, before anybody has looked.
    assert doing(database, session, now).state == "interrupted"
    assert found.look() == [(session, None)]
    assert doing(database, session, now).state == "interrupted"
    assert found.look() == []
    database.close()


def test_who_has_the_database_open_runs_its_sessions(
    tmp_path: Path, agents: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_activity, "LOOK_EVERY_MS", 0)
    rows = Rows(tmp_path / "opencode.db", now=system_clock())
    rows.session("ses_one")
    rows.message("ses_one", "user", text("hello"))
    rows.message("ses_one", "assistant", text("well"))
    rows.connection.close()
    database = synced(tmp_path, OpencodeSource(), rows.path)
    session = derived_session_id("opencode", "ses_one")
    _, found = board_of(database)
    found.start()
    assert found.look() == []
    agent = holding(agents, rows.path)
    found.look()
    later = system_clock() + 90_000
    assert doing(database, session, later).state == "running"
    kill(agent)
    assert doing(database, session).state == "interrupted"
    assert found.look() == [(session, None)]
    database.close()


def test_a_session_of_a_program_that_runs_nowhere_is_over(tmp_path: Path) -> None:
    test_pi.session(tmp_path, test_pi.header(), test_pi.user("u", None, 1, "hi"))
    database = synced(tmp_path, PiSource(), tmp_path / "sessions")
    ((session, updated_at),) = database.connection.execute(
        "SELECT id, updated_at FROM chat_sessions").fetchall()
    board = ActivityBoard(database, clock=lambda: updated_at + 5_000)
    found = ProcessFinder(board, processes=Processes)
    found.moved([session])
    found.look()
    assert doing(database, session, updated_at + 5_000).state == "running"
    later = updated_at + QUIET_ELSEWHERE_MS + 1
    board.clock = lambda: later
    assert found.look() == [(session, None)]
    assert doing(database, session, later).state == "interrupted"
    # What moves afterwards is another process's.
    database.connection.execute("UPDATE chat_sessions SET updated_at = ?", (later + 500,))
    assert doing(database, session, later + 600).state == "running"
    board.clear()
    unknown = ProcessFinder(board, processes=lambda: Processes(known=False))
    unknown.moved([session])
    assert unknown.look() == []
    database.close()


def test_a_session_that_moves_without_a_process_is_run_where_none_is_seen(
    tmp_path: Path,
) -> None:
    """Say in a container: once that was seen, nothing is concluded from there being none."""
    work = tmp_path / "work"
    work.mkdir()
    header = test_pi.header() | {"cwd": str(work)}
    test_pi.session(tmp_path, header, test_pi.user("u", None, 1, "a"))
    database = synced(tmp_path, PiSource(), tmp_path / "sessions")
    ((session, at),) = database.connection.execute(
        "SELECT id, updated_at FROM chat_sessions").fetchall()
    now = at + QUIET_MS
    board = ActivityBoard(database, clock=lambda: now)
    found = ProcessFinder(board, processes=Processes)
    found.moved([session])
    assert found.look() == []
    now += 2_001
    assert found.look() == [(session, None)]
    assert doing(database, session, now).state == "interrupted"
    now += 1_000
    with database.file as connection:
        connection.execute("UPDATE chat_sessions SET updated_at = ?", (now,))
    found.moved([session])
    for _ in range(3):
        now += 5_000
        assert found.look() == []
        assert doing(database, session, now).state == "running"
    database.close()


def test_another_process_with_the_database_open_does_not_stand_in(
    tmp_path: Path, agents: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_activity, "LOOK_EVERY_MS", 0)
    rows = Rows(tmp_path / "opencode.db", now=system_clock())
    rows.session("ses_one")
    rows.message("ses_one", "user", text("hello"))
    rows.connection.close()
    database = synced(tmp_path, OpencodeSource(), rows.path)
    session = derived_session_id("opencode", "ses_one")
    _, found = board_of(database)
    found.start()
    agent, _ = holding(agents, rows.path), holding(agents, rows.path)
    found.look()
    ((held,),) = database.connection.execute("SELECT process_json FROM live_activity").fetchall()
    runs = agent if orjson.loads(held)["pid"] == agent.pid else agents[1]
    kill(runs)
    assert found.look() == [(session, None)]
    assert doing(database, session).state == "interrupted"
    database.close()


def test_a_subagent_ends_with_the_process_of_its_parent(tmp_path: Path) -> None:
    database = open_database(tmp_path / "s.db", create=True)
    now = system_clock()
    said = {"activity": {"state": "running", "from": "guessed"}, "source": {"kind": "claude-code"}}
    child = {**said, "lineage": {"kind": "subagent"}}
    top, middle, low = (derived_session_id("claude-code", name) for name in "abc")
    for name, parent, metadata in ((top, None, said), (middle, top, child), (low, middle, child)):
        database.connection.execute(
            "INSERT INTO chat_sessions(id, agent, model_json, parent_id, metadata_json, created_at,"
            " updated_at) VALUES (?, 'a', '{}', ?, ?, ?, ?)",
            (name, parent, orjson.dumps(metadata).decode(), now - 300_000, now - 200_000),
        )
    lives = {"it": True}
    board = ActivityBoard(database, alive=lambda process: lives["it"])
    mine = this_process()
    process = RunningSession("a", "running", now, mine.pid, mine.started)
    board.show("claude-code", tmp_path, [process])
    assert doing(database, low) [:2] == ("running", "guessed")
    assert doing(database, low).busy
    lives["it"] = False
    assert board.show("claude-code", tmp_path, []) == [(top, None)]
    for name in (top, middle, low):
        assert doing(database, name).state == "interrupted"
        assert not doing(database, name).busy
    database.close()


LSOF = """#!/bin/sh
echo p4242
echo fcwd
echo n{work}
echo f12
echo n{file}
echo p1
echo fcwd
echo n/
"""


def test_processes_are_found_by_ps_and_lsof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "PROC", tmp_path / "no-proc")
    file = tmp_path / "opencode.db"
    file.touch()
    (tmp_path / "real").mkdir()
    (tmp_path / "work").symlink_to(tmp_path / "real")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, body in (
        ("ps", "#!/bin/sh\necho ' 4242 node /usr/lib/node_modules/opencode-ai/bin/x --flag'\n"
               "echo '   17 /sbin/launchd'\n"),
        ("lsof", LSOF.format(work=tmp_path / "real", file=file)),
    ):  # fmt: skip
        (tools / name).write_text(body)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    found = running_processes()
    assert found.known and found.any_of("opencode") and not found.any_of("pi")
    assert found.of_session("opencode", str(tmp_path / "work"), []) == [(4242, True)]
    # Its other sessions are in the same file.
    assert found.of_session("opencode", "/elsewhere", [str(file)]) == [(4242, False)]
    assert found.of_session("opencode", "/elsewhere", [str(file)], others=[4242]) == []
    assert found.of_session("opencode", "/elsewhere", []) == []
    assert found.of_session("nothing", str(tmp_path / "work"), [str(file)]) == []
    (tools / "lsof").unlink()
    monkeypatch.setenv("PATH", str(tools))
    assert running_processes().of_session("opencode", "/elsewhere", [str(file)]) == []
    (tools / "ps").unlink()
    assert not running_processes().known
