"""A store on a server that drops: poolers, restarts, rights that are lost, disks that are full."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from store.copying.copying import copy_sessions
from store.copying.rows import parents_first, read_rows
from store.copying.sharing import Person, share
from store.demo import make_demo
from store.engine import schema
from store.engine.database import Database, in_transaction, open_database
from store.engine.opening import open_target
from store.engine.server import watching
from store.engine.server.connection import ServerConnection, connected
from store.engine.server.errors import ServerError
from store.engine.server.login import Login
from store.engine.server.waiting import AnswerLoop
from store.engine.server.watching import watch
from store.engine.transactions import is_lost
from store.errors import BackscrollError, Refused, StoreError
from store.queries import sessions
from store.recorder.backoff import AGAIN
from store.recorder.procedures import drive
from store.stats.rollups import open_rollups
from store.store import Store
from store.system.processes import this_process
from store.upkeep.doctor_on_server import examine_server
from store.verbs.shelf import archive, unarchive
from tests.sources.postgres_server import Database as Server
from tests.sources.postgres_server import Server as Cluster
from tests.store.pooler import Pooler
from tests.store.recording import feed, record, stored
from tests.store.talks import Talk
from tests.store.test_server_large import OUTPUT, record_output
from tests.store.test_server_store import renamed, until

ALL_TABLES = "ALL TABLES IN SCHEMA public, backscroll"


def writing_role(server: Server, name: str) -> str:
    """Make a role that may change all tables of a store; return what it is called."""
    role = f"{name}_{server.name}"
    server.execute(
        f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA public, backscroll TO {role};"
        f" GRANT ALL ON {ALL_TABLES} TO {role};"
        f" GRANT ALL ON ALL SEQUENCES IN SCHEMA public, backscroll TO {role}")
    return role


def titles(db: Database) -> list[str]:
    shown = sessions.SessionFilter(archived="include")
    return sorted(str(row.title) for row in sessions.page(db, shown, limit=-1))


def archived(db: Database) -> set[str]:
    only = sessions.SessionFilter(archived="only")
    return {row.id for row in sessions.page(db, only, limit=-1)}


# Poolers


async def test_a_pooler_may_change_the_connection_after_each_transaction(
    url: str, pooler: Callable[..., Pooler]
) -> None:
    pooled = pooler().url(url)
    async with await Store.open(pooled) as one, await Store.open(pooled) as two:
        made = [await store.create_session("mine") for store in (one, two) for _ in range(5)]
        for store in (one, two):
            await asyncio.gather(*(store.session(each) for each in made))
        await one.write(archive, [made[0].id], now=1)
        assert (await two.read(archived)) == {made[0].id}


def test_a_pooler_is_asked_for_changes(url: str, pooler: Callable[..., Pooler]) -> None:
    database, writing = open_target(pooler().url(url)), open_target(url, write=True)
    assert database.connection.is_pooled  # type: ignore[attr-defined]
    assert not writing.connection.is_pooled  # type: ignore[attr-defined]
    found = watch(database)
    until(lambda: found.version)
    before = found.version
    in_transaction(writing, archive, [Talk(writing).session()], now=1)
    until(lambda: found.version > before)
    found.close()
    database.close()
    writing.close()


def test_a_pooler_in_statement_mode_is_named_and_read_through(
    url: str, pooler: Callable[..., Pooler]
) -> None:
    with contextlib.closing(open_target(url, write=True)) as database:
        session = Talk(database).session()
    database = open_target(pooler(pool_mode="statement").url(url), write=True)
    assert sessions.get(database, session) is not None
    with pytest.raises(ServerError) as caught:
        in_transaction(database, archive, [session], now=1)
    assert "behind a pooler in statement mode" in caught.value.words
    assert not is_lost(caught.value)
    database.close()


@pytest.mark.parametrize(("make", "is_told"), [(AnswerLoop, False), (asyncio.new_event_loop, True)])
def test_rows_that_are_sent_to_a_server_that_went_away_say_nothing_by_the_way(
    caplog: pytest.LogCaptureFixture, make: Callable[[], asyncio.AbstractEventLoop], is_told: bool
) -> None:
    """A host's own connections say what asyncio says of them."""
    async def send() -> None:
        near, far = socket.socketpair()
        near.setblocking(False)
        transport, _ = await asyncio.get_running_loop().create_connection(
            asyncio.Protocol, sock=near)
        far.close()
        for _ in range(20):
            transport.write(b"row")
        transport.abort()
        await asyncio.sleep(0)

    loop = make()
    loop.run_until_complete(send())
    loop.close()
    assert bool(caplog.records) is is_told


def test_a_watch_goes_on_whatever_ends_its_work(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endings: list[BaseException] = [asyncio.CancelledError(), SystemExit(), OSError("gone")]
    asked = list[object]()

    async def unsure(login: Login) -> object:
        if endings:
            raise endings.pop()
        asked.append(found.trouble)
        return await connected(login)

    monkeypatch.setattr(watching, "connected", unsure)
    monkeypatch.setattr(watching, "FIRST_PAUSE_S", 0.01)
    database = open_target(url)
    found = watch(database)
    until(lambda: found.version)
    assert asked == ["cannot be read: CancelledError"] and found.trouble is None
    found.close()
    database.close()


async def test_a_pooler_that_closes_idle_connections(
    url: str, pooler: Callable[..., Pooler]
) -> None:
    front = pooler(client_idle_timeout=1)
    async with await Store.open(front.url(url)) as store:
        await store.create_session("mine")
        await asyncio.to_thread(until, lambda: front.closed() >= 2)
        assert len(await store.sessions()) == 1
        await store.create_session("mine")
        assert len(await store.sessions()) == 2


async def test_a_large_output_goes_through_a_pooler_in_pieces(
    url: str, pooler: Callable[..., Pooler]
) -> None:
    """The pieces are settings of a transaction, which has one connection of the server."""
    front = pooler().url(url)
    async with await Store.open(front) as store, await Store.open(front) as other:
        made = await asyncio.gather(*(record_output(one, OUTPUT) for one in (store, other)))
        for session in made:
            (message,) = await other.messages(session)
            assert message["parts"][0]["output"] == OUTPUT
        left = "SELECT count(*) FROM pg_settings WHERE name LIKE 'backscroll.%'"
        assert await store.read(lambda db: db.connection.execute(left).fetchone()) == (0,)


def test_a_session_has_one_recorder_behind_poolers_too(
    url: str, pooler: Callable[..., Pooler]
) -> None:
    """A lock of a connection would be kept by whoever has that connection next."""
    front = pooler().url(url)
    one, other, direct = (open_target(each, write=True) for each in (front, front, url))
    recording, message = record(one, [{"type": "start"}])
    session = recording.session_id
    for second in (other, direct):
        with pytest.raises(Refused, match="another connection"):
            record(second, [], session=session)
    feed(one, recording, [{"type": "text-start", "id": "t"},
                          {"type": "text-delta", "id": "t", "delta": "mine"}])
    drive(one, recording.close())
    # Whoever is free of it takes it, and the other way round.
    taken, _ = record(direct, [], session=session)
    with pytest.raises(Refused, match="another connection"):
        record(other, [], session=session)
    drive(direct, taken.close())
    taken, _ = record(other, [], session=session)
    # It ended without a word, and another one took the session: nothing of the first is written.
    direct.connection.execute("UPDATE recorder_leases SET ends_at = 5")
    again, _ = record(one, [], session=session)
    with pytest.raises(Refused, match="another connection"):
        feed(other, taken, [{"type": "start"}])
    drive(one, again.close())
    assert direct.connection.execute("SELECT count(*) FROM recorder_leases").fetchone() == (0,)
    assert direct.connection.execute(
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE l.locktype = 'advisory' AND d.datname = current_database()").fetchone() == (0,)
    assert stored(direct, message)["parts"][0]["text"] == "mine"
    for each in (one, other, direct):
        each.close()


def test_a_recorder_takes_its_session_from_its_lost_connection(
    postgres: Cluster, url: str
) -> None:
    """The network was gone: the server has not missed the first connection."""
    server = postgres.database_of(url)
    member, team = f"member_{server.name}", f"team_{server.name}"
    schemas = f"IN SCHEMA public, backscroll TO {team}"
    server.execute(f"CREATE ROLE {team}; CREATE ROLE {member} LOGIN IN ROLE {team};"
                   f" ALTER ROLE {member} IN DATABASE {server.name} SET role = {team};"
                   f" GRANT USAGE ON SCHEMA public, backscroll TO {team};"
                   f" GRANT ALL ON ALL TABLES {schemas}; GRANT ALL ON ALL SEQUENCES {schemas}")
    login = renamed(url, user=member)
    lost, again, other = (open_target(login, write=True) for _ in range(3))
    recording, message = record(lost, [{"type": "start"}])
    feed(again, recording, [{"type": "text-start", "id": "t"},
                            {"type": "text-delta", "id": "t", "delta": "mine"}])
    with pytest.raises(sqlite3.OperationalError) as ended:
        lost.connection.execute("SELECT 1")
    assert is_lost(ended.value)
    with pytest.raises(Refused, match="another connection"):
        record(other, [], session=recording.session_id)
    drive(again, recording.close())
    assert stored(other, message)["parts"][0]["text"] == "mine"
    taken, _ = record(other, [], session=recording.session_id)
    drive(other, taken.close())
    assert other.connection.execute(
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE l.locktype = 'advisory' AND d.datname = current_database()").fetchone() == (0,)
    for each in (lost, again, other):
        each.close()


def test_a_writer_without_a_network_is_ended_by_the_server(url: str) -> None:
    database, shown = open_target(url, write=True), "SHOW idle_in_transaction_session_timeout"
    limits = in_transaction(database, lambda db: db.connection.execute(shown).fetchone())
    assert (limits, database.connection.execute(shown).fetchone()) == (("1min",), ("0",))
    database.close()


def test_the_lease_of_a_process_that_died_is_taken(
    url: str, pooler: Callable[..., Pooler]
) -> None:
    front = pooler().url(url)
    db, direct = open_target(front, write=True), open_target(url, write=True)
    recording, _ = record(db, [{"type": "start"}])
    holder = json.dumps(this_process().as_json() | {"started": 1})
    for taker in (db, direct):
        direct.connection.execute("UPDATE recorder_leases SET holder_json = ?", [holder])
        taken, _ = record(taker, [], session=recording.session_id)
        drive(taker, taken.close())
    elsewhere = json.dumps(this_process().as_json() | {"host": "another", "pid": 1})
    direct.connection.execute(
        "INSERT INTO recorder_leases VALUES (?, ?, ?)", [recording.session_id, elsewhere, 1 << 60])
    with pytest.raises(Refused, match="another connection"):
        record(db, [], session=recording.session_id)
    db.close()
    direct.close()


def test_statements_are_prepared_again_after_a_change_of_tables(
    postgres: Cluster, url: str
) -> None:
    database = open_target(url, write=True)
    Talk(database).session("Seen")
    statement = "SELECT * FROM user_marks_of_test"
    other = postgres.database_of(url)
    database.connection.script("CREATE TABLE public.user_marks_of_test (a int)")  # type: ignore[attr-defined]
    assert database.connection.execute(statement).fetchall() == []
    other.execute("ALTER TABLE public.user_marks_of_test ALTER COLUMN a TYPE text;"
                  " INSERT INTO public.user_marks_of_test VALUES ('b')")
    assert database.connection.execute(statement).fetchall() == [("b",)]
    database.connection.script("DEALLOCATE ALL")  # type: ignore[attr-defined]
    assert database.connection.execute(statement).fetchall() == [("b",)]
    assert titles(database) == ["Seen"]
    database.close()


# A server that is killed and started again


async def test_readers_go_on_when_the_server_was_killed(postgres: Cluster, url: str) -> None:
    writing = open_target(url, write=True)
    for number in range(20):
        Talk(writing).session(f"Title {number}")
    whole = titles(writing)
    writing.close()
    async with await Store.open(url) as store:
        stopped, failed, read = threading.Event(), list[str](), 0

        async def reads() -> None:
            nonlocal read
            while not stopped.is_set():
                try:
                    assert await store.read(titles) == whole
                    read += 1
                except StoreError as error:
                    failed.append(str(error))
                    await asyncio.sleep(0.01)

        async def three_more() -> None:
            seen = read
            while read < seen + 3 and not task.done():
                await asyncio.sleep(0.01)

        task = asyncio.ensure_future(reads())
        for _ in range(2):
            await three_more()
            await asyncio.to_thread(postgres.stop)
            await asyncio.to_thread(postgres.start)
        await three_more()
        stopped.set()
        await task
    assert all("postgres" in each for each in failed)


async def test_no_verb_is_lost_or_half_done_when_the_server_is_killed(
    postgres: Cluster, url: str
) -> None:
    writing = open_target(url, write=True)
    made = [Talk(writing).session(f"Title {number}") for number in range(60)]
    writing.close()
    done, refused = set[str](), list[str]()
    async with await Store.open(url) as store:
        reached = asyncio.Event()

        async def verbs() -> None:
            for each in made:
                while True:
                    try:
                        await store.write(archive, [each], now=1)
                    except Refused as error:
                        if "already" in str(error):
                            break  # The server was killed after its commit, before its answer.
                        refused.append(str(error))
                        await asyncio.sleep(0.02)
                    else:
                        break
                done.add(each)
                if len(done) in (20, 40):
                    reached.set()

        task = asyncio.ensure_future(verbs())
        for _ in range(2):
            await asyncio.wait(
                [task, asyncio.ensure_future(reached.wait())],
                return_when=asyncio.FIRST_COMPLETED)
            reached.clear()
            await asyncio.to_thread(postgres.stop)
            await asyncio.to_thread(postgres.start)
        await task
        assert done == set(made) == await store.read(archived)
        logged = await store.read(lambda db: db.connection.execute(
            "SELECT session_id, count(*) FROM verb_log GROUP BY session_id").fetchall())
    assert dict(logged) == dict.fromkeys(made, 1)


@pytest.mark.long
async def test_no_acknowledged_chunk_is_lost_when_the_server_is_killed(
    postgres: Cluster, url: str
) -> None:
    problems = list[str]()
    async with await Store.open(url) as store:
        recorder = await store.recorder(
            await store.create_session("mine"), problem=problems.append)
        session, said, kept, refused = recorder.session_id, list[str](), 0, 0
        for chunk in ({"type": "start"}, {"type": "text-start", "id": "t"}):
            await recorder.feed(chunk)
        await recorder.flush()
        for number in range(120):
            if number in (30, 80):
                await asyncio.to_thread(postgres.stop)
            if number in (40, 90):
                await asyncio.to_thread(postgres.start)
                text = await store.read(text_of, session)
                assert "".join(said).startswith(text) and len(text) >= kept
            said.append(f"{number} ")
            await recorder.feed({"type": "text-delta", "id": "t", "delta": said[-1]})
            try:
                await recorder.flush()
                kept = len("".join(said))
            except Refused:
                refused += 1
                # Each byte is counted once, however often it could not be written.
                assert recorder._recording.waiting <= len("".join(said)) + 1
        await recorder.feed({"type": "text-end", "id": "t"})
        await recorder.feed({"type": "finish"})
        await recorder.close()
        assert await store.read(text_of, session) == "".join(said)
        assert refused >= 2 and problems.count(AGAIN) == 2
        assert await store.read(lambda db: db.connection.execute(
            "SELECT count(*) FROM chat_parts").fetchone()) == (1,)


def text_of(db: Database, session_id: str) -> str:
    """Return the text of a session's only part."""
    row = db.connection.execute(
        "SELECT data_json FROM chat_parts WHERE session_id = ?", [session_id]).fetchone()
    return str(json.loads(row[0])["text"]) if row is not None else ""


@pytest.mark.long
def test_the_record_command_goes_on_when_the_server_was_killed(
    postgres: Cluster, url: str, tmp_path: Path
) -> None:
    errors = tmp_path / "errors"
    with errors.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "backscroll", "record", "--store", url, "--agent", "mine"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True)
    assert process.stdin is not None

    def feed(*chunks: dict[str, object]) -> None:
        assert process.stdin is not None
        for chunk in chunks:
            process.stdin.write(json.dumps(chunk) + "\n")
        process.stdin.flush()

    def stored_text() -> str:
        rows = postgres.database_of(url).rows("SELECT data_json FROM public.chat_parts")
        return str(json.loads(rows[0]["data_json"])["text"]) if rows else ""

    feed({"type": "start"}, {"type": "text-start", "id": "t"},
         {"type": "text-delta", "id": "t", "delta": "before "})
    until(lambda: stored_text() == "before ")
    for number, words in enumerate(("first ", "second "), 1):
        postgres.stop()
        feed({"type": "text-delta", "id": "t", "delta": words})
        # Else the server may be back before anything is saved.
        until(lambda number=number: errors.read_text().count(" is gone; ") >= number)  # type: ignore[misc]
        postgres.start()
        until(lambda words=words: stored_text().endswith(words))  # type: ignore[misc]
    feed({"type": "text-end", "id": "t"}, {"type": "finish"})
    process.communicate(timeout=60)
    said = errors.read_text()
    assert process.returncode == 0, said
    assert said.count("is gone; trying again") == said.count(" answers again") >= 2
    assert stored_text() == "before first second "


@pytest.mark.long
@pytest.mark.parametrize("how", ["copy", "share"])
def test_sessions_that_are_brought_while_the_server_is_killed(
    postgres: Cluster, url: str, tmp_path: Path, how: str
) -> None:
    source = open_database(make_demo(tmp_path / "demo.db", lambda: 1_795_900_000_000), write=False)
    ids, killed = parents_first(source), list[int]()

    def kill(done: int) -> None:
        if done in (3, 9) and done not in killed:
            killed.append(done)
            postgres.stop()
            postgres.start()

    def bring(target: Database) -> object:
        if how == "copy":
            return copy_sessions(source, target, ids, on_progress=lambda done: kill(done.done))
        ada = Person("ada", "laptop", None)
        return share(source, target, ada, on_progress=lambda done: kill(done.done))

    def there(db: Database) -> list[object]:
        return [each and each.stamps() for each in map(partial(read_rows, db), ids)]

    whole = open_database(tmp_path / "whole.db", create=True)
    done = {3, 9}
    killed += done
    bring(whole)
    killed.clear()
    while True:
        target = open_target(url, write=True)
        try:
            bring(target)
            break
        except (StoreError, Refused) as error:
            assert "postgres" in str(error)
        finally:
            target.close()
    target = open_target(url)
    assert set(killed) == done and there(target) == there(whole)
    for each in (target, whole, source):
        each.close()


def test_a_migration_that_is_killed_leaves_the_older_store(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = postgres.database()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "CURRENT_VERSION", 3)
        open_target(older.url, create=True, write=True).close()
    failed: list[BaseException] = []

    def migrate() -> None:
        try:
            open_target(older.url, create=True, write=True).close()
        except BaseException as error:
            failed.append(error)

    # The last statement of a migration waits for this.
    lock = Holder(older, "LOCK TABLE backscroll.store_version IN SHARE MODE")
    thread = threading.Thread(target=migrate)
    thread.start()
    until(lambda: postgres.admin.rows(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
    postgres.stop()
    thread.join()
    lock.end()
    postgres.start()
    assert len(failed) == 1 and isinstance(failed[0], StoreError)
    assert older.rows("SELECT version FROM backscroll.store_version") == [{"version": 3}]
    threads = [threading.Thread(target=migrate) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(failed) == 1
    database = open_target(older.url, write=True)
    assert database.form.version == schema.CURRENT_VERSION
    database.close()


# A standby


@pytest.mark.long
async def test_a_standby_is_read_and_follows(
    postgres: Cluster, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = open_target(url, write=True)
    first = Talk(writing).session("First")
    with postgres.standby() as folder:
        place = url.replace(str(postgres.folder), str(folder))
        async with await Store.open(place) as store:
            assert await store.read(titles) == ["First"]
            with pytest.raises(Refused, match="is a standby server, so it is opened read only"):
                await store.write(archive, [first], now=1)
            database = open_target(place, write=True)
            assert database.read_only is not None and "standby" in database.read_only
            found = watch(database)
            await asyncio.to_thread(until, lambda: found.version)
            before = found.version
            Talk(writing).session("Second")
            in_transaction(writing, archive, [first], now=1)
            await asyncio.to_thread(until, lambda: found.version > before)
            assert await store.read(titles) == ["First", "Second"]
            with open_rollups(database) as counted:
                assert counted.coverage.total == 2
            assert database.server is not None
            examined = examine_server(database.server)
            assert examined.is_well and any(
                "standby" in one.words for one in examined.findings)
            had = found.rights
            await asyncio.to_thread(postgres.promote, folder)
            await store.write(unarchive, [first], now=2)
            monkeypatch.setattr("store.engine.server.connection.ASKED_EVERY_S", 0.0)
            assert await store.read(archived) == set() and store.read_only is None
            # It takes LISTEN now.
            await asyncio.to_thread(until, lambda: found.rights != had)
            before = found.version
            await store.create_session("mine")
            await asyncio.to_thread(until, lambda: found.version > before)
            found.close()
            database.close()
    writing.close()


def test_a_role_whose_transactions_only_read(postgres: Cluster, url: str) -> None:
    server = postgres.database_of(url)
    server.execute(f"CREATE ROLE quiet_{server.name} LOGIN SUPERUSER;"
                   f" ALTER ROLE quiet_{server.name} SET default_transaction_read_only = on")
    database = open_target(renamed(url, user=f"quiet_{server.name}"), write=True)
    assert database.read_only is not None and "lets this role only read" in database.read_only
    with pytest.raises(Refused, match="lets this role only read"):
        in_transaction(database, archive, ["ses_x"], now=1)
    database.close()


async def test_a_store_follows_what_its_role_may_do(
    postgres: Cluster, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what only the next connection of the role has."""
    monkeypatch.setattr("store.engine.server.connection.ASKED_EVERY_S", 0.0)
    server = postgres.database_of(url)
    role = f"turning_{server.name}"

    async def execute(sql: str) -> None:
        await asyncio.to_thread(server.execute, sql)

    turned = f"ALTER ROLE {role} SET default_transaction_read_only"
    await execute(f"CREATE ROLE {role} LOGIN SUPERUSER; {turned} = on")
    async with await Store.open(renamed(url, user=role)) as store:
        for _ in range(2):
            with pytest.raises(Refused, match="lets this role only read"):
                await store.create_session("mine")
            await execute(f"{turned} = off")
            session = await store.create_session("mine")
            assert [each.id for each in await store.sessions()] == [session.id]
            assert store.read_only is None
            await execute(f"{turned} = on")
            await store.sessions()
            assert "lets this role only read" in str(store.read_only)
            await store.delete(session)  # The server lets the connection that is open.
            await execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                          f" WHERE usename = '{role}'")


async def test_a_role_without_rights_on_our_tables_changes_nothing_past_the_log(
    postgres: Cluster, url: str
) -> None:
    server = postgres.database_of(url)
    role = f"half_{server.name}"
    await asyncio.to_thread(
        server.execute, f"CREATE ROLE {role} LOGIN;"
        f" GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO {role}")
    async with await Store.open(renamed(url, user=role)) as store:
        with pytest.raises(Refused, match="no rights on Backscroll's own tables"):
            await store.create_session("mine")
        assert await store.sessions() == []
        await asyncio.to_thread(
            server.execute, f"GRANT USAGE ON SCHEMA backscroll TO {role};"
            f" GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA backscroll TO {role};"
            f" GRANT USAGE ON ALL SEQUENCES IN SCHEMA backscroll TO {role}")
        session = await store.create_session("mine")
        assert [each.id for each in await store.sessions()] == [session.id]


async def test_a_role_that_may_not_see_the_other_databases_opens_a_store(
    postgres: Cluster, url: str
) -> None:
    server = postgres.database_of(url)
    role = await asyncio.to_thread(writing_role, server, "shut_in")
    await asyncio.to_thread(
        server.execute,
        "REVOKE SELECT ON pg_catalog.pg_database, pg_catalog.pg_db_role_setting FROM PUBLIC")
    async with await Store.open(renamed(url, user=role)) as store:
        session = await store.create_session("mine")
        await asyncio.to_thread(server.execute, f"REVOKE INSERT ON chat_parts FROM {role}")
        assert (await store.sessions())[0].id == session.id
        reader = store._reader.database
        assert await asyncio.to_thread(reader.has_other_rights, at_once=True)


# Rights that are lost, and disks that are full


def test_a_role_that_loses_its_rights(postgres: Cluster, url: str) -> None:
    server = postgres.database_of(url)
    role = writing_role(server, "writer")
    owner = open_target(url, write=True)
    session, other = Talk(owner).session("Seen"), Talk(owner).session("Seen too")
    owner.close()
    database = open_target(renamed(url, user=role), write=True)
    assert database.read_only is None
    found = watch(database)
    until(lambda: found.version)

    async def tried() -> None:
        async with await Store.open(database.path) as store:
            await store.write(archive, [other], now=1)
            await asyncio.to_thread(
                server.execute, f"REVOKE INSERT, UPDATE, DELETE ON {ALL_TABLES} FROM {role}")
            with pytest.raises(Refused, match="does not let this role .*permission denied"):
                await store.write(archive, [session], now=1)
            assert await store.read(titles) == ["Seen", "Seen too"]
            await asyncio.to_thread(server.execute, f"REVOKE ALL ON {ALL_TABLES} FROM {role}")
            with pytest.raises(StoreError, match="permission denied"):
                await store.read(titles)
            await asyncio.to_thread(until, lambda: found.trouble)
            assert found.trouble is not None and "permission denied" in found.trouble
            assert found.since
            await asyncio.to_thread(server.execute, f"GRANT ALL ON {ALL_TABLES} TO {role}")
            await asyncio.to_thread(until, lambda: found.trouble is None)
            assert await store.read(archived) == {other}
            await store.write(archive, [session], now=1)
            assert await store.read(archived) == {session, other}

    asyncio.run(tried())
    found.close()
    database.close()


async def test_a_recorder_goes_on_when_its_rights_come_back(
    postgres: Cluster, url: str
) -> None:
    server = postgres.database_of(url)
    role = await asyncio.to_thread(writing_role, server, "recorder")
    problems = list[str]()
    async with await Store.open(renamed(url, user=role)) as store:
        recorder = await store.recorder(
            await store.create_session("mine"), problem=problems.append)
        for chunk in ({"type": "start"}, {"type": "text-start", "id": "t"},
                      {"type": "text-delta", "id": "t", "delta": "before "}):
            await recorder.feed(chunk)
        await recorder.flush()
        await asyncio.to_thread(
            server.execute, f"REVOKE INSERT, UPDATE, DELETE ON {ALL_TABLES} FROM {role}")
        await recorder.feed({"type": "text-delta", "id": "t", "delta": "meanwhile "})
        with pytest.raises(Refused, match="permission denied"):
            await recorder.flush()
        assert await store.read(text_of, recorder.session_id) == "before "
        await asyncio.to_thread(server.execute, f"GRANT ALL ON {ALL_TABLES} TO {role}")
        await recorder.feed({"type": "text-delta", "id": "t", "delta": "after"})
        await recorder.feed({"type": "text-end", "id": "t"})
        await recorder.feed({"type": "finish"})
        await recorder.close()
        assert await store.read(text_of, recorder.session_id) == "before meanwhile after"
    assert any("permission denied" in each for each in problems) and problems[-1] == AGAIN


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 MB that the server may write to; only root can make one."""
    folder = Path(tempfile.mkdtemp(prefix="bs-disk-", dir="/tmp"))
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("a small disk cannot be mounted here")
    try:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


@pytest.mark.long
def test_a_full_tablespace_costs_nothing_that_was_acknowledged(
    postgres: Cluster, disk: Path
) -> None:
    server = postgres.database()
    space = f"space_{server.name}"
    (disk / "rest").write_bytes(bytes(4 << 20))
    postgres.admin.execute(f"CREATE TABLESPACE {space} LOCATION '{disk}'")
    postgres.admin.execute(f"ALTER DATABASE {server.name} SET TABLESPACE {space}")
    open_target(server.url, create=True, write=True).close()

    async def tried() -> None:
        done, said = list[str](), ""
        async with await Store.open(server.url) as store:
            while not said:
                try:
                    text = os.urandom(200_000).hex()
                    made = await store.create_session("mine", title=text)
                    done.append(made.id)
                except BackscrollError as error:
                    said = str(error)
            assert "has no space left" in said
            assert len(await store.sessions(limit=1_000)) == len(done)
            (disk / "rest").unlink()
            done.append((await store.create_session("mine")).id)
            assert {each.id for each in await store.sessions(limit=1_000)} == set(done)

    asyncio.run(tried())
    postgres.admin.execute(f"DROP DATABASE {server.name} WITH (FORCE)")
    postgres.admin.execute(f"DROP TABLESPACE {space}")


class Holder:
    """A connection that has run a statement in a transaction."""

    def __init__(self, server: Server, sql: str) -> None:
        self._process = subprocess.Popen(
            ["psql", "-qAt", "-d", server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"BEGIN; {sql}; SELECT 'held';\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "held\n"

    def end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()


# A server that is silent


@pytest.mark.parametrize("kind", ["nothing", "reads", "writes", "searches"])
async def test_a_store_is_closed_while_its_server_is_silent(
    postgres: Cluster, url: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for an answer then hears that the store is closed."""
    monkeypatch.setattr("store.engine.connection_thread._PATIENCE_S", 0.05)
    monkeypatch.setattr("store.engine.server.connection.SILENT_S", 0.2)
    for place in ("store.engine.async_database", "store.search.searching"):
        monkeypatch.setattr(f"{place}.CLOSE_S", 0.2)
    store = await Store.open(url)
    session = await store.create_session("mine")
    with postgres.silent():
        begun = list[Coroutine[Any, Any, object]]()
        if kind == "reads":
            begun = [store.sessions(), store.session(session)]
        elif kind == "writes":
            begun = [store.create_session("lost"), store.rename(session, "Lost")]
        elif kind == "searches":
            begun = [store.search("words"), store.search("mine")]
        calls = [asyncio.ensure_future(each) for each in begun]
        asks = {"reads": store._reader, "writes": store._writer}.get(kind)
        if asks is not None:
            await asyncio.to_thread(until, lambda: asks.database.remote.waited)
        async with asyncio.timeout(30):  # An answer is waited for twice as long.
            await store.close()
            if kind != "searches":  # These still connect.
                for call in calls:
                    with pytest.raises(StoreError, match="is closed; open it again"):
                        await call
    for each in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(each, StoreError)
    async with await Store.open(url) as again:
        assert [(one.id, one.agent) for one in await again.sessions()] == [(session.id, "mine")]


async def test_a_verb_that_takes_long_is_not_cut_at_the_end(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.engine.connection_thread._PATIENCE_S", 0.01)
    monkeypatch.setattr("store.engine.server.connection.SILENT_S", 60.0)
    store, asked = await Store.open(url), asyncio.Event()
    session, loop = await store.create_session("mine"), asyncio.get_running_loop()
    cut = ServerConnection.cut_if_silent

    def noted(connection: ServerConnection) -> bool:
        was_cut = cut(connection)
        loop.call_soon_threadsafe(asked.set)
        return was_cut

    monkeypatch.setattr(ServerConnection, "cut_if_silent", noted)
    started, free = asyncio.Event(), threading.Event()

    def slow(db: Database) -> None:
        archive(db, [session.id], now=1)
        loop.call_soon_threadsafe(started.set)
        assert free.wait(60)

    change = asyncio.ensure_future(store.write(slow))
    await started.wait()
    closing = asyncio.ensure_future(store.close())
    await asked.wait()
    free.set()
    await asyncio.gather(change, closing)
    async with await Store.open(url) as again:
        assert await again.read(archived) == {session.id}
