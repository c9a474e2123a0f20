"""A server by the command line: listed, synced, followed, opened; its password in no place."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from store.engine.database import open_database
from store.engine.server_url import ServerUrl
from store.errors import StoreError
from store.ids import derived_session_id
from store.sync.process import Synced, Trouble, Watching, start_sync
from store.system.locations import cache_dir, library_path
from tests.cli.conftest import Run, claude_home, home, run
from tests.sources.postgres_server import GUARDED, PASSWORD, Database, Server
from tests.sources.server_rows import url_of
from tests.sources.test_postgres_live import BUSY, PART, text
from tui.start.startup import open_library

__all__ = ["claude_home", "home", "run"]
NO_LIONAGI = "LIONAGI_STATE_DB_URL"


@pytest.fixture(autouse=True)
def empty_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NO_LIONAGI, raising=False)


def configured(home: Path, text: str) -> None:
    config = home / ".config" / "backscroll" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(text)


def place(run: Run, kind: str, path: str) -> dict[str, Any]:
    (found,) = [
        one for one in run("sources", "--json", "--problems").json
        if (one["kind"], one["path"]) == (kind, path)
    ]  # fmt: skip
    return dict(found)


def no_secret_in(folder: Path) -> bool:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return bool(files) and all(b"s3cr" not in path.read_bytes() for path in files)


def test_sync_of_a_url(run: Run, hub_server: Database, home: Path) -> None:
    done = run("sync", hub_server.guarded_url, "--json")
    assert (done.code, done.err) == (0, "")
    assert (done.json["new"], done.json["problems"]) == (5, 0)
    sessions = run("sessions", "--source", "hub", "--json").json
    shown = str(url_of(hub_server.guarded_url))
    assert {one["source"]["path"] for one in sessions} == {shown}
    assert f"{GUARDED}@" in shown and PASSWORD not in shown
    assert run("sync", hub_server.guarded_url, "--json").json["read"] == 0
    assert no_secret_in(home)


def test_sources_lists_it(run: Run, hub_server: Database, home: Path) -> None:
    configured(home, f'[sources.paths]\nhub = ["{hub_server.guarded_url}"]\n')
    assert run("sync").code == 0
    shown = str(url_of(hub_server.guarded_url))
    found = place(run, "hub", shown)
    assert (found["found"], found["enabled"], found["files"], found["sessions"]) == (
        True, True, 5, 5)  # fmt: skip
    assert (found["changed_at"], found["problems"]) == (1793603100000, 0)
    assert "reason" not in found
    printed = run("sources").out
    assert f"{shown}  5 sessions" in printed and "s3cr" not in printed
    assert no_secret_in(home.parent) is False, "the configuration has it"
    assert no_secret_in(home / ".local")


def test_lionagis_own_setting(
    run: Run, lionagi_server: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = lionagi_server.url.replace("postgresql://", "postgresql+asyncpg://")
    monkeypatch.setenv("LIONAGI_STATE_DB_URL", url)
    done = run("sync", "--json")
    # Four sessions, and five branches that are threads of their own.
    assert (done.json["units"], done.json["new"], done.json["problems"]) == (4, 9, 0)
    found = place(run, "lionagi", str(url_of(url)))
    assert (found["found"], found["sessions"]) == (True, 9)


def test_a_server_that_is_down_costs_only_itself(
    run: Run, hub_server: Database, claude_home: Path, home: Path
) -> None:
    down = "postgresql://me:s3cret@127.0.0.1:1/hub"
    configured(home, f'[sources.paths]\nhub = ["{down}", "{hub_server.url}"]\n')
    done = run("sync", "--json")
    assert (done.code, done.json["new"], done.json["problems"]) == (0, 6, 2)
    found = place(run, "hub", "postgresql://me@127.0.0.1:1/hub")
    assert (found["found"], found["reason"]) == (False, "cannot be reached: Connection refused")
    (problem,) = found["problem_list"]
    assert problem["reason"] == "cannot be reached: Connection refused"
    printed = run("sources", "--problems").out
    assert "0 sessions; it cannot be reached: Connection refused" in printed
    assert "s3cret" not in printed


@pytest.mark.long
def test_what_is_lost_is_not_lost_here(
    run: Run, postgres: Server, home: Path, hub_server: Database
) -> None:
    configured(
        home, f'[sources]\nkeep_deleted = false\n[sources.paths]\nhub = ["{hub_server.url}"]\n'
    )
    assert run("sync", "--json").json["new"] == 5
    postgres.stop()
    try:
        assert run("sync", "--json").json["problems"] == 1
        assert len(run("sessions", "--archived", "include", "--json").json) == 5
        shown = str(url_of(hub_server.url))
        assert f"{shown}  5 sessions; it cannot be reached: No such file" in run("sources").out
    finally:
        postgres.start()
    hub_server.execute(f"DELETE FROM sessions WHERE id = '{BUSY}'")
    assert run("sync", "--json").json["problems"] == 0
    assert len(run("sessions", "--archived", "include", "--json").json) == 4


def test_forgotten_sessions_stay_away(run: Run, hub_server: Database) -> None:
    assert run("sync", hub_server.url).code == 0
    assert run("forget", "--yes", BUSY).code == 0
    hub_server.execute(PART, "prt_0000b00000001", text("more"))
    assert run("sync", hub_server.url).code == 0
    assert len(run("sessions", "--archived", "include", "--json").json) == 4


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:s3cret@127.0.0.1:1/x", "me@127.0.0.1:1/x cannot be reached: Connection"),
        ("postgres://me:s3/cret@127.0.0.1:1/x", "cannot be read: write / ? # @ of its password"),
    ],
)
def test_one_line_for_a_bad_url(run: Run, url: str, said: str) -> None:
    result = run("sync", url)
    assert result.code == 1 and said in result.err
    assert "s3" not in result.err and len(result.err.splitlines()) == 1
    with pytest.raises(StoreError, match="cannot be"):
        open_library(url, None)


def test_a_url_as_the_store(run: Run, hub_server: Database) -> None:
    is_none = "has no store: it has no table chat_sessions on its search path"
    in_use = "has no store, and its schema public is in use (accounts, "
    for command, said in ((["sessions"], is_none), (["sync"], in_use), (["sources"], is_none),
                          (["star", "x"], is_none)):  # fmt: skip
        result = run(*command, "--store", hub_server.guarded_url)
        assert result.code == 1 and (result.out == "" or command == ["sync"])
        assert said in result.err
        assert "s3cr" not in result.err and len(result.err.splitlines()) == 1
    with pytest.raises(StoreError, match="has no store: it has no table chat_sessions"):
        open_library(None, hub_server.guarded_url)


def test_opened_by_name_it_has_a_store_of_its_own(hub_server: Database) -> None:
    library = open_library(hub_server.guarded_url, None)
    assert library.name == str(url_of(hub_server.guarded_url))
    assert library.path.parent == cache_dir() / "opened"
    assert library.sync_targets is not None
    (root,) = library.sync_targets
    assert isinstance(root, ServerUrl)
    assert root.dsn == url_of(hub_server.guarded_url).dsn
    again = open_library(hub_server.guarded_url, None)
    assert again.path == library.path
    other = open_library(hub_server.url, None)
    assert other.path != library.path
    for one in (library, again, other):
        one.database.close()


async def test_a_watcher_is_a_process_that_hides_the_password(
    hub_server: Database, home: Path
) -> None:
    process = await start_sync(library_path(), [url_of(hub_server.guarded_url)], watch=True)
    heard = []
    try:
        async for event in process.events():
            heard.append(event)
            if isinstance(event, Watching):
                arguments = Path(f"/proc/{process.pid}/cmdline").read_bytes()
                assert GUARDED.encode() in arguments and b"s3cr" not in arguments
                await asyncio.to_thread(
                    hub_server.execute, PART, "prt_0000b00000001", text("while it is watched"))
            elif isinstance(event, Synced):
                break
            assert not isinstance(event, Trouble), event
    finally:
        await process.stop()
    (synced,) = [event for event in heard if isinstance(event, Synced)]
    assert synced.session == derived_session_id("hub", BUSY)
    assert "s3cr" not in str(heard) and no_secret_in(home)
    library = open_database(library_path(), write=False)
    rows = library.connection.execute("SELECT data_json FROM chat_parts").fetchall()
    assert any("while it is watched" in json.loads(body).get("text", "") for (body,) in rows)
    library.close()
    assert "BACKSCROLL_SERVERS" not in os.environ


def test_the_copy_of_a_server_that_is_silent_is_opened(
    run: Run, postgres: Server, hub_server: Database
) -> None:
    opened = open_library(hub_server.guarded_url, None)
    asyncio.run(opened.close())
    postgres.stop()
    try:
        with pytest.raises(StoreError, match="cannot be reached"):
            open_library(hub_server.guarded_url, None)  # Nothing was read from it yet.
    finally:
        postgres.start()
    assert run("sync", hub_server.guarded_url, "--store", str(opened.path)).code == 0
    postgres.stop()
    try:
        kept = open_library(hub_server.guarded_url, None)
    finally:
        postgres.start()
    assert (kept.path, kept.name) == (opened.path, opened.name)
    # The watcher of the copy tries until the server is there again.
    assert kept.sync_targets == (url_of(hub_server.guarded_url),)
    assert kept.notice is not None
    shown = str(url_of(hub_server.guarded_url))
    assert kept.notice.startswith(f"{shown} cannot be reached: ")
    assert kept.notice.endswith("; what was read from it before is shown")
    (count,) = kept.database.connection.execute("SELECT count(*) FROM chat_sessions").fetchone()
    assert count == 5
    asyncio.run(kept.close())
