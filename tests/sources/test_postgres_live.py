"""A server's sessions while their agent writes them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from store.engine.database import Database as Library
from store.engine.database import open_database
from store.engine.server_url import ServerTrouble, ServerUrl
from store.ids import derived_session_id
from store.sources.base.protocol import Reading, Unit
from store.sources.base.servers import connection
from store.sources.base.servers.connection import PostgresRows
from store.sources.hub import HubSource
from store.sources.lionagi import LionagiSource
from store.sync import problems as kept
from store.sync import watch_servers
from store.sync.targets import Target
from tests.sources.following import following
from tests.sources.postgres_server import Database, Server
from tests.sources.server_rows import contents, synced, url_of

BUSY = "4e59f4a2-58c8-478f-873c-14531a5c2444"
FLOW = "9fcd6a94-5707-4442-87e4-72bca97c9ea4"
LAST_MESSAGE = "27b87135-c66a-47ac-bd62-964b6b7efe52"
PART = (
    "INSERT INTO parts(id, message_id, session_id, type, data)"
    f" VALUES ($1, '{LAST_MESSAGE}', '{BUSY}', 'text', $2)"
)


class Asked:
    """Counts the statements that were sent to servers, and the sessions that were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[str] = []
        self.read: list[str] = []
        rows, read_on = PostgresRows.rows, HubSource.read_on

        def noted(reader: PostgresRows, sql: str, *values: object) -> list[dict[str, Any]]:
            self.statements.append(sql)
            return rows(reader, sql, *values)

        def noted_read(source: HubSource, url: ServerUrl, unit: Unit) -> Reading:
            self.read.append(unit.key)
            return read_on(source, url, unit)

        monkeypatch.setattr(PostgresRows, "rows", noted)
        monkeypatch.setattr(HubSource, "read_on", noted_read)


def moved(source: Any, server: Database) -> list[str]:
    found = source.moved_on(url_of(server.url))
    assert found is not None
    return [unit.key for unit in found]


def listed(make: Callable[[], Any], server: Database) -> Any:
    source = make()
    assert list(source.units_on(url_of(server.url), []))
    return source


def text(words: str) -> str:
    return json.dumps({"text": words})


def test_nothing_moved_and_next_to_nothing_is_read(
    hub_server: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = listed(HubSource, hub_server)
    asked = Asked(monkeypatch)
    for _ in range(5):
        assert moved(source, hub_server) == []
    assert asked.statements == []
    hub_server.execute("CREATE TABLE unrelated (id text)")
    assert moved(source, hub_server) == []
    assert 1 <= len(asked.statements) <= 5


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE parts SET data = jsonb_set(data, '{text}', '\"x\"') WHERE id = (SELECT min(id)"
        f" FROM parts WHERE session_id = '{BUSY}')",
        f"UPDATE sessions SET status = 'idle' WHERE id = '{BUSY}'",
        "UPDATE messages SET data = data || '{\"finish\": \"stop\"}'"
        f" WHERE id = '{LAST_MESSAGE}'",
        f"DELETE FROM parts WHERE id = (SELECT max(id) FROM parts WHERE session_id = '{BUSY}')",
        f"DELETE FROM messages WHERE id = '{LAST_MESSAGE}'",
        "INSERT INTO parts(id, message_id, session_id, type, data) VALUES ('prt_0000b00000001',"
        f" '{LAST_MESSAGE}', '{BUSY}', 'text', '{{\"text\": \"more\"}}')",
        "WITH gone AS (DELETE FROM parts WHERE id = (SELECT max(id) FROM parts WHERE session_id ="
        f" '{BUSY}') RETURNING *) INSERT INTO parts SELECT id || 'x', metadata, created_at,"
        " updated_at, message_id, session_id, type, data FROM gone",
    ],
    ids=["part in place", "status", "message in place", "part deleted", "message deleted",
         "part added", "part replaced"],
)  # fmt: skip
def test_every_change_of_the_hub_is_noticed(change: str, hub_server: Database) -> None:
    source = listed(HubSource, hub_server)
    hub_server.execute(change)
    assert moved(source, hub_server) == [BUSY]
    assert moved(source, hub_server) == []
    assert moved(listed(HubSource, hub_server), hub_server) == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE messages SET content = '{\"assistant_response\": \"x\"}' WHERE id = (SELECT"
        " system_msg_id FROM branches WHERE name = 'r1')",
        f"UPDATE sessions SET current_phase = 'ending' WHERE id = '{FLOW}'",
        "UPDATE branches SET status = 'completed' WHERE name = 'r1'",
        "UPDATE progressions SET collection = '[]' WHERE id = (SELECT progression_id FROM"
        " branches WHERE name = 'r1')",
        "INSERT INTO session_signals(id, session_id, seq, kind, ts)"
        f" VALUES ('x', '{FLOW}', 99, 'x', 1)",
        "DELETE FROM branches WHERE name = 'r1'",
    ],
    ids=["message in place", "phase", "branch", "progression", "signal", "branch deleted"],
)
def test_every_change_of_lionagi_is_noticed(change: str, lionagi_server: Database) -> None:
    source = listed(LionagiSource, lionagi_server)
    lionagi_server.execute(change)
    assert moved(source, lionagi_server) == [FLOW]
    assert moved(source, lionagi_server) == []


def test_sessions_that_come_and_go(hub_server: Database) -> None:
    source = listed(HubSource, hub_server)
    hub_server.execute(
        "INSERT INTO sessions(id, project_id, slug, title, status) VALUES ('new', 'prj_harbour',"
        " 'new', 'New', 'busy')"
    )
    assert moved(source, hub_server) == ["new"]
    hub_server.execute("DELETE FROM sessions WHERE id = 'new'")
    assert source.moved_on(url_of(hub_server.url)) is None
    assert moved(source, hub_server) == []


def test_what_a_running_transaction_wrote_is_seen_when_it_commits(hub_server: Database) -> None:
    source = listed(HubSource, hub_server)

    async def run() -> tuple[list[str], list[str]]:
        first = await asyncpg.connect(hub_server.url)
        second = await asyncpg.connect(hub_server.url)
        await first.execute("BEGIN")
        await first.execute(PART, "prt_0000b00000001", text("one"))
        await second.execute("CREATE TABLE unrelated (id text)")
        before = await asyncio.to_thread(moved, source, hub_server)
        await first.execute("COMMIT")
        after = await asyncio.to_thread(moved, source, hub_server)
        await first.close()
        await second.close()
        return before, after

    assert asyncio.run(run()) == ([], [BUSY])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_servers, "POLL_S", 0.02)
    monkeypatch.setattr(watch_servers, "SLOWEST_S", 0.1)
    monkeypatch.setattr(watch_servers, "SHARE", 0)


def library_at(path: Path) -> Library:
    return open_database(path, write=False)


def texts(library: Library, session: str) -> list[str]:
    name = derived_session_id("hub", session)
    return [row[0] for row in library.connection.execute(
        "SELECT json_extract(data_json, '$.text') FROM chat_parts WHERE session_id = ?"
        " AND type = 'text'", (name,))]  # fmt: skip


def test_columns_that_come_and_go_behind_a_source(hub_server: Database, tmp_path: Path) -> None:
    source, url = listed(HubSource, hub_server), url_of(hub_server.url)
    sync = synced(source, url, tmp_path / "s.db")
    before = contents(sync.database)
    for number, change in enumerate((
        "ALTER TABLE parts ADD more text DEFAULT 'x'; ALTER TABLE messages ADD more jsonb",
        "ALTER TABLE parts DROP more; ALTER TABLE messages DROP more",
        "ALTER TABLE parts ALTER data TYPE json", "ALTER TABLE parts ALTER data TYPE jsonb",
    )):
        hub_server.execute(change)
        hub_server.execute(PART, f"prt_0000b0000000{number}", text(f"more {number}"))
        assert BUSY in moved(source, hub_server)
        sync.run([Target(source, url)])
        assert sync.summary.problems == 0
        said = [part["data_json"].get("text") for part in contents(sync.database)["chat_parts"]
                if part["session_id"] == derived_session_id("hub", BUSY)]
        assert said.count(f"more {number}") == 1
    hub_server.execute("ALTER TABLE parts RENAME data TO other")
    sync.run([Target(source, url)])
    (problem,) = kept.problems(sync.database)
    assert "data" in problem.reason
    assert len(contents(sync.database)["chat_parts"]) == len(before["chat_parts"]) + 4
    hub_server.execute("ALTER TABLE parts RENAME other TO data")
    sync.run([Target(source, url)])
    assert kept.problems(sync.database) == []


@pytest.mark.usefixtures("quick")
def test_a_watcher_brings_in_what_is_written(hub_server: Database, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with following(path, Target(HubSource(), url_of(hub_server.url))) as watcher:
        library = library_at(path)
        hub_server.execute(PART, "prt_0000b00000001", text("more"))
        said = watcher.until("synced")
        assert (said["synced"], said["session"]) == (1, derived_session_id("hub", BUSY))
        assert "more" in texts(library, BUSY)
        hub_server.execute("UPDATE parts SET data = $1 WHERE id = 'prt_0000b00000001'",
                           text("more and more"))  # fmt: skip
        watcher.until("synced")
        assert "more and more" in texts(library, BUSY) and "more" not in texts(library, BUSY)
        hub_server.execute("DELETE FROM parts WHERE id = 'prt_0000b00000001'")
        watcher.until("synced")
        # What the hub no longer has stays, and is marked.
        assert "more and more" in texts(library, BUSY)
        (marked,) = library.connection.execute(
            "SELECT count(*) FROM chat_messages "
            "WHERE json_extract(metadata_json, '$.source.gone_parts') IS NOT NULL"
        ).fetchone()
        assert marked == 1
        hub_server.execute(f"UPDATE sessions SET status = 'archived' WHERE id = '{BUSY}'")
        watcher.until("synced")
        (archived,) = library.connection.execute(
            "SELECT archived_at FROM chat_sessions WHERE id = ?",
            (derived_session_id("hub", BUSY),),
        ).fetchone()
        assert archived is not None
        library.close()


@pytest.mark.usefixtures("quick")
def test_a_server_that_goes_away_and_comes_back(postgres: Server, tmp_path: Path) -> None:
    server, path = postgres.loaded("hub", "hub.db"), tmp_path / "s.db"
    url = url_of(server.url)
    with following(path, Target(HubSource(), url)) as watcher:
        library = library_at(path)
        (before,) = library.connection.execute("SELECT count(*) FROM chat_parts").fetchone()
        postgres.stop()
        try:
            said = watcher.until("trouble")
            while "cannot be reached" not in said["message"]:
                said = watcher.until("trouble")
            assert said["message"].startswith(f"{url} ")
            (problem,) = kept.problems(library)
            assert (problem.path, problem.unit) == (str(url), kept.LISTING)
            gone = watcher.until("server")
            assert gone["reason"].startswith("cannot be reached")
            assert gone["server"] == str(url) and gone["since"] <= problem.seen_at
        finally:
            postgres.start()
        since = gone["since"]
        while gone["reason"] is not None:
            gone = watcher.until("server")
            assert gone["since"] == since
        watcher.until("watching")
        assert kept.problems(library) == []
        (after,) = library.connection.execute("SELECT count(*) FROM chat_parts").fetchone()
        assert after == before
        server.execute(PART, "prt_0000b00000001", text("back"))
        watcher.until("synced")
        assert "back" in texts(library, BUSY)
        library.close()


def many_sessions(server: Database, count: int) -> None:
    server.execute(
        f"INSERT INTO sessions(id, project_id, slug, title, status) SELECT 's' || n,"
        f" 'prj_harbour', 's' || n, 'S', 'idle' FROM generate_series(1, {count}) n;"
        "INSERT INTO messages(id, session_id, role, data) SELECT id || 'm' || n, id, 'user', '{}'"
        " FROM sessions, generate_series(1, 2) n WHERE slug LIKE 's%';"
        "INSERT INTO parts(id, message_id, session_id, type, data) SELECT id || n, id, session_id,"
        " 'text', '{\"text\": \"x\"}' FROM messages, generate_series(1, 5) n WHERE id LIKE 's%'"
    )


@pytest.mark.long
@pytest.mark.usefixtures("quick")
def test_of_500_sessions_just_the_one_that_grows_is_read(
    hub_server: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many_sessions(hub_server, 495)
    asked = Asked(monkeypatch)
    with following(tmp_path / "s.db", Target(HubSource(), url_of(hub_server.url))) as watcher:
        assert len(asked.read) == len(set(asked.read)) == 500
        asked.read.clear()
        for number in range(3):
            hub_server.execute(PART, f"prt_0000b0000000{number}", text(f"line {number}"))
            assert watcher.until("synced")["synced"] == 1
        assert asked.read == [BUSY] * 3
        library = library_at(tmp_path / "s.db")
        assert {"line 0", "line 1", "line 2"} <= set(texts(library, BUSY))
        library.close()


def test_a_connection_that_the_server_ends_is_made_anew(hub_server: Database) -> None:
    source, url = listed(HubSource, hub_server), url_of(hub_server.url)
    (unit,) = [unit for unit in source.units_on(url, []) if unit.key == BUSY]
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ="
        " 'backscroll' AND datname = current_database()"
    )
    hub_server.execute(end)
    assert moved(source, hub_server) == []
    hub_server.execute(end)
    assert len(source.read_on(url, unit).sessions) == 1
    hub_server.execute(end)
    assert len(list(source.units_on(url, []))) == 5


def test_a_session_that_was_listed_but_not_read_is_tried_again(
    hub_server: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = listed(HubSource, hub_server)
    hub_server.execute(PART, "prt_0000b00000001", text("more"))
    (unit,) = source.moved_on(url_of(hub_server.url))
    hub_server.execute("ALTER TABLE parts RENAME TO other")
    with pytest.raises(Exception, match="does not exist"):
        source.read_on(url_of(hub_server.url), unit)
    hub_server.execute("ALTER TABLE other RENAME TO parts")
    assert BUSY in moved(source, hub_server)


@pytest.mark.usefixtures("quick")
def test_what_a_poll_waits_for_is_said_and_adds_no_pause(
    hub_server: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_servers, "WAITING_S", 0.0)
    monkeypatch.setattr(watch_servers, "PATIENCE_S", 0.02)
    monkeypatch.setattr(connection, "_BEGIN", connection._BEGIN.replace("'2s'", "'100s'"))
    url = url_of(hub_server.url)
    with following(tmp_path / "s.db", Target(HubSource(), url)) as watcher:

        async def locked() -> None:
            writer = await asyncpg.connect(
                hub_server.url, server_settings={"application_name": "the migration"})
            async with writer.transaction():
                await writer.execute("LOCK TABLE parts IN ACCESS EXCLUSIVE MODE")
                await writer.execute(PART, "prt_0000b00000001", text("more"))
                # Another write makes the poll list the sessions, which meets the lock.
                await asyncio.to_thread(hub_server.execute, "CREATE TABLE unrelated (id text)")
                said = await asyncio.to_thread(watcher.until, "server")
                assert said["server"] == str(url)
                assert said["reason"] == "waits for the table parts, which the migration has locked"
            await writer.close()

        asyncio.run(locked())
        assert watcher.until("server")["reason"] is None
        assert watcher.until("synced")["synced"] == 1


def test_who_has_the_lock_is_said_where_the_server_gave_up_on_it() -> None:
    url = url_of("postgresql://h/db")
    refused = watch_servers.Answer(
        Target(HubSource(), url), [], ServerTrouble(url, "is locked by another program: timeout"))
    poll = watch_servers._Poll(refused.target, url, 0.0)
    # The server answers nothing by itself here.
    poll._thread, poll._asked_at = threading.current_thread(), 0.0
    words = "waits for the table parts, which the migration has locked"
    poll._asks_why = True
    poll._waits.put(words)
    waits = poll.ask(0.0)
    assert waits is not None and (waits.waits, waits.trouble) == (words, None)
    for reason in (words, "is locked by another program: timeout"):
        poll._answers.put((refused, 2.0))
        answer = poll.ask(0.0)
        assert answer is not None and answer.trouble is not None
        # The next question did not wait, as far as is known.
        assert (answer.trouble.reason, str(answer.trouble)) == (reason, f"{url} {reason}")


def test_the_pause_between_polls_is_capped() -> None:
    poll = watch_servers._Poll(Target(HubSource(), url_of("postgresql://h/db")), url_of(
        "postgresql://h/db"), 0.0)  # fmt: skip
    fine = watch_servers.Answer(poll.target, [])
    assert [poll._pause_after(fine, took) for took in (0.01, 0.08, 1.9, 60.0)] == [
        1.0, 1.6, 2.0, 2.0]  # fmt: skip
    poll._waited = True
    assert poll._pause_after(fine, 1.9) == 1.0
    for refuses, longest in ((False, 2.0), (True, 15.0)):
        error = ServerTrouble(poll.url, "no", is_refusal=refuses)
        poll.pause = 1.0
        for _ in range(6):
            poll.pause = poll._pause_after(watch_servers.Answer(poll.target, [], error), 5.0)
        assert poll.pause == longest
