from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from store.config import SourceSettings
from store.engine import schema
from store.engine.database import open_database
from store.errors import StoreError
from store.queries import originals
from store.sources import registry
from store.sync.process import start_sync
from store.sync.targets import (
    FolderTarget,
    StoreTarget,
    Target,
    classify,
    default_targets,
    target_store_path,
)
from tests.bench import claude_corpus
from tests.store.sync_fakes import LineSource, write_lines

HERE = Path(__file__).parents[2]
PATIENCE_S = 120


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "claude"
    folder.mkdir()
    claude_corpus.make(folder, files=9, rows=30)
    return folder


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "store.sync", *arguments],
        cwd=HERE, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip


async def test_modules_of_the_folder_that_it_runs_in_are_not_taken(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("queue", "json", "store"):
        (folder / f"{name}.py").write_text("raise SystemExit('taken from the folder')\n")
    monkeypatch.chdir(folder)
    sync = await start_sync(tmp_path / "store.db", [tree])
    assert [state async for state in sync][-1].files_done == 9
    assert sync.summary is not None and sync.summary.new == 9


async def test_a_sync_is_followed_to_its_end(tree: Path, tmp_path: Path) -> None:
    store = tmp_path / "new" / "store.db"
    sync = await start_sync(store, [tree])
    states = [state async for state in sync]
    assert (states[-1].files_done, states[-1].files_total) == (9, 9)
    assert states[-1].bytes_done == states[-1].bytes_total > 0
    assert sync.summary is not None
    assert (sync.summary.units, sync.summary.read, sync.summary.new) == (9, 9, 9)
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.parent.stat().st_mode) == 0o700
    again = await (await start_sync(store, [tree])).wait()
    assert again is not None
    assert (again.units, again.read, again.problems) == (9, 0, 0)


async def test_a_sync_that_waits_ends_when_it_is_stopped(tree: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    first = await start_sync(store, [tree])
    await first.wait()
    with store.with_name("store.db.sync-lock").open("w") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        sync = await start_sync(store, [tree])
        async for state in sync:
            assert state.waiting
            await sync.stop()
        assert sync.summary is not None and sync.summary.stopped


async def test_a_signal_ends_it_in_order(tree: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    open_database(store, create=True).close()
    with store.with_name("store.db.sync-lock").open("w") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        sync = await start_sync(store, [tree])
        asked = False
        async for state in sync:
            assert state.waiting
            if not asked:
                # Once: what it had told before may be read when it is gone.
                os.kill(sync.pid, signal.SIGTERM)
                asked = True
        assert sync.summary is not None and sync.summary.stopped


async def test_it_ends_with_whoever_started_it(tree: Path, tmp_path: Path) -> None:
    """The child's stdin closes when its parent is gone, however the parent ended."""
    store = tmp_path / "store.db"
    open_database(store, create=True).close()
    with store.with_name("store.db.sync-lock").open("w") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        parent = await asyncio.create_subprocess_exec(
            sys.executable, "-c",
            "import asyncio, sys\n"
            "from pathlib import Path\n"
            "from store.sync.process import start_sync\n"
            "async def main():\n"
            "    sync = await start_sync(Path(sys.argv[1]), [Path(sys.argv[2])])\n"
            "    async for _ in sync:\n"
            "        print(sync.pid, flush=True)\n"
            "asyncio.run(main())\n",
            str(store), str(tree), cwd=HERE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert parent.stdout is not None
        child = int(await parent.stdout.readline())
        handle = os.pidfd_open(child)
        parent.kill()
        await parent.wait()
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(handle, ended.set)
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)


async def test_what_the_child_cannot_do_is_an_error_here(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere does not exist"):
        await (await start_sync(tmp_path / "s.db", [tmp_path / "nowhere"])).wait()
    text = tmp_path / "text.db"
    text.write_text("this is no database at all" * 100)
    with pytest.raises(StoreError, match=r"text\.db"):
        await (await start_sync(text, [tree])).wait()


def test_stores_of_others_and_of_newer_versions_are_left_alone(tree: Path, tmp_path: Path) -> None:
    host = tmp_path / "host.db"
    connection = sqlite3.connect(host)
    connection.executescript(schema.CONTRACT_TABLES)
    connection.close()
    before = host.read_bytes()
    done = command("--store", str(host), str(tree))
    assert (done.returncode, done.stdout) == (1, "")
    assert "belongs to another program" in done.stderr
    assert host.read_bytes() == before
    newer = tmp_path / "newer.db"
    opened = open_database(newer, create=True)
    opened.connection.execute(f"PRAGMA user_version = {schema.CURRENT_VERSION + 1}")
    opened.close()
    done = command("--store", str(newer), str(tree))
    assert done.returncode == 1
    assert "newer version" in done.stderr


def test_wrong_usage_is_2_and_an_unknown_source_1(tmp_path: Path) -> None:
    assert command("--no-such-option").returncode == 2
    done = command("--store", str(tmp_path / "s.db"), "--kind", "nothing")
    assert (done.returncode, done.stderr) == (1, "no source named nothing\n")


def test_a_server_is_no_file_to_sync_into(tmp_path: Path) -> None:
    before = set(HERE.iterdir())
    done = command("--store", "postgresql://ada:secret@db.example/team", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "backscroll sync --store URL" in done.stderr and "secret" not in done.stderr
    assert set(HERE.iterdir()) == before


def test_the_records_of_every_part_are_lines_of_the_file(tree: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    assert command("--store", str(store), "--json", str(tree)).returncode == 0
    database = open_database(store)
    rows = database.connection.execute(
        "SELECT p.id, json_extract(s.metadata_json, '$.source.path'), p.tool_call_id,"
        " json_extract(p.data_json, '$.text') "
        "FROM chat_parts p JOIN chat_sessions s ON s.id = p.session_id ORDER BY p.id"
    ).fetchall()
    assert rows
    for part_id, path, call, text in rows:
        lines = Path(path).read_text().splitlines()
        records = originals.records_of_part(database, part_id)
        assert records and set(records) <= set(lines)
        # They are the records that the part was made of, not just any of the file.
        said = json.dumps(text, ensure_ascii=False)[1:-1] if text else ""
        assert all(call in record for record in records) if call else said in "".join(records)
    path = rows[0][1]
    (session_id,) = database.connection.execute(
        "SELECT id FROM chat_sessions WHERE json_extract(metadata_json, '$.source.path') = ?",
        (path,),
    ).fetchone()
    kept = b"\n".join(originals.records_of_session(database, session_id)) + b"\n"
    assert kept == Path(path).read_bytes()
    database.close()


def test_what_a_target_is(tree: Path, tmp_path: Path) -> None:
    sources = (*registry.all_sources(), LineSource())
    found = classify(tree, sources)
    assert isinstance(found, Target)
    assert (found.source.kind, found.root) == ("claude-code", tree)
    file = next(tree.glob("projects/*/*.jsonl"))
    found = classify(file, sources)
    assert isinstance(found, Target) and found.source.kind == "claude-code"
    fake = write_lines(tmp_path / "fake", "one", 1)
    found = classify(fake, sources)
    assert isinstance(found, Target) and found.source.kind == "fake"
    store = tmp_path / "a.db"
    open_database(store, create=True).close()
    assert classify(store, sources) == StoreTarget(store)
    (tmp_path / "code").mkdir()
    assert classify(tmp_path / "code", sources) == FolderTarget(tmp_path / "code")
    (tmp_path / "empty").touch()
    with pytest.raises(StoreError, match="is empty"):
        classify(tmp_path / "empty", sources)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(StoreError, match="not a known session file"):
        classify(tmp_path / "notes.txt", sources)
    with pytest.raises(StoreError, match="does not exist"):
        classify(tmp_path / "gone", sources)


def test_the_usual_places_and_those_of_the_config(tree: Path, tmp_path: Path) -> None:
    fake = write_lines(tmp_path / "home" / ".fake", "one", 1).parent
    extra = write_lines(tmp_path / "extra", "two", 1).parent
    settings = SourceSettings(paths={"fake": [str(extra), str(fake)]})
    sources = (*registry.all_sources(), LineSource())
    targets = default_targets(
        settings, sources, {"CLAUDE_CONFIG_DIR": str(tree)}, tmp_path / "home"
    )
    assert [(one.source.kind, one.root) for one in targets] == [
        ("claude-code", tree), ("fake", fake), ("fake", extra),
    ]  # fmt: skip
    settings.disabled = ["claude-code"]
    targets = default_targets(settings, sources, {}, tmp_path / "home")
    assert {one.source.kind for one in targets} == {"fake"}


def test_a_source_opened_by_name_has_a_store_of_its_own(tree: Path, tmp_path: Path) -> None:
    source = LineSource()
    path = target_store_path(Target(source, tree))
    assert path.parent == tmp_path / "cache" / "backscroll" / "targets"
    assert path == target_store_path(Target(source, tree / ".." / tree.name))
    assert path != target_store_path(Target(source, tmp_path))


def test_progress_is_json_lines(tree: Path, tmp_path: Path) -> None:
    done = command("--store", str(tmp_path / "s.db"), "--json", str(tree))
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events[-2:]] == ["progress", "summary"]
    assert events[0]["files_total"] == 9
    assert set(events[0]) >= {
        "files_done", "files_total", "bytes_done", "bytes_total", "rate", "eta_s", "sessions",
        "problems", "listing",
    }  # fmt: skip
