"""A store on a real PostgreSQL server: made, opened by roles, changed and watched."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import pytest

from store.engine import changes, database, schema
from store.engine.database import Database, in_transaction, open_database
from store.engine.opening import open_target, recognise
from store.engine.server import connection, watching
from store.engine.server.connection import _WRITERS
from store.engine.server.statements import turned
from store.engine.server.waiting import AnswerLoop
from store.engine.server.watching import watch
from store.engine.server_url import server_url
from store.engine.transactions import (
    OfSession,
    explained,
    for_user,
    is_beside_others,
    is_busy,
    is_lost,
    transaction,
)
from store.errors import Refused, StoreError
from store.events.log import switch_on
from store.ids import IdMinter
from store.queries import inspection, messages, sessions, windows
from store.recorder.procedures import drive
from store.recorder.writing import log_change
from store.store import Store
from store.sync.forget import forget
from store.verbs.delete import delete
from store.verbs.fork import fork
from store.verbs.guards import require_session
from store.verbs.marks import rename
from store.verbs.shelf import archive
from store.verbs.undo import redo, undo
from tests.sources.postgres_server import Database as Server
from tests.sources.postgres_server import Server as Cluster
from tests.store.engines import Form, ServerStores, host_tables, new_server_store, opened_again
from tests.store.recording import feed, record, stored
from tests.store.talks import Talk


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def renamed(url: str, **parts: str) -> str:
    """Return a URL for another user."""
    return url.replace("postgres@", f"{parts['user']}@", 1)


def test_statements_get_places_and_schemas() -> None:
    schemas = {"changes": '"backscroll".changes', "chat_sessions": '"public".chat_sessions'}
    found = turned("SELECT '?', \"a?\" FROM chat_sessions s JOIN main.changes c WHERE s.a = ?"
                   " AND b IN () -- ?", schemas)
    assert found.text == (
        "SELECT '?', \"a?\" FROM \"public\".chat_sessions s JOIN \"backscroll\".changes c"
        " WHERE s.a = $1 AND b IN (NULL) -- ?")
    assert (found.names, found.values((5,))) == (None, [5])
    found = turned("SELECT $2, $q1, $2::text FROM temp.ids", {})
    assert found.text == "SELECT $1, $2, $1::text FROM pg_temp.ids"
    assert found.values({"2": "a", "q1": "b", "7": "unused"}) == ["a", "b"]


def test_a_store_is_made_once_however_many_make_it(postgres: Cluster) -> None:
    url, failed = postgres.database().url, list[BaseException]()

    def make() -> None:
        try:
            open_target(url, create=True, write=True).close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    database = open_target(url, write=True)
    assert (database.form.name, database.form.version) == ("own", schema.CURRENT_VERSION)
    assert database.read_only is None and "postgres@" in database.name
    database.close()


def test_an_older_store_is_migrated_by_whom_may(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = postgres.database()
    url, reader = server.url, f"reader_{server.name}"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "CURRENT_VERSION", 3)
        older = open_target(url, create=True, write=True)
        Talk(older).session("Before")
        older.close()
    server.execute(f"CREATE ROLE {reader} LOGIN;"
                   f" GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader};"
                   f" GRANT USAGE ON SCHEMA backscroll TO {reader};"
                   f" GRANT SELECT ON backscroll.store_version TO {reader}")
    # Until then it is read, also by a login that may not migrate it.
    for login in (url, renamed(url, user=reader)):
        database = open_target(login, write=True, migrate_older=login != url)
        assert "older version 3" in str(database.read_only)
        assert "`backscroll --store URL`" in str(database.read_only)
        shown = sessions.page(database, sessions.SessionFilter())
        assert ([row.title for row in shown], database.form.older) == (["Before"], 3)
        database.close()
    database = open_target(url, write=True, migrate_older=True)
    assert database.read_only is None
    assert database.form.version == schema.CURRENT_VERSION
    Talk(database).session("After")
    database.close()


def test_what_is_no_store_says_so(postgres: Cluster) -> None:
    empty = postgres.database()
    assert recognise(empty.url).kind == "server"
    with pytest.raises(StoreError, match="has no table chat_sessions on its search path"):
        open_target(empty.url)
    empty.execute("CREATE TABLE chat_sessions (id text)")
    with pytest.raises(StoreError, match="it has no table chat_messages"):
        open_target(empty.url)


def test_a_store_off_the_search_path_is_named_with_the_way_to_it(postgres: Cluster) -> None:
    apart = postgres.database()
    apart.execute("CREATE SCHEMA apart; CREATE ROLE elsewhere LOGIN")
    open_target(f"{apart.url}&schema=apart", create=True).close()
    with pytest.raises(StoreError, match="but in the schema apart; add schema=apart to the URL"):
        open_target(apart.url)
    other = apart.url.replace("postgres@", "elsewhere@")
    with pytest.raises(StoreError, match="in the schema apart, which this user may not use"):
        open_target(other)
    with pytest.raises(StoreError, match="may not be read by this user: no USAGE on the schema"):
        open_target(f"{other}&schema=apart")


def test_settings_of_a_database_that_would_change_what_statements_mean(
    postgres: Cluster
) -> None:
    odd = postgres.database()
    for setting in ("standard_conforming_strings = off", "backslash_quote = off",
                    "default_transaction_isolation = serializable", "bytea_output = escape",
                    "client_encoding = LATIN1", "datestyle = German"):  # fmt: skip
        odd.execute(f"ALTER DATABASE {odd.name} SET {setting}")
    asked = "SELECT current_setting('transaction_isolation')"
    with closing(open_target(odd.url, create=True, write=True)) as db:
        assert db.connection.execute(asked).fetchone() == ("read committed",)
        with transaction(db.connection):
            assert db.connection.execute(asked).fetchone() == ("read committed",)
        words = {"1": "\\u0000 ✓ '"}
        assert db.connection.execute("SELECT $1 || '\\'", words).fetchone() == (
            "\\u0000 ✓ '\\",)  # fmt: skip


def test_a_database_that_cannot_hold_every_text(postgres: Cluster) -> None:
    postgres.admin.execute(
        "CREATE DATABASE of_latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    latin = Server(postgres, "of_latin")
    with pytest.raises(StoreError, match="cannot hold every text: its encoding is LATIN1"):
        open_target(latin.url, create=True)
    latin.execute(host_tables("text"))
    with closing(open_target(latin.url, write=True)) as db:
        with transaction(db.connection), pytest.raises(sqlite3.DataError) as misfit:
            db.connection.execute("SELECT $1 || ''", {"1": "✓"})
        told = str(explained(misfit.value, db.path))
        assert told.startswith(f"{latin.url} cannot hold a value: ") and "LATIN1" in told
        with pytest.raises(sqlite3.IntegrityError) as refusal:
            db.connection.execute("INSERT INTO chat_sessions (id) VALUES (NULL)")
        assert str(explained(refusal.value, db.path)).startswith(
            f"{latin.url} refuses the change: null value")


def test_no_store_is_made_beside_a_schema_that_is_not_there(postgres: Cluster) -> None:
    server = postgres.database()
    url = f"{server.url}&schema=team"
    for create in (False, True):
        with pytest.raises(StoreError, match='no schema team; CREATE SCHEMA "team" makes it'):
            open_target(url, create=create, write=True)
    assert server.contents() == {}
    server.execute("CREATE SCHEMA team")
    open_target(url, create=True, write=True).close()
    open_target(url, write=True).close()
    server.execute("DROP SCHEMA team CASCADE")
    server.execute("CREATE SCHEMA team")
    with pytest.raises(StoreError, match='only Backscroll\'s own tables.*"team_backscroll"'):
        open_target(url, create=True, write=True)


def test_a_database_has_several_stores(postgres: Cluster) -> None:
    server = postgres.database()
    odd = 'te"am $body0$ @log@'
    server.execute('CREATE SCHEMA team; CREATE SCHEMA "te""am $body0$ @log@"')
    urls = (server.url, f"{server.url}&schema=team", f"{server.url}&schema={quote(odd)}")
    for url in urls:
        made = open_target(url, create=True, write=True)
        switch_on(made)
        Talk(made).session(url)
        made.close()
    for url in urls:
        database = open_target(url)
        assert [row.title for row in sessions.page(database, sessions.SessionFilter())] == [url]
        database.close()


def test_a_role_that_may_read_alone(postgres: Cluster) -> None:
    url = new_server_store(postgres)
    writing = open_target(url, write=True)
    session = Talk(writing).session("Seen by all")
    server = postgres.database_of(url)
    reader = f"reader_{server.name}"
    server.execute(
        f"CREATE ROLE {reader} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader};"
        f" GRANT USAGE ON SCHEMA backscroll TO {reader};"
        f" GRANT SELECT ON ALL TABLES IN SCHEMA backscroll TO {reader}")
    database = open_target(renamed(url, user=reader), write=True)
    assert database.read_only is not None and "may only read" in database.read_only
    assert [row.title for row in sessions.page(database, sessions.SessionFilter())] == [
        "Seen by all"]
    with pytest.raises(Refused, match="may only read"):
        in_transaction(database, archive, [session], now=1)
    with pytest.raises(sqlite3.OperationalError):
        database.connection.execute("DELETE FROM chat_sessions")
    database.close()
    writing.close()


@pytest.mark.parametrize("kind", ["json", "jsonb", "text"])
def test_a_hosts_database_opens_as_it_is(postgres: Cluster, kind: str) -> None:
    host = postgres.database()
    host.execute(host_tables(kind))
    host.execute(
        "INSERT INTO chat_sessions (id, agent, model_json, metadata_json, created_at, updated_at)"
        """ VALUES ('s1', 'mine', '{"model_id":"m"}', '{"title":"Hosted"}', 1, 2)""")
    host.execute(
        "INSERT INTO chat_messages (id, session_id, role, metadata_json, created_at, updated_at)"
        """ VALUES ('m1', 's1', 'user', '{"hidden_at": 5}', 1, 1),"""
        " ('m2', 's1', 'user', '{}', 2, 2)")
    host.execute(
        'INSERT INTO chat_parts (id, message_id, session_id, "index", type, data_json, created_at,'
        """ updated_at) VALUES ('p1', 'm2', 's1', 0, 'text', '{"type":"text","text":"T"}', 2, 2)""")
    database = open_target(host.url, write=True)
    assert database.form.name == "contract"
    (row,) = sessions.page(database, sessions.SessionFilter())
    assert (row.title, row.id) == ("Hosted", "s1")
    hidden = database.form.hidden_at("m")
    assert database.connection.execute(
        f"SELECT id, {hidden} FROM chat_messages m ORDER BY id").fetchall() == [
            ("m1", 5), ("m2", None)]
    detail = inspection.part_detail(database, "s1", "p1")
    assert detail.rewritten == (kind == "jsonb")
    in_transaction(database, rename, "s1", "Named", now=9)
    made = in_transaction(database, fork, "s1", "m2", ids=IdMinter(lambda: 10), now=10)
    assert [row.title for row in sessions.page(database, sessions.SessionFilter())] == [
        "Named (2)", "Named"]
    again = opened_again(database)
    assert in_transaction(again, undo, now=11).session_id == "s1"
    assert sessions.get(again, made.session_id) is None
    assert in_transaction(again, redo, now=12).session_id == made.session_id
    assert messages.count(again, made.session_id) == 1
    in_transaction(again, undo, now=13)
    in_transaction(again, undo, now=14)
    (row,) = sessions.page(again, sessions.SessionFilter())
    assert row.title == "Hosted"
    with pytest.raises(Refused, match="nothing to undo"):
        in_transaction(again, undo, now=15)
    again.close()
    database.close()
    assert set(host.contents()) == set(schema.REQUIRED_COLUMNS)


@pytest.mark.parametrize("words", [r"a\u0000b", r"\ud800 alone", r"\ud83d\ude00", r"\\u0000"])
def test_json_that_postgresql_cannot_read(postgres: Cluster, words: str) -> None:
    url = new_server_store(postgres)
    database = open_target(url, write=True)
    metadata = f'{{"title":"T","other":"{words}","hidden_at":7}}'
    session = Talk(database).session(metadata_json=metadata)
    row = sessions.get(database, session)
    assert row is not None and (row.title, row.metadata_json) == ("T", metadata)
    assert sessions.page(database, sessions.SessionFilter(query="t"))
    database.close()


async def test_a_host_uses_it_by_its_url(url: str) -> None:
    async with await Store.open(url) as store, await Store.open(url) as other:
        session = await store.create_session("mine")
        assert [one.id for one in await other.sessions()] == [session.id]
        assert await store.pulse() != (0, 0)


async def test_it_goes_on_when_the_server_has_restarted(postgres: Cluster, url: str) -> None:
    async with await Store.open(url) as store:
        await store.create_session("mine")
        await asyncio.to_thread(postgres.stop)
        with pytest.raises(StoreError, match="cannot be reached|closed the connection"):
            await store.sessions()
        await asyncio.to_thread(postgres.start)
        assert len(await store.sessions()) == 1
        await store.create_session("mine")
        assert len(await store.sessions()) == 2


def test_changes_are_told_in_whatever_order_they_are_committed(postgres: Cluster) -> None:
    url = new_server_store(postgres)
    reader, one, two = open_target(url), open_target(url, write=True), open_target(url, write=True)
    seen = changes.newest(reader)
    first, second = Talk(one).session(), Talk(two).session()
    insert = "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, NULL, 1)"
    one.connection.execute("BEGIN")
    one.connection.execute(insert, [first])
    two.connection.execute(insert, [second])
    seen, moved = changes.since(reader, seen)
    assert set(moved.sessions) == {second} and not moved.vague
    one.connection.execute("COMMIT")
    seen, moved = changes.since(reader, seen)
    assert first in moved.sessions
    seen, moved = changes.since(reader, seen)
    assert not moved
    for each in (reader, one, two):
        each.close()


def test_a_watch_is_told_of_a_change(postgres: Cluster) -> None:
    url = new_server_store(postgres)
    database = open_target(url, write=True)
    found = watch(database)
    until(lambda: found.version)
    before = found.version
    session = Talk(database).session()
    in_transaction(database, archive, [session], now=1)
    until(lambda: found.version > before)
    assert found.trouble is None
    found.close()
    database.close()


def test_a_watch_reports_a_server_that_is_silent(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.engine.server.connection.LOOK_S", 0.05)
    server = postgres.database()
    server.execute("CREATE TABLE silent (id text)")
    quiet = watching.ServerWatch(
        server_url(server.url) or pytest.fail(),
        "SELECT CAST(pg_sleep(60) AS text) FROM silent", listens=True)
    until(lambda: quiet.version > 0)
    server.execute("INSERT INTO silent VALUES ('x')")
    silent_from = time.time()
    until(lambda: quiet.trouble == "does not answer")
    # It is what is shown that is of then.
    assert 0 < quiet.since < silent_from
    quiet.close()


def log(database: Database, session: str, at: int, message: str | None = None) -> None:
    """Log a change of a session in a transaction of its own, as a recorder does."""
    in_transaction(database, OfSession(session, partial(
        log_change, session_id=session, message_id=message, at=at)))


def test_a_watch_asks_once_for_many_notices(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for gap in ("GAP_S", "LONGEST_GAP_S"):
        monkeypatch.setattr(watching, gap, 1_000.0)
    database = open_target(new_server_store(postgres), write=True)
    session, found = Talk(database).session(), watch(database)
    until(lambda: found.version)
    for at in range(20):
        log(database, session, at)
    found.close()
    assert found.version == 1 and not found._thread.is_alive()
    monkeypatch.undo()
    found = watch(database)
    until(lambda: found.version)
    # What is written between two questions is reported too.
    for at in range(3):
        before = found.version
        log(database, session, at)
        until(lambda before=before: found.version > before)  # type: ignore[misc]
    found.close()
    database.close()


@pytest.mark.parametrize("calm_s", [0.0, 1e9])
def test_a_watch_reports_what_is_written_while_it_does_not_listen(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch, calm_s: float
) -> None:
    """Notices that come one after the other are left out; with no end of that, or at once."""
    monkeypatch.setattr(watching, "GAP_S", 0.01)
    monkeypatch.setattr(watching, "GAPS", 0)
    monkeypatch.setattr(watching, "CALM_S", calm_s)
    monkeypatch.setattr(watching, "LOOKED_AFTER_S", 1_000.0)
    database = open_target(new_server_store(postgres), write=True)
    session, found = Talk(database).session(), watch(database)
    write = partial(log, database, session, 1)
    until(lambda: found.version)
    for _ in range(10):
        # The second one comes in the pause after the first, mostly.
        before = found.version
        write()
        until(lambda before=before: found.version > before)  # type: ignore[misc]
        write()
    before = found.version
    write()
    until(lambda: found.version > before)
    assert found.trouble is None
    found.close()
    database.close()


def test_a_watch_reports_what_is_committed_after_what_began_later(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest entry stays the same then, whether the watch listens again or only asks."""
    url, gone = new_server_store(postgres), threading.Event()
    monkeypatch.setattr(watching, "GAP_S", 0.01)
    monkeypatch.setattr(watching, "GAPS", 0)
    monkeypatch.setattr(watching, "CALM_S", 1e9)
    unlisten = asyncpg.Connection.remove_listener

    async def seen(*args: Any) -> None:
        await unlisten(*args)
        gone.set()

    monkeypatch.setattr(asyncpg.Connection, "remove_listener", seen)
    reader, one, two = open_target(url), open_target(url, write=True), open_target(url, write=True)
    first, second = Talk(one).session(), Talk(two).session()
    insert = "INSERT INTO changes(session_id, message_id, changed_at) VALUES (?, NULL, 1)"
    found = watch(reader)
    until(lambda: found.version)
    one.connection.execute("BEGIN")
    one.connection.execute(insert, [first])

    def write() -> bool:
        two.connection.execute(insert, [second])
        return gone.is_set()

    until(write)
    before = found.version
    two.connection.execute(insert, [second])
    until(lambda: found.version > before)
    one.connection.execute("COMMIT")
    before = found.version
    monkeypatch.setattr(watching, "CALM_S", 0.0)
    until(lambda: found.version > before)
    found.close()
    monkeypatch.setattr(watching, "is_pooled", pooled)
    found = watch(reader)
    until(lambda: found.version)
    one.connection.execute("BEGIN")
    one.connection.execute(insert, [first])
    before = found.version
    two.connection.execute(insert, [second])
    until(lambda: found.version > before)
    before = found.version
    one.connection.execute("COMMIT")
    until(lambda: found.version > before)
    found.close()
    for each in (reader, one, two):
        each.close()


async def pooled(driver: object) -> bool:
    return True


def test_statements_are_not_compiled(url: str) -> None:
    database = open_target(url)
    assert database.connection.execute("SHOW jit").fetchall() == [("off",)]
    database.close()


def test_answers_of_every_size_and_end(url: str) -> None:
    database, other = open_target(url), open_target(url)
    ask = database.connection.execute
    for size in (1, 65_536, 3_000_000):
        text = "x" * size
        assert ask("SELECT CAST(? AS text), length(?)", (text, text)).fetchall() == [(text, size)]
    assert [ask("SELECT CAST(? AS bigint)", (n,)).fetchone()[0] for n in range(70)] == [*range(70)]

    def end(how: Callable[[], object]) -> sqlite3.OperationalError:
        over = threading.Event()

        def try_on() -> None:
            while not over.wait(0.01):
                how()

        thread = threading.Thread(target=try_on)
        thread.start()
        with pytest.raises(sqlite3.OperationalError) as raised:
            ask("SELECT pg_sleep(60)")
        over.set()
        thread.join()
        return raised.value

    (backend,) = ask("SELECT pg_backend_pid()").fetchone()
    assert str(end(database.connection.interrupt)) == "interrupted"
    assert ask("SELECT 1").fetchall() == [(1,)]
    assert is_lost(end(lambda: other.connection.execute(
        "SELECT pg_terminate_backend(CAST(? AS integer))", (backend,))))
    with pytest.raises(sqlite3.OperationalError) as raised:
        ask("SELECT 1")
    assert is_lost(raised.value) and database.moved()
    database.close()
    other.close()


def test_an_answer_that_cannot_be_read_ends_the_connection() -> None:
    class Unreadable(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            raise IndexError

    class Driver:
        def __init__(self, protocol: asyncio.Protocol, transport: asyncio.Transport) -> None:
            self.transport = transport

    loop = AnswerLoop()
    here, there = socket.socketpair()
    with closing(loop), here, there:
        transport, protocol = loop.run_until_complete(
            loop.create_connection(Unreadable, sock=here))
        driver = loop.connection_class(Driver)(protocol, transport)
        answer = loop.create_future()
        there.send(b"?")
        loop.wait(answer, 60.0)
        with pytest.raises(ConnectionAbortedError):
            answer.result()
        assert driver.transport.is_closing()
        assert here.fileno() >= 0
        loop.run_until_complete(asyncio.sleep(0))  # It ends in the loop's next round.
        assert here.fileno() < 0


@pytest.mark.parametrize("begins", [True, False])
def test_an_interrupt_leaves_no_transaction_open(url: str, begins: bool) -> None:
    database, other = open_target(url), open_target(url)
    connection, failed = database.connection, list[BaseException]()
    other.connection.execute("SELECT pg_advisory_lock(7)")
    (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone()

    def run() -> None:
        try:
            connection.execute(
                f"{'BEGIN' if begins else 'ROLLBACK'}; SELECT pg_advisory_xact_lock(7)")
        except BaseException as error:
            failed.append(error)

    if not begins:
        connection.execute("BEGIN")
    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: other.connection.execute(
        "SELECT 1 FROM pg_locks WHERE pid = ? AND NOT granted", (pid,)).fetchone())
    connection.interrupt()
    other.connection.execute("SELECT pg_advisory_unlock(7)")
    thread.join()
    # What is being ended is ended anyway; what was begun is rolled back.
    assert list(map(str, failed)) == (["interrupted"] if begins else [])
    assert connection.execute("SELECT 1").fetchone() == (1,)
    assert other.connection.execute(
        "SELECT state FROM pg_stat_activity WHERE pid = ?", (pid,)).fetchone() == ("idle",)
    database.close()
    other.close()


@pytest.mark.long
def test_no_answer_is_held_on_to(url: str) -> None:
    def records() -> int:
        return sum(isinstance(one, asyncpg.Record) for one in gc.get_objects())

    database = open_target(url)
    gc.collect()  # Those of tests before, which it may find in the middle else.
    before = records()
    for _ in range(12):
        database.connection.execute(
            "SELECT n, repeat('x', 400) FROM generate_series(1, 100) n").fetchall()
    assert records() == before
    database.close()


@pytest.mark.long
def test_threads_that_end_leave_no_rows_behind(url: str) -> None:
    def read() -> None:
        database = open_target(url)
        assert len(database.connection.execute(
            "SELECT n, 'text' FROM generate_series(1, 1000) n").fetchall()) == 1_000
        database.close()

    held = []
    for _ in range(8):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        gc.collect()
        held.append(sys.getallocatedblocks())
    # The driver's own rows stay, 1,000 of them for each thread.
    assert held[-1] - held[2] < 1_000


def test_a_connection_that_was_closed_while_it_rested(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.engine.server.waiting._QUIET_S", 60.0)
    database, other = open_target(url), open_target(url)
    (backend,) = database.connection.execute("SELECT pg_backend_pid()").fetchone()
    other.connection.execute("SELECT pg_terminate_backend(CAST(? AS integer))", (backend,))

    def is_gone() -> bool:
        try:
            os.kill(backend, 0)
        except ProcessLookupError:
            return True
        return False

    until(is_gone)
    with pytest.raises(sqlite3.OperationalError) as raised:
        database.connection.execute("SELECT pg_backend_pid()")
    assert is_lost(raised.value) and database.moved()
    database.close()
    other.close()


@pytest.mark.parametrize("in_loop", [False, True])
def test_a_statement_that_is_not_answered(
    url: str, monkeypatch: pytest.MonkeyPatch, in_loop: bool
) -> None:
    database = open_target(url)
    monkeypatch.setattr("store.engine.server.waiting._QUIET_S", 0.01)
    monkeypatch.setattr("store.engine.server.connection.ANSWER_S", 0.05)

    async def ask() -> None:
        database.connection.execute("SELECT pg_sleep(60)")

    with pytest.raises(sqlite3.OperationalError) as raised:
        asyncio.run(ask()) if in_loop else database.connection.execute("SELECT pg_sleep(60)")
    assert is_lost(raised.value) and str(explained(raised.value, "")).endswith("does not answer")
    assert database.moved()
    database.close()


@pytest.mark.parametrize("kind", ["InternalClientError", "InterfaceError"])
def test_the_inside_of_the_driver_is_not_shown(url: str, kind: str) -> None:
    database = open_target(url)
    raised = getattr(asyncpg, kind)("cannot switch to state 12; another (2)")

    async def fail() -> None:
        raise raised

    remote = database.remote
    with pytest.raises(sqlite3.OperationalError) as error:
        remote._answer(fail())
    said = str(explained(error.value, ""))
    assert said == f"{remote.url} closed the connection in the middle of a call"
    assert is_lost(error.value) and database.moved()
    database.close()


def test_its_place_opens_it_again(postgres: Cluster) -> None:
    database = open_target(new_server_store(postgres), write=True)
    again = open_database(database.path, write=False)
    assert again.name == database.name and not Path(database.path).exists()
    again.close()
    database.close()


def test_a_verb_waits_for_no_recorder_of_another_session(url: str) -> None:
    recording, verbs = open_target(url, write=True), open_target(url, write=True)
    recorded, other = Talk(verbs).session(), Talk(verbs).session()
    begun, done = threading.Event(), threading.Event()

    def hold(db: Database) -> None:
        log_change(db, recorded, None, 1)
        begun.set()
        assert done.wait(30)

    batch = OfSession(recorded, hold)
    recorder = threading.Thread(target=in_transaction, args=(recording, batch))
    recorder.start()
    assert begun.wait(30)
    assert in_transaction(verbs, archive, [other], now=1) == [other]
    with pytest.raises(sqlite3.OperationalError) as refused:
        verbs.connection.begin_beside_others(None)  # type: ignore[attr-defined]
        verbs.connection.script("SET LOCAL lock_timeout = '1ms'")  # type: ignore[attr-defined]
        require_session(verbs, recorded)
    assert is_busy(refused.value)
    verbs.connection.execute("ROLLBACK")
    waiting = threading.Thread(target=in_transaction, args=(verbs, archive, [recorded]),
                               kwargs={"now": 2})
    waiting.start()
    done.set()
    recorder.join()
    waiting.join()
    told = changes.since(verbs, 0)[1].sessions
    assert told.keys() >= {recorded, other}
    recording.close()
    verbs.close()


def test_who_holds_the_lock_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holding, verbs = open_target(url, write=True), open_target(url, write=True)
    session = Talk(verbs).session()
    holding.connection.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(connection, "_BEGIN", connection._BEGIN.replace("'5s'", "'1ms'", 1))
    with pytest.raises(sqlite3.OperationalError) as refused:
        in_transaction(verbs, archive, [session], now=1)
    assert is_busy(refused.value)
    assert getattr(refused.value, "holder", None) == "backscroll of postgres"
    assert "is locked by backscroll of postgres; wait until it is done" in str(
        for_user(refused.value, verbs.path))
    holding.connection.execute("ROLLBACK")
    assert in_transaction(verbs, archive, [session], now=1) == [session]
    holding.close()
    verbs.close()


def test_recorders_of_several_sessions_lose_nothing(url: str) -> None:
    count, rounds = 4, 12
    stores = [open_target(url, write=True) for _ in range(count)]
    recorded = [Talk(db).session() for db in stores]
    reader = open_target(url)
    before = changes.newest(reader)

    def write(number: int) -> None:
        db, session_id = stores[number], recorded[number]
        for at in range(rounds):
            log(db, session_id, at, f"msg_{number}_{at}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    # Who follows meanwhile is told of all, in whatever order they are committed.
    seen: set[str] = set()
    while len(seen) < count * rounds:
        before, moved = changes.since(reader, before)
        seen |= {each for one in recorded for each in moved.sessions.get(one) or ()}
    for thread in threads:
        thread.join()
    assert seen == {f"msg_{number}_{at}" for number in range(count) for at in range(rounds)}
    for db in (reader, *stores):
        db.close()


def test_a_recorder_goes_on_beside_undo_and_a_copy(postgres: Cluster) -> None:
    """They hold the lock of what they change, where they held that of all writers."""
    url = new_server_store(postgres)
    db, other = open_target(url, write=True), open_target(url, write=True)
    mine, copied = Talk(db).session("Mine"), Talk(db).session("Copied")
    recording, message = record(other, [{"type": "start"}, {"type": "text-start", "id": "t"}],
                                session=mine)
    assert is_beside_others(undo) and is_beside_others(redo)

    def locks() -> set[str]:
        return {row[0] for row in other.connection.execute(
            "SELECT mode FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE locktype = 'advisory' AND datname = current_database()"
            f" AND objid = {_WRITERS}").fetchall()}

    with transaction(db.connection, begin=db.beginning_beside_recorders()):
        db.lock_session(copied)
        # What has all of the lock, such as a migration, would wait for this here.
        assert locks() == {"ShareLock"}
        feed(other, recording, [{"type": "text-delta", "id": "t", "delta": "on"}])
        drive(other, recording.save())
    assert stored(other, message)["parts"][0]["text"] == "on"
    in_transaction(db, archive, [copied], now=1)
    for step, count in ((undo, 0), (redo, 1)):
        in_transaction(db, step, now=2)
        assert len(other.connection.execute(
            "SELECT 1 FROM chat_sessions WHERE archived_at IS NOT NULL").fetchall()) == count
    in_transaction(db, delete, copied, now=3)
    for step, count in ((undo, 2), (redo, 1)):
        in_transaction(db, step, now=4)
        assert len(other.connection.execute("SELECT 1 FROM chat_sessions").fetchall()) == count
    drive(other, recording.close())
    for each in (db, other):
        each.close()


def test_columns_come_and_go_behind_an_open_store(postgres: Cluster) -> None:
    """Another program may add some; what they hold goes with a session, and comes back with it."""
    url = new_server_store(postgres)
    db, other = open_target(url, write=True), open_target(url, write=True)
    server, ids, talk = postgres.database_of(url), IdMinter(), Talk(db)

    def work(session: str) -> None:
        recording, message = record(other, [{"type": "start"}, {"type": "text-start", "id": "t"}],
                                    session=session)
        feed(other, recording, [{"type": "text-delta", "id": "t", "delta": "on"},
                                {"type": "text-end", "id": "t"}, {"type": "finish"}])
        drive(other, recording.close())
        assert stored(other, message)["parts"][0]["text"] == "on"
        assert windows.window_at_end(db, session).messages[-1].id == message
        in_transaction(db, rename, session, "New", now=1)
        now = talk.now + 10**9
        forked = in_transaction(db, fork, session, message, ids=ids, now=now)
        in_transaction(db, undo, now=now)
        in_transaction(db, redo, now=now)
        assert {row.id for row in sessions.page(db, sessions.SessionFilter(), limit=-1)} >= {
            session, forked.session_id}
        in_transaction(db, delete, session, now=now)
        assert sessions.get(db, session) is None
        in_transaction(db, undo, now=now)
        row = sessions.get(other, session)
        assert row is not None and row.title == "New"

    work(talk.session())
    for change in ("ADD extra text DEFAULT 'x'", "DROP extra"):
        for table in schema.REQUIRED_COLUMNS:
            server.execute(f"ALTER TABLE {table} {change}")
        session = talk.session()
        if "ADD" in change:
            server.execute("UPDATE chat_sessions SET extra = 'mine' WHERE id = $1", session)
        work(session)
        if "ADD" in change:
            assert server.rows("SELECT extra FROM chat_sessions WHERE id = $1", session) == [
                {"extra": "mine"}]
    for each in (db, other):
        each.close()


@pytest.mark.parametrize("form", ["own", "contract"])
def test_what_a_column_held_comes_back_in_the_type_that_it_has_now(
    postgres: Cluster, server_stores: ServerStores, form: Form
) -> None:
    with server_stores.lent(form) as url, closing(open_target(url, write=True)) as first:
        server, talk = postgres.database_of(url), Talk(first)
        sessions_made = [talk.session(), talk.session()]
        server.execute("ALTER TABLE chat_sessions ADD at timestamptz, ADD extra text")
        with closing(open_target(url, write=True)) as db:
            for session, extra in zip(sessions_made, ("7", "no number"), strict=True):
                server.execute("UPDATE chat_sessions SET at = '2026-01-02 03:04:05.006+00',"
                               " extra = $2 WHERE id = $1", session, extra)
                in_transaction(db, delete, session, now=talk.now)
            server.execute("ALTER TABLE chat_sessions ALTER extra TYPE integer USING 0")
            with pytest.raises(Refused, match="chat_sessions has another type now"):
                in_transaction(db, undo, now=talk.now)
            server.execute("ALTER TABLE chat_sessions ALTER extra TYPE text")
            in_transaction(db, undo, now=talk.now)
            server.execute("UPDATE chat_sessions SET extra = 1")
            server.execute(
                "ALTER TABLE chat_sessions ALTER extra TYPE integer USING CAST(extra AS integer)")
            in_transaction(db, undo, now=talk.now)
        assert server.rows("SELECT extra, CAST(at AT TIME ZONE 'UTC' AS text) AS at"
                           " FROM chat_sessions ORDER BY extra") == [
            {"extra": number, "at": "2026-01-02 03:04:05.006"} for number in (1, 7)]
        server.execute("ALTER TABLE chat_sessions DROP at, DROP extra")


@pytest.mark.parametrize("form", ["own", "contract"])
def test_columns_that_the_server_fills_in_are_forked_and_brought_back(
    postgres: Cluster, server_stores: ServerStores, form: Form
) -> None:
    with server_stores.lent(form) as url, closing(open_target(url, write=True)) as first:
        server, talk = postgres.database_of(url), Talk(first)
        session = talk.session()
        message = talk.message(session)
        server.execute("ALTER TABLE chat_sessions ADD words integer GENERATED ALWAYS AS"
                       " (length(agent)) STORED, ADD number integer GENERATED ALWAYS AS IDENTITY")
        before = server.rows("SELECT * FROM chat_sessions")
        with closing(open_target(url, write=True)) as db:
            in_transaction(db, delete, session, now=talk.now)
            in_transaction(db, undo, now=talk.now)
            assert server.rows("SELECT * FROM chat_sessions") == before
            in_transaction(db, fork, session, message, ids=talk.ids, now=talk.now)
            in_transaction(db, undo, now=talk.now)
            in_transaction(db, redo, now=talk.now)
            assert server.rows("SELECT number FROM chat_sessions ORDER BY number") == [
                {"number": 1}, {"number": 2}]
        server.execute("ALTER TABLE chat_sessions DROP words, DROP number")


@pytest.mark.parametrize("most_locked", [200, 0])
def test_deleting_waits_for_recorders_of_its_sessions_alone(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch, most_locked: int
) -> None:
    url = new_server_store(postgres)
    db, other = open_target(url, write=True), open_target(url, write=True)
    talk = Talk(db)
    mine, gone, kept, forked = (talk.session(name) for name in ("mine", "gone", "kept", "forked"))
    helper = talk.session(
        parent_id=gone, metadata_json='{"lineage": {"kind": "subagent"}}')
    db.connection.execute("UPDATE chat_sessions SET parent_id = ? WHERE id = ?", (gone, forked))
    monkeypatch.setattr(database, "_MOST_LOCKED", most_locked)
    monkeypatch.setattr(connection, "_BEGIN", connection._BEGIN.replace("5s", "100ms"))

    def recorder_of(session: str) -> AbstractContextManager[None]:
        return transaction(
            other.connection, begin=lambda: other.remote.begin_beside_others(session))

    family = (gone, helper, forked)
    for step, waits_for in (
        (lambda: in_transaction(db, delete, gone, now=1), family),
        (lambda: in_transaction(db, undo, now=2), family),
        (lambda: in_transaction(db, redo, now=3), family),
        (lambda: in_transaction(db, undo, now=4), family),
        (lambda: forget(db, [kept]), (kept,)),
        (lambda: forget(db, [gone]), family),
    ):
        for session in waits_for if most_locked else (mine,):
            with recorder_of(session), pytest.raises((sqlite3.OperationalError, StoreError)):
                step()
        with recorder_of(mine) if most_locked else nullcontext():
            step()
    assert {row[0] for row in db.connection.execute("SELECT id FROM chat_sessions")} == {
        mine, forked}
    for each in (db, other):
        each.close()
