"""Watchers as they run: in processes of their own, one per store, killed at any time."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pytest

from store.activity.judgement import live_activities
from store.engine.database import open_database
from store.errors import StoreError
from store.ids import derived_session_id
from store.queries import activities
from store.sources.claude_code import ClaudeCodeSource
from store.sync.engine import Sync
from store.sync.process import (
    Activity,
    Standby,
    Synced,
    SyncProcess,
    Watching,
    event_as_dict,
    start_sync,
)
from store.sync.progress import Summary
from store.sync.settings import Settings
from store.sync.targets import Target
from store.system.clock import system_clock
from tests.store.sync_fakes import dump
from tests.store.test_sync_live import LIVE, appends

PATIENCE_S = 120
ROW = (
    '{"parentUuid":null,"sessionId":"s","version":"2.1.332","type":"user","uuid":"%s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work",'
    '"message":{"role":"user","content":"%s"}}\n'
)
T = TypeVar("T")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "claude"
    (folder / "projects" / "-work").mkdir(parents=True)
    (folder / "projects" / "-work" / "first.jsonl").write_text(ROW % ("u0", "hello"))
    return folder


class Watcher:
    """A watcher process and what it has told so far."""

    def __init__(self, process: SyncProcess) -> None:
        self.process = process
        self.told: list[Any] = []
        self._events: AsyncIterator[Any] = process.events()

    async def until(self, kind: type[T], wanted: Callable[[T], bool] = lambda event: True) -> T:
        """Wait for an event of a kind."""
        async with asyncio.timeout(PATIENCE_S):
            async for event in self._events:
                self.told.append(event)
                if isinstance(event, kind) and wanted(event):
                    return event
        raise AssertionError(f"it ended without {kind.__name__}; it told {self.told}")

    async def end(self) -> None:
        """Wait for its end."""
        async with asyncio.timeout(PATIENCE_S):
            async for event in self._events:
                self.told.append(event)


@pytest.fixture
async def watch(tmp_path: Path) -> AsyncIterator[Any]:
    started: list[SyncProcess] = []

    async def start(*targets: Path, store: Path = tmp_path / "live.db") -> Watcher:
        process = await start_sync(store, targets, watch=True)
        started.append(process)
        return Watcher(process)

    yield start
    for process in started:
        await process.stop()


def rows_at_once(tmp_path: Path, root: Path) -> dict[str, list[Any]]:
    path = tmp_path / "once.db"
    path.unlink(missing_ok=True)
    database = open_database(path, create=True)
    Sync(database, Settings(helpers=0)).run([Target(ClaudeCodeSource(), root)])
    rows = dump(database)
    database.close()
    return rows


def rows_of_store(tmp_path: Path) -> dict[str, list[Any]]:
    database = open_database(tmp_path / "live.db", write=False)
    rows = dump(database)
    database.close()
    return rows


def texts(tmp_path: Path, *, gone: bool = False) -> set[str]:
    """All texts, or those of messages that the source no longer has."""
    rows = rows_of_store(tmp_path)
    lost = {row[0] for row in rows["chat_messages"] if orjson.loads(row[3])["source"].get("gone")}
    return {
        orjson.loads(row[5])["text"]
        for row in rows["chat_parts"]
        if not gone or row[1] in lost
    }


@pytest.mark.parametrize("name", ["2.1.332-terminal", "2.1.332-print", "2.0.77-print"])
@pytest.mark.one_in(3)
async def test_a_replayed_run_ends_as_its_finished_files(
    name: str, root: Path, tmp_path: Path, watch: Any
) -> None:
    watcher = await watch(root)
    await watcher.until(Watching)
    assert isinstance(watcher.told[-2], Summary)
    for file, body in appends(name):
        path = root / "projects" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        for piece in (body[: len(body) // 2], body[len(body) // 2 :]):
            with path.open("ab", buffering=0) as out:
                out.write(piece)
            await asyncio.sleep(0)
    wanted = rows_at_once(tmp_path, root)
    while rows_of_store(tmp_path) != wanted:
        await watcher.until(Synced)
    assert len(wanted["chat_sessions"]) > 1


async def test_what_happens_to_files_is_seen(root: Path, tmp_path: Path, watch: Any) -> None:
    folder = root / "projects" / "-work"
    watcher = await watch(root)
    await watcher.until(Watching)
    first = folder / "first.jsonl"

    async def until_texts(wanted: set[str]) -> None:
        while texts(tmp_path) != wanted:
            await watcher.until(Synced)

    with first.open("a") as out:
        out.write(ROW % ("u1", "more"))
    await until_texts({"hello", "more"})
    os.truncate(first, len(ROW % ("u0", "hello")))
    while texts(tmp_path, gone=True) != {"more"}:
        await watcher.until(Synced)
    staged = folder / "first.staged"
    staged.write_text(ROW % ("u2", "replaced"))
    staged.replace(first)
    old = {"hello", "more"}
    await until_texts(old | {"replaced"})
    assert texts(tmp_path, gone=True) == old
    deep = root / "projects" / "-new" / "second" / "subagents"
    deep.mkdir(parents=True)
    (deep / "agent-a1.jsonl").write_text(ROW % ("u3", "from an agent"))
    await until_texts(old | {"replaced", "from an agent"})
    (root / "projects" / "-new" / "second.jsonl").write_text(ROW % ("u4", "from its session"))
    await until_texts(old | {"replaced", "from an agent", "from its session"})
    first.unlink()
    (folder / "third.jsonl").write_text(ROW % ("u5", "third"))
    old |= {"replaced", "from an agent", "from its session"}
    await until_texts(old | {"third"})
    folder.rename(root / "projects" / "-moved")
    with (root / "projects" / "-moved" / "third.jsonl").open("a") as out:
        out.write(ROW % ("u6", "and on"))
    await until_texts(old | {"third", "and on"})


async def test_the_first_project_of_all_is_seen(tmp_path: Path, watch: Any) -> None:
    root = tmp_path / "claude"
    (root / "projects").mkdir(parents=True)
    (root / "projects" / "-a").mkdir()
    (root / "projects" / "-a" / "one.jsonl").write_text(ROW % ("u", "one"))
    watcher = await watch(root)
    await watcher.until(Watching)
    (root / "projects").rename(tmp_path / "away")
    (root / "projects" / "-b").mkdir(parents=True)
    (root / "projects" / "-b" / "two.jsonl").write_text(ROW % ("u", "two"))
    while texts(tmp_path) != {"one", "two"}:
        await watcher.until(Synced)


async def test_one_watches_and_the_next_takes_over(
    root: Path, tmp_path: Path, watch: Any
) -> None:
    first = await watch(root)
    await first.until(Watching)
    second, third = await watch(root), await watch(root)
    await second.until(Standby)
    await third.until(Standby)
    # It holds its place and sees nothing, and is gone before anything is to be seen.
    os.kill(first.process.pid, signal.SIGSTOP)
    path = root / "projects" / "-work" / "first.jsonl"
    with path.open("a") as out:
        out.write(ROW % ("u1", "while nobody watched"))
    os.kill(first.process.pid, signal.SIGKILL)
    names = {asyncio.ensure_future(one.until(Watching)): one for one in (second, third)}
    done, waiting = await asyncio.wait(names, return_when=asyncio.FIRST_COMPLETED)
    (taken,) = done
    (left,) = waiting
    assert taken.exception() is None
    assert texts(tmp_path) == {"hello", "while nobody watched"}
    with path.open("a") as out:
        out.write(ROW % ("u2", "then"))
    event = await names[taken].until(Synced)
    assert event.session == derived_session_id("claude-code", "first")
    assert texts(tmp_path) == {"hello", "while nobody watched", "then"}
    await names[taken].process.stop()
    await left


async def test_other_places_do_not_wait_for_each_other(
    root: Path, tmp_path: Path, watch: Any
) -> None:
    other = tmp_path / "other"
    (other / "projects" / "-o").mkdir(parents=True)
    (other / "projects" / "-o" / "there.jsonl").write_text(ROW % ("u9", "there"))
    for one in (await watch(root), await watch(other)):
        await one.until(Watching)
    assert texts(tmp_path) == {"hello", "there"}


async def test_it_ends_in_order_with_whoever_started_it(root: Path, watch: Any) -> None:
    watcher = await watch(root)
    await watcher.until(Watching)
    waiting = await watch(root)
    await waiting.until(Standby)
    await waiting.process.stop()
    await waiting.end()
    os.kill(watcher.process.pid, signal.SIGTERM)
    await watcher.end()
    third = await watch(root)
    await third.until(Watching)
    await third.process.stop()
    await third.end()


async def test_a_source_that_is_watched_stays_as_it_is(tmp_path: Path, watch: Any) -> None:
    import shutil

    root = tmp_path / "home" / ".claude"
    shutil.copytree(LIVE.parent / "home" / ".claude", root)

    def snapshot() -> dict[str, tuple[int, int, bytes]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.stat().st_mode, path.read_bytes())
            if path.is_file() else (path.stat().st_mtime_ns, path.stat().st_mode, b"")
            for path in (tmp_path / "home").rglob("*")
        }  # fmt: skip

    before = snapshot()
    watcher = await watch(root)
    await watcher.until(Watching)
    assert snapshot() == before
    path = next(path for path in sorted(root.glob("projects/*/*.jsonl")) if path.stat().st_size)
    with path.open("a") as out:
        out.write(ROW % ("u-new", "one more"))
    after = snapshot()
    await watcher.until(Synced)
    await watcher.process.stop()
    await watcher.end()
    assert snapshot() == after
    assert before.keys() == after.keys()


async def test_busy_and_idle_are_shown_while_the_process_lives(
    root: Path, tmp_path: Path, watch: Any
) -> None:
    agent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "import sys; sys.stdin.read()", stdin=asyncio.subprocess.PIPE
    )
    started = Path(f"/proc/{agent.pid}/stat").read_text().rpartition(")")[2].split()[19]
    folder = root / "sessions"
    folder.mkdir()
    said = {"pid": agent.pid, "procStart": started, "sessionId": "first", "status": "busy",
            "statusUpdatedAt": 1_795_000_000_000}  # fmt: skip
    (folder / f"{agent.pid}.json").write_bytes(orjson.dumps(said))
    dead = {**said, "procStart": "1", "sessionId": "other"}
    (folder / "1.json").write_bytes(orjson.dumps({**dead, "pid": 1}))
    (folder / f"{agent.pid}.key").write_text("secret")
    (folder / f"{agent.pid}.key").chmod(0)
    name = derived_session_id("claude-code", "first")
    watcher = await watch(root)
    event = await watcher.until(Activity)
    assert (event.session, event.state) == (name, "running")
    database = open_database(tmp_path / "live.db", write=False)

    def in_list() -> tuple[str | None, str | None]:
        (row,) = activities.rows(database, [1], (), system_clock()).values()
        return row.activity, row.activity_from

    assert in_list() == ("running", "stored")
    assert live_activities(database, [name])[name]["since"] == 1_795_000_000_000
    await watcher.until(Watching)
    # In one step: a file that is cut before it is written tells of nobody.
    (folder / "staged").write_bytes(orjson.dumps({**said, "status": "idle"}))
    (folder / "staged").replace(folder / f"{agent.pid}.json")
    event = await watcher.until(Activity)
    assert event_as_dict(event) == {
        "event": "activity", "session": name, "state": "idle", "at": event.at,
    }  # fmt: skip
    assert in_list() == ("idle", "stored")
    agent.kill()
    await agent.wait()
    assert (await watcher.until(Activity)).state is None
    assert in_list() == ("interrupted", "guessed")
    assert dump(database) == rows_at_once(tmp_path, root)
    database.close()


async def test_a_watcher_that_was_killed_vouches_for_nothing(
    root: Path, tmp_path: Path, watch: Any
) -> None:
    folder = root / "sessions"
    folder.mkdir()
    started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    said = {"pid": os.getpid(), "procStart": started, "sessionId": "first", "status": "busy"}
    (folder / f"{os.getpid()}.json").write_bytes(orjson.dumps(said))
    name = derived_session_id("claude-code", "first")
    watcher = await watch(root)
    await watcher.until(Watching)
    database = open_database(tmp_path / "live.db", write=False)
    assert live_activities(database, [name])[name]["state"] == "running"
    os.kill(watcher.process.pid, signal.SIGKILL)
    with pytest.raises(StoreError, match="was ended by SIGKILL"):
        await watcher.end()
    assert live_activities(database, [name]) == {}
    again = await watch(root)
    await again.until(Watching)
    assert live_activities(database, [name])[name]["state"] == "running"
    await again.process.stop()
    await again.end()
    assert database.connection.execute("SELECT * FROM live_activity").fetchall() == []
    database.close()


async def test_a_store_that_is_taken_away_ends_it(root: Path, tmp_path: Path, watch: Any) -> None:
    watcher = await watch(root)
    await watcher.until(Watching)
    (tmp_path / "live.db").rename(tmp_path / "elsewhere.db")
    with pytest.raises(StoreError, match="removed or replaced"):
        await watcher.end()




FORKED = (
    '{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"%s",'
    '"timestamp":"2026-11-01T10:00:00.000Z","version":"2.1.332","cwd":"/w",'
    '"message":{"role":"user","content":"asked"}}\n'
    '{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"%s",%s'
    '"timestamp":"2026-11-01T10:00:01.000Z","version":"2.1.332","cwd":"/w","message":{"id":"m1",'
    '"role":"assistant","model":"m","content":[{"type":"text","text":"answered"}]}}\n'
    '{"type":"user","uuid":"u2","parentUuid":"a1","sessionId":"%s",'
    '"timestamp":"2026-11-01T10:00:02.000Z","version":"2.1.332","cwd":"/w",'
    '"message":{"role":"user","content":"copied too"}}\n'
)


async def test_a_parent_that_comes_later_is_followed(
    root: Path, tmp_path: Path, watch: Any
) -> None:
    """Only the parent's file tells that the fork's last prompt is a copy."""
    folder = root / "projects" / "-work"
    watcher = await watch(root)
    await watcher.until(Watching)
    (folder / "fork.jsonl").write_text(
        FORKED % ("fork", "fork", '"requestSessionId":"parent",', "fork")
    )

    def copies() -> int:
        return sum(b"inherited_from" in row[3].encode() for row in
                   rows_of_store(tmp_path)["chat_messages"])  # fmt: skip

    while copies() != 2:
        await watcher.until(Synced)
    (folder / "parent.jsonl").write_text(FORKED % ("parent", "parent", "", "parent"))
    while copies() != 3:
        await watcher.until(Synced)
