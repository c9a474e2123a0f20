from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import orjson

from store.engine.database import open_database
from store.sync.process import Event, Server, SyncProcess, Watching
from tui.live.syncing import Syncing

HERE = Path(__file__).parents[2]
ROW = (
    '{"parentUuid":null,"sessionId":"s","version":"2.1.332","type":"user","uuid":"%s",'
    '"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"hello"}}\n'
)
PATIENCE_S = 120


def config_folder(tmp_path: Path) -> Path:
    path = tmp_path / "claude" / "projects" / "-work" / "s.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(ROW % "u")
    return tmp_path / "claude"


async def test_the_app_syncs_and_goes_on_watching_until_it_ends(tmp_path: Path) -> None:
    root, store = config_folder(tmp_path), tmp_path / "s.db"
    open_database(store, create=True).close()
    synced = asyncio.Event()
    said: list[str] = []
    failures: list[str] = []

    def say(words: str) -> None:
        said.append(words)
        if not words:
            synced.set()

    syncing = Syncing(store, say, lambda summary, error: failures.append(summary))
    running = asyncio.ensure_future(syncing.run([str(root)], watch=True))
    async with asyncio.timeout(PATIENCE_S):
        await synced.wait()
        assert not running.done()
        await syncing.stop()
        await running
    assert failures == []
    assert said[0] == "syncing 0 of 1 files"


async def test_a_watcher_that_ends_by_itself_is_told_and_started_again(tmp_path: Path) -> None:
    root, store = config_folder(tmp_path), tmp_path / "s.db"
    open_database(store, create=True).close()
    watching = asyncio.Queue[SyncProcess]()
    failures: list[str] = []

    class Followed(Syncing):
        def _heed(self, event: Event) -> None:
            super()._heed(event)
            if isinstance(event, Watching) and self._process is not None:
                watching.put_nowait(self._process)

    syncing = Followed(
        store, lambda words: None, lambda summary, error: failures.append(f"{summary}: {error}"),
        pauses_s=[0.0],
    )
    running = asyncio.ensure_future(syncing.run([str(root)], watch=True))
    async with asyncio.timeout(PATIENCE_S):
        os.kill((await watching.get()).pid, signal.SIGKILL)
        await watching.get()
        assert failures == ["Sync ended, and starts again: sync was ended by SIGKILL"]
        for file in sorted(tmp_path.glob("s.db*")):
            file.rename(tmp_path / f"away-{file.name}")
        while len(failures) < 2:
            await asyncio.sleep(0)
        assert failures[1].endswith("was removed or replaced; the watcher has ended")
        for file in sorted(tmp_path.glob("away-*")):
            file.rename(tmp_path / file.name.removeprefix("away-"))
        with (root / "projects" / "-work" / "s.jsonl").open("a") as out:
            out.write(ROW % "v")
        await watching.get()
        await syncing.stop()
        await running
    database = open_database(store, write=False)
    assert database.connection.execute("SELECT count(*) FROM chat_messages").fetchone() == (2,)
    database.close()
    assert len(failures) == 2


async def test_the_command_follows_until_it_is_interrupted(tmp_path: Path) -> None:
    root = config_folder(tmp_path)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tui", "sync", "--watch", "--json", "--store",
        str(tmp_path / "s.db"), str(root), cwd=HERE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        summary = orjson.loads(await process.stdout.readline())
        assert (summary["event"], summary["new"]) == ("summary", 1)
        assert orjson.loads(await process.stdout.readline()) == {"event": "watching"}
        with (root / "projects" / "-work" / "s.jsonl").open("a") as out:
            out.write(ROW % "v")
        synced = orjson.loads(await process.stdout.readline())
        assert (synced["event"], synced["synced"]) == ("synced", 1)
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0


def test_a_server_stays_in_sight_as_long_as_it_cannot_be_read(tmp_path: Path) -> None:
    shown: list[str] = []
    syncing = Syncing(
        tmp_path / "s.db", lambda words: None, lambda summary, error: None, servers=shown.append
    )
    url = "postgresql://me@db.example.org/hub"
    for event in (
        Server(url, "cannot be reached: Connection refused", 1_000), Watching(),
        Server(url, "is starting up or shutting down: x", 1_000), Server(url, None, 1_000),
    ):  # fmt: skip
        syncing._heed(event)
    place = "db.example.org/hub"
    assert shown[0].startswith(f"{place} cannot be reached since 1970-01-01 ")
    assert shown[1].startswith(f"{place} is starting up or shutting down since 1970-01-01 ")
    assert shown[2:] == [""]
