"""The pieces of a watcher: its pace, its folders, polling, and trouble with the store."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.errors import StoreError
from store.sources.base.protocol import RunningSession
from store.sources.claude_code import ClaudeCodeSource
from store.sync import engine, watch, watch_events, watch_pace
from store.sync.batch import write_batch
from store.sync.locking import watcher_lock
from store.sync.settings import Settings
from store.sync.targets import Target
from store.sync.watch import Watch
from store.sync.watch_activity import ActivityBoard
from store.sync.watch_events import Events
from store.sync.watch_pace import Pace
from store.system.silent import is_silent
from store.system.stopping import Stop
from tests.store.sync_fakes import LineSource, dump, line, write_lines

PATIENCE_S = 120


class Watching:
    """A watcher on a thread of this process."""

    def __init__(self, store: Path, *targets: Target, **settings: Any) -> None:
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()
        self.stop = Stop()
        self.targets = list(targets)
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(store, settings))
        self._thread.start()

    def _run(self, store: Path, settings: dict[str, Any]) -> None:
        database = open_database(store, create=True)
        try:
            Watch(
                database, Settings(helpers=0, **settings), lambda: list(self.targets), self.stop,
                say=self.told.put,
            ).run()  # fmt: skip
        except Exception as error:
            self.error = error
        finally:
            database.close()

    def until(self, kind: str) -> dict[str, Any]:
        while (event := self.told.get(timeout=PATIENCE_S))["event"] != kind:
            pass
        return event

    def end(self) -> None:
        self.stop.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


@pytest.fixture
def started() -> Iterator[list[Watching]]:
    watching: list[Watching] = []
    yield watching
    for one in watching:
        one.end()


def texts(store: Path) -> set[str]:
    database = open_database(store, write=False)
    found = {row[0] for row in database.connection.execute(
        "SELECT json_extract(data_json, '$.text') FROM chat_parts")}  # fmt: skip
    database.close()
    return found


def test_where_nothing_tells_of_changes_the_folders_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Watching]
) -> None:
    monkeypatch.setattr(watch_events, "is_silent", lambda folder: True)
    monkeypatch.setattr(watch_pace, "POLL_S", 0.01)
    path = write_lines(tmp_path / "fake", "one", 1)
    started.append(Watching(tmp_path / "s.db", Target(LineSource(), path.parent)))
    started[0].until("watching")
    with path.open("a") as out:
        out.write(line(1, "polled"))
    assert started[0].until("synced")["synced"] == 1
    assert texts(tmp_path / "s.db") == {"text 0", "polled"}


def test_where_no_watch_can_be_set_the_folders_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        # Told to leave out what may not be entered, it leaves out this too.
        if not arguments[-1]:
            raise OSError("OS file watch limit reached.")

    monkeypatch.setattr(watch_events, "RustNotify", refuse)
    events = Events([tmp_path, tmp_path / "missing"], Stop())
    assert events.polled == events.folders == [tmp_path]
    assert events.wait(0.001).paths == frozenset()


def test_what_may_not_be_entered_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def refuse(*arguments: object) -> object:
        asked.append(arguments[-1])
        if not arguments[-1]:
            raise PermissionError("Permission denied")
        return object()

    monkeypatch.setattr(watch_events, "RustNotify", refuse)
    assert Events([tmp_path], Stop()).polled == []
    assert asked == [False, True]


def test_a_source_that_cannot_be_followed_is_listed_when_it_changes(
    tmp_path: Path, started: list[Watching]
) -> None:
    root = write_lines(tmp_path / "fake", "one", 1).parent
    started.append(Watching(tmp_path / "s.db", Target(LineSource(), root)))
    started[0].until("watching")
    write_lines(root, "two", 2)
    while texts(tmp_path / "s.db") != {"text 0", "text 1"}:
        started[0].until("synced")


def test_sessions_go_with_their_file_where_the_settings_say_so(
    tmp_path: Path, started: list[Watching]
) -> None:
    path = write_lines(tmp_path / "fake", "one", 1)
    write_lines(path.parent, "two", 1)
    store = tmp_path / "s.db"
    started.append(Watching(store, Target(LineSource(), path.parent), keep_deleted=False))
    started[0].until("watching")
    path.unlink()
    with path.with_name("two.lines").open("a") as out:
        out.write(line(1))
    database = open_database(store, write=False)
    while len(dump(database)["chat_sessions"]) != 1:
        started[0].until("synced")
    database.close()


def test_a_place_that_was_missing_is_watched_before_the_next_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Watching]
) -> None:
    monkeypatch.setattr(watch, "COMING_S", 0.01)
    monkeypatch.setattr(watch, "TICK_S", 2 * PATIENCE_S)
    started.append(Watching(tmp_path / "s.db", Target(LineSource(), tmp_path / "later")))
    started[0].until("watching")
    write_lines(tmp_path / "later", "one", 1)
    started[0].until("watching")
    assert texts(tmp_path / "s.db") == {"text 0"}


def test_a_file_that_was_missing_is_noticed_once(tmp_path: Path) -> None:
    log = tmp_path / "a.db-wal"
    (tmp_path / "a.db").touch()
    events = Events([tmp_path / "a.db", log], Stop())
    try:
        assert events.waits_for_files and not events.has_come()
        log.touch()
        assert events.has_come() and not events.has_come() and not events.waits_for_files
        assert not events.are_current([tmp_path / "a.db", log])
    finally:
        events.close()


def test_a_place_that_appears_is_watched_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Watching]
) -> None:
    monkeypatch.setattr(watch, "TICK_S", 0.01)
    source = LineSource()
    root = write_lines(tmp_path / "fake", "one", 1).parent
    started.append(Watching(tmp_path / "s.db", Target(source, root)))
    started[0].until("watching")
    other = write_lines(tmp_path / "other", "two", 2).parent
    started[0].targets.append(Target(source, other))
    started[0].until("watching")
    assert texts(tmp_path / "s.db") == {"text 0", "text 1"}


def test_trouble_with_the_store_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Watching]
) -> None:
    monkeypatch.setattr(watch, "RETRY_S", 0.01)
    path = write_lines(tmp_path / "fake", "one", 1)
    started.append(Watching(tmp_path / "s.db", Target(LineSource(), path.parent)))
    started[0].until("watching")
    write, failures = write_batch, [StoreError("the disk is full")]

    def fail_once(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return write(*arguments)

    monkeypatch.setattr(engine, "write_batch", fail_once)
    with path.open("a") as out:
        out.write(line(1, "later"))
    assert started[0].until("trouble")["message"] == "the disk is full"
    started[0].until("synced")
    assert texts(tmp_path / "s.db") == {"text 0", "later"}


def test_who_waits_for_the_lock_hears_the_stop(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with watcher_lock(store, "", Stop(), lambda: None) as first:
        assert first
        stop, told = Stop(), []

        def standing_by() -> None:
            told.append(True)
            stop.set()

        with watcher_lock(store, "", stop, standing_by) as second:
            assert not second
        assert told == [True]
        with watcher_lock(store, "elsewhere", Stop(), lambda: None) as third:
            assert third


def test_listing_rests_from_its_own_length() -> None:
    now = [0.0]
    told, polled = (Target(LineSource(), Path(name)) for name in ("/told", "/polled"))
    pace = Pace(lambda: now[0])
    pace.start([told, polled], [polled])
    assert pace.due() == watch_pace.POLL_S
    pace.wanted(told)
    assert pace.is_due(told)
    with pace.measured(told):
        now[0] += 2
    assert not pace.is_due(told)
    pace.wanted(told)
    now[0] = 2 + watch_pace.SHARE * 2 - 1
    assert not pace.is_due(told)
    now[0] += 1
    assert pace.is_due(told)
    for _ in range(20):
        with pace.measured(polled):
            pass
    now[0] += watch_pace.SLOWEST_POLL_S - 0.1
    assert not pace.is_due(polled)
    pace.moved(polled)
    now[0] += 0.1
    assert pace.is_due(polled)


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/nas rw,relatime shared:5 - nfs4 nas:/export rw
31 22 0:41 / /mnt/nas/local rw,relatime - tmpfs tmpfs rw
32 22 0:42 / /mnt/with\\040space rw,relatime master:1 - fuse.sshfs host: rw
"""


@pytest.mark.parametrize(
    ("folder", "silent"),
    [("/home/me", False), ("/mnt/nas/claude", True), ("/mnt/nas", True), ("/mnt/nasty", False),
     ("/mnt/nas/local/x", False), ("/mnt/with space/x", True)],
)  # fmt: skip
def test_file_systems_that_tell_of_nothing(folder: str, silent: bool, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert is_silent(Path(folder), mounts) is silent
    assert not is_silent(Path(folder), tmp_path / "missing")


def test_activity_is_written_where_it_changes_and_for_the_living(tmp_path: Path) -> None:
    database = open_database(tmp_path / "s.db", create=True)
    living = {1, 2}
    board = ActivityBoard(
        database, lambda: 5, alive=lambda process: process.get("pid") in living
    )
    root = Path("/root")
    said = [RunningSession("a", "running", 7, 1, 70), RunningSession("b", "idle", 8, 3)]
    ((name, state),) = board.show("fake", root, said)
    assert state == "running"
    total = database.connection.total_changes
    assert board.show("fake", root, said) == []
    assert database.connection.total_changes == total
    living.clear()
    assert board.show("fake", root, said) == [(name, None)]
    assert board.is_empty
    rows = database.connection.execute("SELECT session_id, state FROM live_activity").fetchall()
    assert rows == [(name, "gone")]
    board.clear()
    changes = database.connection.execute("SELECT session_id, message_id FROM changes").fetchall()
    assert changes == [(name, None)] * 3
    assert database.connection.execute("SELECT * FROM live_activity").fetchall() == []
    database.close()


def test_what_changed_says_which_sessions_to_look_at(tmp_path: Path) -> None:
    source = ClaudeCodeSource()
    projects = tmp_path / "projects"
    for name in ("-a/one.jsonl", "-a/two.jsonl", "-a/one/subagents/agent-x.jsonl", "-b/one.jsonl"):
        (projects / name).parent.mkdir(parents=True, exist_ok=True)
        (projects / name).write_text('{"sessionId":"one"}\n')
    (projects / "-a" / "agent-old.jsonl").write_text('{"sessionId":"two"}\n')

    def keys(*names: str) -> list[str] | None:
        found = source.units_at(tmp_path, [str(projects / name) for name in names])
        return None if found is None else sorted(unit.key for unit in found)

    assert keys("-a/two.jsonl") == ["-a/two"]
    assert keys("-a/agent-old.jsonl") == ["-a/two"]
    assert keys("-a/one/subagents/agent-x.jsonl") == ["-a/one"]
    assert keys("-a/.tmp.123", "-a/notes.txt", "../sessions/1.json") == []
    assert keys("-a/gone.jsonl", "-gone/x.jsonl") == []
    assert keys("-a") == ["-a/one", "-a/two"]
    whole = {unit.key: unit for unit in source.units(tmp_path, [])}
    (unit,) = source.units_at(tmp_path, [str(projects / "-a" / "one.jsonl")]) or []
    assert unit == whole[unit.key]
    # The session is in two folders; only the file that changed is read again.
    with (projects / "-b" / "one.jsonl").open("a") as out:
        out.write('{"sessionId":"one"}\n')
    assert keys("-a/one.jsonl") == ["-a/one"]
    assert source.units_at(projects / "-a", [str(projects / "-a" / "one.jsonl")]) is None


def test_what_processes_say_of_their_sessions(tmp_path: Path) -> None:
    source = ClaudeCodeSource()
    assert source.running(tmp_path) == []
    folder = tmp_path / "sessions"
    folder.mkdir()
    for pid, text in {
        "11": '{"pid":11,"procStart":"346","sessionId":"a","status":"busy","statusUpdatedAt":5}',
        "12": '{"pid":12,"sessionId":"b","status":"waiting","waitingFor":"permission prompt"}',
        "13": '{"pid":13,"sessionId":"c","status":"waiting","waitingFor":"input needed"}',
        "14": '{"pid":14,"sessionId":"a","status":"idle","statusUpdatedAt":4}',
        "15": '{"pid":15,"sessionId":"d"}',
        "16": '{"pid":99,"sessionId":"e","status":"busy"}',
        "17": '{"pid":17,"sess',
        "x": '{"pid":18,"sessionId":"f","status":"busy"}',
    }.items():
        (folder / f"{pid}.json").write_text(text)
    (folder / "11.key").mkdir()
    assert source.running(tmp_path) == [
        RunningSession("a", "running", 5, 11, 346),
        RunningSession("b", "waiting-approval", 0, 12),
        RunningSession("c", "waiting-input", 0, 13),
    ]
    (folder / "12.json").write_text('{"pid":12,"sess')
    (folder / "13.json").write_text("")
    assert [one.source_id for one in source.running(tmp_path)] == ["a", "b", "c"]
    assert [one.source_id for one in ClaudeCodeSource().running(tmp_path)] == ["a"]
    (folder / "12.json").write_text('{"pid":12,"sessionId":"d","status":"idle"}')
    (folder / "13.json").unlink()
    assert [one.source_id for one in source.running(tmp_path)] == ["a", "d"]
    (tmp_path / "projects").mkdir()
    assert source.running(tmp_path / "projects") == source.running(tmp_path)
    assert list(source.watch_paths(tmp_path)) == [tmp_path / "projects", folder]
