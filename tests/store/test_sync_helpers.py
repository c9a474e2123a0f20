"""A large sync is shared among helper processes; it comes out as if one process did it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import Database, open_database
from store.errors import StoreError
from store.sources import registry
from store.sync import child, pool
from store.sync.engine import Sync
from store.sync.problems import problems
from store.sync.roots import units_of
from store.sync.settings import BULK_UNITS, Settings, nothing_excluded
from store.sync.targets import Target
from store.sync.units import Job
from store.system.readable import readable
from tests.bench import claude_corpus
from tests.store.sync_fakes import SIDE_TABLES, TABLES, LineSource, dump, write_lines

FILES = 24
PATIENCE_S = 120
ALL = (*TABLES, *SIDE_TABLES)
MISBEHAVING = (sys.executable, "-m", "tests.store.misbehaving_helper")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.setattr(pool, "BULK_BYTES", 0)
    folder = tmp_path / "claude"
    folder.mkdir()
    claude_corpus.make(folder, files=FILES, rows=30)
    return Target(registry.source("claude-code"), folder)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path / "store.db", create=True)
    yield opened
    opened.close()


def rows_of_one_process(target: Target, tmp_path: Path) -> dict[str, list[tuple[object, ...]]]:
    database = open_database(tmp_path / "alone.db", create=True)
    assert Sync(database, Settings(helpers=0)).run([target]).new == FILES
    try:
        return dump(database, ALL)
    finally:
        database.close()


def test_helpers_give_what_one_process_gives(
    target: Target, database: Database, tmp_path: Path
) -> None:
    sync = Sync(database, Settings(helpers=2))
    summary = sync.run([target])
    assert (summary.units, summary.read, summary.new, summary.problems) == (FILES, FILES, FILES, 0)
    assert len(set(sync.changed)) == FILES
    progress = sync.progress
    assert (progress.files_done, progress.sessions) == (FILES, FILES)
    assert progress.bytes_done == progress.bytes_total > 0
    assert dump(database, ALL) == rows_of_one_process(target, tmp_path)
    again = Sync(database, Settings(helpers=2)).run([target])
    assert (again.units, again.read) == (FILES, 0)


def test_a_helper_imports_no_source_before_it_is_asked_for_one() -> None:
    code = (
        "import sys, store.sync.helper\n"
        "print([name for name in sys.modules if name.startswith('store.sources.') "
        "and name.split('.')[2] not in ('base', 'registry')])"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert told.stdout == "[]\n"
    assert [one.kind for one in registry.all_sources()[:2]] == ["claude-code", "codex"]
    assert registry.has(registry.source("codex")) and not registry.has(LineSource())


def test_what_is_known_to_no_helper_is_read_here(database: Database, tmp_path: Path) -> None:
    for number in range(FILES):
        write_lines(tmp_path / "lines", f"s{number}", 3)
    source = LineSource()
    assert (
        Sync(database, Settings(helpers=2)).run([Target(source, tmp_path / "lines")]).new == FILES
    )
    assert len(source.read_units) == FILES


def test_only_many_large_units_are_shared(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    units = list(units_of(target.source, target.root, []))
    jobs = [Job(target.source, target.root, unit, None) for unit in units]
    settings = Settings(helpers=2)
    assert pool.worth_sharing(jobs, settings)
    assert not pool.worth_sharing(jobs[:BULK_UNITS], settings)
    assert not pool.worth_sharing(jobs, Settings(helpers=0))
    monkeypatch.setattr(pool, "BULK_BYTES", sum(unit.size for unit in units) + 1)
    assert not pool.worth_sharing(jobs, settings)


def test_a_workspace_that_is_excluded_stays_out(target: Target, database: Database) -> None:
    summary = Sync(database, Settings(helpers=2, excludes=everything_excluded)).run([target])
    assert (summary.read, summary.new) == (FILES, 0)
    assert dump(database, ("chat_sessions",)) == {"chat_sessions": []}
    again = Sync(database, Settings(helpers=2, excludes=nothing_excluded)).run([target])
    assert (again.read, again.new) == (FILES, FILES)


def everything_excluded(workspace: str | None) -> bool:
    return True


def test_a_unit_that_ends_its_helper_costs_itself(
    target: Target, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = sorted(unit.key for unit in units_of(target.source, target.root, []))[FILES // 2]
    monkeypatch.setattr(pool, "COMMAND", (*MISBEHAVING, "die-at", victim))
    monkeypatch.chdir(ROOT)
    summary = Sync(database, Settings(helpers=2)).run([target])
    assert (summary.new, summary.problems) == (FILES - 1, 1)
    (problem,) = problems(database)
    assert (problem.unit, problem.reason) == (victim, pool.ENDED_EARLY)
    monkeypatch.undo()
    assert Sync(database, Settings(helpers=0)).run([target]).new == 1
    assert problems(database) == []


@pytest.mark.parametrize(
    "what",
    ["die-in-a-transaction", "stop-in-a-transaction", pytest.param("stop", marks=pytest.mark.long)],
)
@pytest.mark.one_in(2)
def test_a_helper_that_is_killed_or_stopped_costs_nothing(
    what: str,
    target: Target,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mark = tmp_path / "died"
    monkeypatch.setattr(pool, "COMMAND", (*MISBEHAVING, what, str(mark)))
    monkeypatch.setattr(child, "LOOK_S", 0.02)
    monkeypatch.chdir(ROOT)
    summary = Sync(database, Settings(helpers=2)).run([target])
    assert mark.exists()
    assert (summary.read, summary.new, summary.problems) == (FILES, FILES, 0)
    monkeypatch.undo()
    assert dump(database, ALL) == rows_of_one_process(target, tmp_path)


@pytest.mark.parametrize("started", [0, 1])
def test_where_no_helper_can_be_started_this_process_reads_the_rest(
    started: int,
    target: Target,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes: list[subprocess.Popen[bytes]] = []

    def start(*words: Any, **more: Any) -> subprocess.Popen[bytes]:
        if len(processes) == started:
            raise BlockingIOError("no more processes")
        processes.append(subprocess.Popen([sys.executable, "-c", ""], stdin=-1, stdout=-1))
        return processes[-1]

    monkeypatch.setattr(child, "start_program", start)
    summary = Sync(database, Settings(helpers=2)).run([target])
    assert (summary.read, summary.new, summary.problems) == (FILES, FILES, 0)
    assert dump(database, ALL) == rows_of_one_process(target, tmp_path)


def test_a_helper_without_its_thread_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[subprocess.Popen[bytes]] = []

    def start(*words: Any, **more: Any) -> subprocess.Popen[bytes]:
        made.append(subprocess.Popen(["sleep", "60"], stdin=-1, stdout=-1))
        return made[-1]

    def no_thread(self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(child, "start_program", start)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    one = pool.Pool(Path("store.db"), Settings(helpers=1), lambda: False)
    assert list(one.work([], lambda: False)) == []
    assert made[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (("die", ""), "sync's helper processes end early (too little memory?)"),
        (("fail", "the disk is full"), "the disk is full"),
    ],
)
def test_a_sync_without_helpers_that_work_says_why(
    target: Target,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    what: tuple[str, str],
    message: str,
) -> None:
    monkeypatch.setattr(pool, "COMMAND", (*MISBEHAVING, *what))
    monkeypatch.chdir(ROOT)
    with pytest.raises(StoreError) as raised:
        Sync(database, Settings(helpers=2)).run([target])
    assert str(raised.value) == message
    assert dump(database, ("chat_sessions",)) == {"chat_sessions": []}


def test_a_sync_that_is_stopped_keeps_what_is_done(
    target: Target, database: Database, tmp_path: Path
) -> None:
    sync = Sync(database, Settings(helpers=2))
    sync.stopped = lambda: sync.progress.files_done > 0
    summary = sync.run([target])
    assert summary.stopped and 0 < summary.read == summary.new <= FILES
    stored = database.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()
    assert stored == (summary.new,)
    rest = Sync(database, Settings(helpers=2)).run([target])
    assert rest.new == FILES - summary.new
    assert dump(database, ALL) == rows_of_one_process(target, tmp_path)


def test_a_signal_to_the_whole_group_blames_no_unit(
    target: Target, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "COMMAND", (*MISBEHAVING, "be-told-to-end", ""))
    monkeypatch.chdir(ROOT)
    summary = Sync(database, Settings(helpers=2)).run([target])
    assert (summary.new, summary.problems) == (FILES, 0)


def test_a_helper_that_ends_once_the_sync_is_stopped_blames_no_unit(
    target: Target, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "COMMAND", (*MISBEHAVING, "die-at", ""))
    monkeypatch.chdir(ROOT)
    sync = Sync(database, Settings(helpers=1))
    heard = []
    took = pool.Pool._take

    def take(self: pool.Pool, *what: Any) -> Any:
        heard.append(what[1])
        return took(self, *what)

    monkeypatch.setattr(pool.Pool, "_take", take)
    # Stopped while its end is waited for.
    sync.stopped = lambda: None in heard
    summary = sync.run([target])
    assert (summary.stopped, summary.read, summary.problems) == (True, 0, 0)
    assert problems(database) == []


KILLED = """
import sys
from store.sync import settings
settings.BULK_UNITS = 0
from store.sync import pool
pool.BULK_BYTES = 0
if sys.argv[3:]:
    pool.COMMAND = (sys.executable, "-m", "tests.store.misbehaving_helper", *sys.argv[3:])
    take = pool.Pool._take
    def took(self, helper, frame, jobs):
        print(helper._process.pid, flush=True); return take(self, helper, frame, jobs)
    pool.Pool._take = took
else:
    start = pool.Pool._start
    def started(self):
        helper = start(self); print(helper._process.pid, flush=True); return helper
    pool.Pool._start = started
    pool._Helper.deal = lambda self, waiting: None
from store.sync.__main__ import main
main(["--helpers", "2", "--store", sys.argv[1], sys.argv[2]])
"""


# So little as is read here is dealt to the first helper alone.
@pytest.mark.parametrize(("doing", "at_work"), [([], 2), (["read-for-ever", ""], 1)])
def test_helpers_end_with_the_sync_that_is_killed(
    tmp_path: Path, target: Target, doing: list[str], at_work: int
) -> None:
    sync = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "killed.db"), str(target.root), *doing],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert sync.stdout is not None
    helpers = [os.pidfd_open(int(sync.stdout.readline())) for _ in range(at_work)]
    sync.send_signal(signal.SIGKILL)
    sync.communicate()
    for helper in helpers:
        ended = readable([helper], PATIENCE_S)
        os.close(helper)
        assert ended
