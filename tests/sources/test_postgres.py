"""Sessions of the hub and of lionagi on a real PostgreSQL server, against the same in files."""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from store.errors import StoreError
from store.sources.base.protocol import Problem
from store.sources.base.servers import connection
from store.sources.base.servers.connection import Servers
from store.sources.hub import HubSource
from store.sources.lionagi import LionagiSource
from store.sources.registry import all_sources
from store.sync import problems as kept
from store.sync.engine import Sync
from store.sync.settings import Settings
from store.sync.targets import Target, classify
from tests.sources import server_rows, test_hub_expected
from tests.sources.postgres_server import DATA, GUARDED, PASSWORD, Database, Server
from tests.sources.server_rows import url_of
from tests.store.pooler import Pooler


def copied(kind: str, file: str, folder: Path) -> Path:
    folder.mkdir()
    return Path(shutil.copy(DATA / kind / file, folder / file))


@pytest.mark.parametrize(
    ("make", "kind", "file"), [(HubSource, "hub", "hub.db"), (LionagiSource, "lionagi", "state.db")]
)
def test_a_library_of_it_is_that_of_the_file(
    make: Callable[[], Any], kind: str, file: str, postgres: Server, tmp_path: Path
) -> None:
    server = postgres.loaded(kind, file)
    before = server.contents()
    there = server_rows.synced(make(), url_of(server.url), tmp_path / "server.db")
    here = server_rows.synced(make(), copied(kind, file, tmp_path / "files"), tmp_path / "f.db")
    assert server_rows.contents(there.database) == server_rows.contents(here.database)
    assert there.summary.as_dict() | {"seconds": 0} == here.summary.as_dict() | {"seconds": 0}
    (path,) = there.database.connection.execute(
        "SELECT DISTINCT json_extract(metadata_json, '$.source.path') FROM chat_sessions"
    ).fetchone()
    assert path == str(url_of(server.url))
    again = Sync(there.database, Settings(helpers=0))
    again.run([Target(make(), url_of(server.url))])
    assert (again.summary.read, again.changed) == (0, [])
    assert server.contents() == before


@pytest.mark.parametrize(
    ("make", "kind", "file"), [(HubSource, "hub", "hub.db"), (LionagiSource, "lionagi", "state.db")]
)
def test_behind_a_pooler_it_is_the_same(
    make: Callable[[], Any], kind: str, file: str, postgres: Server,
    pooler: Callable[..., Pooler], tmp_path: Path,
) -> None:
    """Each transaction may get another connection of the server, and only two are there."""
    server = postgres.loaded(kind, file)
    url = url_of(pooler(default_pool_size=2).url(server.url))
    before = server.contents()
    library = server_rows.synced(make(), url, tmp_path / "server.db").database
    here = server_rows.synced(make(), copied(kind, file, tmp_path / "files"), tmp_path / "f.db")
    assert server_rows.contents(library) == server_rows.contents(here.database)
    assert server.contents() == before
    # By way of the pooler and past it, it is one database.
    past = Sync(library, Settings(helpers=0))
    past.run([Target(make(), url_of(server.url))])
    assert (past.summary.read, past.changed) == (0, [])
    source = make()
    units = list(source.units_on(url, []))
    table = "messages" if kind == "hub" else "branches"
    server.execute(f"UPDATE {table} SET created_at = created_at")
    moved = source.moved_on(url)
    assert moved is not None and {unit.key for unit in moved} == {unit.key for unit in units}
    again = Sync(library, Settings(helpers=0))
    again.run([Target(make(), url)])
    assert (again.summary.read, again.changed) == (len(units), [])


def test_the_hub_comes_out_as_expected(hub_server: Database) -> None:
    drafts, problems = server_rows.drafts_of(HubSource(), url_of(hub_server.url))
    assert drafts.keys() == {one["id"] for one in test_hub_expected.EXPECTED} and problems == []
    checks = [
        check for name, check in inspect.getmembers(test_hub_expected, inspect.isfunction)
        if name.startswith("test_")
        and set(inspect.signature(check).parameters) == {"draft", "expected"}
    ]  # fmt: skip
    assert len(checks) == 7
    for one in test_hub_expected.EXPECTED:
        for check in checks:
            check(drafts[one["id"]], one)


def test_the_original_rows_are_kept(hub_server: Database) -> None:
    there, _ = server_rows.drafts_of(HubSource(), url_of(hub_server.url))
    for name, draft in test_hub_expected.DRAFTS.items():
        assert list(map(json.loads, there[name].records)) == list(map(json.loads, draft.records))


def test_it_is_recognised_by_its_tables(hub_server: Database, lionagi_server: Database) -> None:
    for server, kind in ((hub_server, "hub"), (lionagi_server, "lionagi")):
        found = classify(url_of(server.url), all_sources())
        assert isinstance(found, Target)
        assert (found.source.kind, str(found.root)) == (kind, str(url_of(server.url)))


def test_tables_of_another_schema(hub_server: Database) -> None:
    hub_server.execute("ALTER SCHEMA public RENAME TO team; CREATE SCHEMA public")
    with pytest.raises(StoreError, match="has no tables on its search path"):
        classify(url_of(hub_server.url), all_sources())
    url = url_of(hub_server.url + "&options=-csearch_path%3Dteam")
    assert isinstance(classify(url, all_sources()), Target)
    assert len(server_rows.drafts_of(HubSource(), url)[0]) == 5


def test_types_that_a_schema_may_have_all_the_same(hub_server: Database) -> None:
    """UUIDs, enums, times without a zone, JSON with its text kept, and more columns."""
    expected, _ = server_rows.drafts_of(HubSource(), url_of(hub_server.url))
    hub_server.execute(
        "ALTER TABLE parts ALTER COLUMN data TYPE json;"
        "ALTER TABLE sessions ALTER COLUMN created_at TYPE timestamp USING created_at AT TIME"
        " ZONE 'UTC';"
        "CREATE TYPE role AS ENUM ('user', 'assistant', 'system');"
        "ALTER TABLE messages ALTER COLUMN role TYPE role USING CAST(role AS role);"
        "ALTER TABLE parts DROP CONSTRAINT parts_message_id_fkey;"
        "ALTER TABLE messages ALTER COLUMN id TYPE uuid USING CAST(id AS uuid);"
        "ALTER TABLE parts ALTER COLUMN message_id TYPE uuid USING CAST(message_id AS uuid);"
        "ALTER TABLE sessions ADD labels text[] DEFAULT '{a,b}', ADD cost numeric DEFAULT 1.5,"
        " ADD seen date DEFAULT '2026-01-02', ADD raw bytea DEFAULT '\\x00ff'"
    )
    found, problems = server_rows.drafts_of(HubSource(), url_of(hub_server.url))
    assert problems == []
    for name, draft in expected.items():
        assert found[name].messages == draft.messages
        assert (found[name].created_at, found[name].title) == (draft.created_at, draft.title)
    row = json.loads(found[test_hub_expected.EXPECTED[0]["id"]].records[0])
    assert (row["labels"], row["cost"], row["seen"]) == ('["a","b"]', 1.5, "2026-01-02")
    assert row["raw"] == "00ff"
    # Of sessions too, which parts of others may name; one of them may then be a number.
    for table, column in (("messages", "session_id"), ("parts", "session_id"),
                          ("sessions", "parent_id"), ("sessions", "id")):  # fmt: skip
        hub_server.execute(
            f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {table}_{column}_fkey;"
            f"ALTER TABLE {table} ALTER {column} TYPE uuid USING CAST({column} AS uuid)")
    found, problems = server_rows.drafts_of(HubSource(), url_of(hub_server.url))
    assert problems == []
    assert {name: one.messages for name, one in found.items()} == {
        name: one.messages for name, one in expected.items()}  # fmt: skip
    for table, column in (("messages", "session_id"), ("parts", "session_id"),
                          ("sessions", "parent_id"), ("sessions", "id")):  # fmt: skip
        hub_server.execute(f"ALTER TABLE {table} ALTER {column} TYPE bigint"
                           f" USING hashtextextended(CAST({column} AS text), 0)")
    found, problems = server_rows.drafts_of(HubSource(), url_of(hub_server.url))
    assert problems == [] and sorted(len(one.messages) for one in found.values()) == sorted(
        len(one.messages) for one in expected.values())


def test_ids_that_are_uuids_are_found_in_lists_of_them(lionagi_server: Database) -> None:
    expected, _ = server_rows.drafts_of(LionagiSource(), url_of(lionagi_server.url))
    lionagi_server.execute(
        "ALTER TABLE messages DROP CONSTRAINT messages_pkey CASCADE;"
        "ALTER TABLE messages ALTER id TYPE uuid USING CAST(id AS uuid)")
    found, problems = server_rows.drafts_of(LionagiSource(), url_of(lionagi_server.url))
    assert problems == [] and {name: one.messages for name, one in found.items()} == {
        name: one.messages for name, one in expected.items()}  # fmt: skip


def trouble_with(name: str) -> str:
    with pytest.raises(StoreError) as caught:
        classify(url_of(name), all_sources())
    message = str(caught.value)
    assert message.startswith(str(url_of(name))) and "\n" not in message
    return message.removeprefix(str(url_of(name))).strip()


def test_what_is_no_database_of_sessions(postgres: Server) -> None:
    server = postgres.database()
    assert trouble_with(server.url).startswith("has no tables on its search path")
    for number in range(7):
        server.execute(f"CREATE TABLE t{number} (id text)")
    said = "is no database of hub or lionagi: it has the tables t0, t1, t2, t3, t4 and 2 more"
    assert trouble_with(server.url) == said
    server.execute("CREATE TABLE chat_sessions (id text); CREATE TABLE chat_messages (id text);"
                   "CREATE TABLE chat_parts (id text)")  # fmt: skip
    assert trouble_with(server.url).startswith(
        "is a store, not a database of hub or lionagi: `backscroll URL` opens it")


def test_what_cannot_be_reached(postgres: Server) -> None:
    here = f"host={postgres.folder}"
    assert trouble_with(f"postgresql://postgres@/nowhere?{here}") == (
        'cannot be opened: database "nowhere" does not exist')  # fmt: skip
    assert trouble_with("postgresql:///db?host=/nowhere") == (
        "cannot be reached: No such file or directory")  # fmt: skip
    assert trouble_with("postgresql://127.0.0.1:1/db") == "cannot be reached: Connection refused"
    assert trouble_with(f"postgresql://nobody-here@/postgres?{here}") == (
        'refuses the login: role "nobody-here" does not exist')  # fmt: skip
    said = trouble_with(f"postgresql://postgres@/postgres?{here}&nonsense=1")
    assert said.endswith("(the parameter nonsense is not understood and left out)")
    wrong = f"postgresql://{GUARDED}:wr0ng@/postgres?{here}"
    said = trouble_with(wrong)
    assert said == f'refuses the login: password authentication failed for user "{GUARDED}"'
    said = trouble_with(f"postgresql://{GUARDED}@/postgres?{here}")
    assert said.startswith("refuses the login: ") and "~/.pgpass" in said
    assert "%2F" in trouble_with("postgresql://me:p/w@host/db")


def test_without_the_driver(hub_server: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    assert "pip install 'backscroll[postgres]'" in trouble_with(hub_server.url)


def test_a_password_opens_it_and_is_not_kept(hub_server: Database, tmp_path: Path) -> None:
    sync = server_rows.synced(HubSource(), url_of(hub_server.guarded_url), tmp_path / "s.db")
    assert sync.summary.new == 5
    sync.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    body = (tmp_path / "s.db").read_bytes()
    assert GUARDED.encode() in body and PASSWORD.encode() not in body
    assert b"s3cr" not in body


def test_a_table_that_may_not_be_read(hub_server: Database, tmp_path: Path) -> None:
    hub_server.execute("CREATE ROLE reader LOGIN; GRANT SELECT ON sessions, messages TO reader")
    url = url_of(hub_server.url.replace("postgres@", "reader@"))
    sync = server_rows.synced(HubSource(), url, tmp_path / "s.db")
    (problem,) = kept.problems(sync.database)
    said = "may not be read by this user: permission denied for table parts"
    assert (problem.path, problem.reason) == (str(url), said)
    hub_server.execute("GRANT SELECT ON parts TO reader")
    again = server_rows.synced(HubSource(), url, tmp_path / "s.db")
    assert again.summary.new == 5 and kept.problems(again.database) == []
    hub_server.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_a_locked_table_is_not_waited_for(
    hub_server: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = connection._BEGIN
    monkeypatch.setattr(connection, "_BEGIN", patient.replace("'2s'", "'1ms'"))
    problems: list[Problem] = []

    async def locked() -> None:
        writer = await asyncpg.connect(hub_server.url)
        async with writer.transaction():
            await writer.execute("LOCK TABLE parts IN ACCESS EXCLUSIVE MODE")
            units = HubSource().units_on(url_of(hub_server.url), problems)
            assert await asyncio.to_thread(list, units) == []
        await writer.close()

    asyncio.run(locked())
    assert problems[0].reason.startswith("is locked by another program")


def test_a_database_that_is_another_programs_by_now(postgres: Server, tmp_path: Path) -> None:
    """The configuration may name one kind for a database of another."""
    server = postgres.loaded("lionagi", "state.db")
    sync = server_rows.synced(HubSource(), url_of(server.url), tmp_path / "s.db")
    (problem,) = kept.problems(sync.database)
    assert problem.reason == "is no database of hub: its tables are others"


def test_a_transaction_can_write_nothing(hub_server: Database) -> None:
    servers, url = Servers(), url_of(hub_server.url)
    with servers.reading(url) as reader:
        assert reader.rows("SHOW transaction_read_only")[0]["transaction_read_only"] == "on"
        assert reader.rows("SHOW application_name")[0]["application_name"] == "backscroll"
        with pytest.raises(StoreError, match="read-only transaction"):
            reader.rows("DELETE FROM parts")
    with servers.reading(url) as reader:
        assert reader.rows("SELECT count(*) AS n FROM parts")[0]["n"] == 43
    open_now = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'backscroll'"
    same = f"{open_now} AND datname = current_database()"
    assert hub_server.rows(same)[0]["n"] == 1
    servers.close_all()


def test_rows_without_a_session(hub_server: Database) -> None:
    hub_server.execute(
        "SET session_replication_role = replica; UPDATE parts SET session_id = 'gone'"
        " WHERE id = 'prt_ffffe80a8001PBizljBRpGGYFn'"
    )
    problems: list[Problem] = []
    assert len(list(HubSource().units_on(url_of(hub_server.url), problems))) == 5
    assert [one.reason for one in problems] == ["1 parts of session gone, which is not there"]
