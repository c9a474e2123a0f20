"""Views, columns and rows that a user may read only in part; TLS; failures of a named server."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.config import Config
from store.engine.server.words import reason
from store.errors import StoreError
from store.ids import derived_session_id
from store.sources.base.servers import connection
from store.sources.hub import HubSource
from store.sources.lionagi import LionagiSource
from store.sources.registry import all_sources
from store.sync import __main__ as watching
from store.sync import problems as kept
from store.sync.process import Server as ServerEvent
from store.sync.targets import classify
from tests.cli.conftest import Run, claude_home, home, run
from tests.sources import server_rows
from tests.sources.following import following
from tests.sources.postgres_server import Database, Server
from tests.sources.server_rows import drafts_of, url_of
from tests.sources.test_postgres_live import BUSY, PART, quick, text
from tui.live.syncing import server_words

__all__ = ["claude_home", "home", "quick", "run"]


@pytest.fixture
def reader(postgres: Server) -> Iterator[str]:
    """A user without any rights."""
    postgres.admin.execute("CREATE ROLE reader LOGIN")
    yield "reader"
    for (name,) in [tuple(row.values()) for row in postgres.admin.rows(
        "SELECT datname FROM pg_database WHERE datallowconn AND datname <> 'template1'"
    )]:  # fmt: skip
        Database(postgres, name).execute("DROP OWNED BY reader")
    postgres.admin.execute("DROP ROLE reader")


def as_reader(server: Database) -> str:
    return server.url.replace("postgres@", "reader@")


@pytest.mark.parametrize("server", ["hub", "lionagi"])
def test_views_are_read_like_tables(
    server: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    database: Database = request.getfixturevalue(f"{server}_server")
    source = HubSource() if server == "hub" else LionagiSource()
    expected, _ = drafts_of(source, url_of(database.url))
    tables = [row["relname"] for row in database.rows(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )]  # fmt: skip
    database.execute("CREATE SCHEMA team;" + ";".join(
        f"CREATE VIEW team.{name} AS SELECT * FROM public.{name}" for name in tables))  # fmt: skip
    url = url_of(f"{database.url}&schema=team")
    assert classify(url, all_sources())
    found, problems = drafts_of(source, url)
    assert problems == [] and found.keys() == expected.keys()
    for name, draft in expected.items():
        assert found[name].messages == draft.messages
    assert source.moved_on(url) == []
    if server == "hub":
        (unit,) = [one for one in source.units_on(url, []) if one.key == BUSY]
        followed = source.follow_on(url, unit)
        source.read_on(url, unit)
        database.execute(PART, "prt_0000b00000001", text("more"))
        assert [one.key for one in source.moved_on(url) or ()] == [BUSY]
        (draft,) = source.read_on(url, unit).sessions
        (whole,) = HubSource().read_on(url_of(database.url), unit).sessions
        assert draft.messages == whole.messages
        del followed


def test_columns_that_may_not_be_read_are_left_out(hub_server: Database, reader: str) -> None:
    expected, _ = drafts_of(HubSource(), url_of(hub_server.url))
    hub_server.execute(
        f"GRANT SELECT (id, title, status, parent_id, updated_at, data) ON sessions TO {reader};"
        f"GRANT SELECT (id, session_id, role, data, created_at) ON messages TO {reader};"
        f"GRANT SELECT (id, message_id, session_id, type, data, created_at) ON parts TO {reader}"
    )
    source, url = HubSource(), url_of(as_reader(hub_server))
    found, problems = drafts_of(source, url)
    assert problems == [] and found.keys() == expected.keys()
    for name, draft in expected.items():
        assert found[name].title == draft.title
        assert [one.source_id for one in found[name].messages] == [
            one.source_id for one in draft.messages]  # fmt: skip
    assert "slug" not in found[BUSY].metadata["backscroll"]
    hub_server.execute(PART, "prt_0000b00000001", text("more"))
    assert [one.key for one in source.moved_on(url) or ()] == [BUSY]


LOADED: dict[type[HubSource | LionagiSource], tuple[str, str]] = {
    HubSource: ("hub", "hub.db"), LionagiSource: ("lionagi", "state.db")}
SIDES = (
    "approvals.session_id", "run_tags.session_id", "session_signals.session_id",
    "session_controls.session_id", "status_transitions.entity_type", "projects.name",
    "message_types.lion_class")


def withhold(server: Database, reader: str, *columns: str) -> None:
    """Let a user read all tables but some columns of them, named with their tables."""
    server.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader}")
    for table, column in (one.split(".") for one in columns):
        left = server.rows(
            "SELECT string_agg(quote_ident(attname), ', ') AS names FROM pg_attribute WHERE"
            " attrelid = CAST(CAST($1 AS text) AS regclass) AND attnum > 0 AND attname <> $2",
            table, column)[0]["names"]  # fmt: skip
        server.execute(
            f"REVOKE ALL ON {table} FROM {reader}; GRANT SELECT ({left}) ON {table} TO {reader}")


@pytest.mark.parametrize(("kind", "columns"), [
    (HubSource, ("sessions.parent_id",)), (LionagiSource, SIDES)], ids=["hub", "lionagi"])
def test_a_column_that_names_other_rows_costs_these_alone(
    postgres: Server, reader: str, kind: type[HubSource | LionagiSource],
    columns: tuple[str, ...],
) -> None:
    server = postgres.loaded(*LOADED[kind])
    expected, _ = drafts_of(kind(), url_of(server.url))
    withhold(server, reader, *columns)
    found, problems = drafts_of(kind(), url_of(as_reader(server)))
    assert problems == [] and found.keys() == expected.keys()
    asked = {name: [one.source_id for one in draft.messages if one.role == "user"]
             for name, draft in expected.items()}  # fmt: skip
    assert asked == {name: [one.source_id for one in draft.messages if one.role == "user"]
                     for name, draft in found.items()}  # fmt: skip


@pytest.mark.parametrize(("kind", "column"), [
    (HubSource, "sessions.id"), (HubSource, "messages.session_id"), (HubSource, "parts.id"),
    (LionagiSource, "branches.id"), (LionagiSource, "progressions.collection")])
@pytest.mark.one_in(3)
def test_a_column_without_which_nothing_is_told_is_named(
    postgres: Server, reader: str, kind: type[HubSource | LionagiSource], column: str
) -> None:
    server = postgres.loaded(*LOADED[kind])
    withhold(server, reader, column)
    found, problems = drafts_of(kind(), url_of(as_reader(server)))
    table, _, name = column.partition(".")
    assert found == {}
    assert [one.reason for one in problems] == [
        f"may not be read by this user: no SELECT on {name} of the table {table}"]


def test_rows_that_are_hidden_are_no_damage(hub_server: Database, reader: str) -> None:
    hub_server.execute(
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader};"
        "ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;"
        f"CREATE POLICY one ON sessions FOR SELECT TO {reader} USING (id = '{BUSY}')"
    )
    found, problems = drafts_of(HubSource(), url_of(as_reader(hub_server)))
    assert (set(found), problems) == ({BUSY}, [])


@pytest.mark.parametrize("table", ["messages", "branches", "progressions"])
def test_rows_of_lionagi_that_are_hidden_are_no_damage(
    lionagi_server: Database, reader: str, table: str
) -> None:
    whole, _ = drafts_of(LionagiSource(), url_of(lionagi_server.url))
    lionagi_server.execute(
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader};"
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;"
        f"CREATE POLICY half ON {table} FOR SELECT TO {reader} USING (id < '8')")
    found, problems = drafts_of(LionagiSource(), url_of(as_reader(lionagi_server)))
    assert problems == [] and found
    assert sum(len(one.messages) for one in found.values()) < sum(
        len(one.messages) for one in whole.values())


def test_the_schema_of_the_tables_is_named(hub_server: Database) -> None:
    hub_server.execute("ALTER SCHEMA public RENAME TO team; CREATE SCHEMA public")
    with pytest.raises(StoreError) as caught:
        classify(url_of(hub_server.url), all_sources())
    assert str(caught.value).endswith(
        "has no tables on its search path: the tables of hub are in the schema team;"
        " add schema=team to the URL to read it")  # fmt: skip
    hub_server.execute("CREATE ROLE no_usage LOGIN; REVOKE USAGE ON SCHEMA team FROM PUBLIC")
    unused = hub_server.url.replace("postgres@", "no_usage@") + "&schema=team"
    with pytest.raises(StoreError, match="in the schema team; this user may not use it .GRANT"):
        classify(url_of(unused), all_sources())
    hub_server.execute("CREATE TABLE other (id text)")
    with pytest.raises(StoreError, match="is no database of hub or lionagi: the tables of hub are"):
        classify(url_of(hub_server.url), all_sources())


def test_tls_that_does_not_fit() -> None:
    failed = ssl.SSLCertVerificationError(1, "[SSL] failed")
    failed.verify_code, failed.verify_message = 18, "self-signed certificate"
    assert reason(failed) == (
        "cannot be reached: its TLS certificate cannot be verified (self-signed certificate);"
        " sslrootcert names the authority to trust")  # fmt: skip
    assert "TLS failed" in reason(ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version"))
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def refuse() -> None:
            client, _ = plain.accept()
            with client:
                client.recv(8)
                client.sendall(b"N")

        thread = threading.Thread(target=refuse)
        thread.start()
        port = plain.getsockname()[1]
        with pytest.raises(StoreError, match="does not offer TLS, which sslmode asks for"):
            classify(url_of(f"postgresql://me@127.0.0.1:{port}/x?sslmode=require"), all_sources())
        thread.join()
    with pytest.raises(StoreError, match="sslmode.*must be one of"):
        classify(url_of("postgresql://me@127.0.0.1:1/x?sslmode=nonsense"), all_sources())


def test_a_named_server_that_fails_is_a_failure(
    run: Run, hub_server: Database, reader: str
) -> None:
    hub_server.execute(f"GRANT SELECT ON sessions, messages TO {reader}")
    done = run("sync", as_reader(hub_server))
    said = "may not be read by this user: permission denied for table parts"
    assert done.code == 1 and f"{url_of(as_reader(hub_server))} {said}" in done.err
    hub_server.execute(f"GRANT SELECT ON parts TO {reader}")
    done = run("sync", as_reader(hub_server) + "&nonsense=1")
    assert done.code == 0 and "parameter nonsense is not understood" in done.err


@pytest.mark.usefixtures("quick")
def test_a_watcher_that_starts_while_the_server_is_silent_reconnects(
    postgres: Server, hub_server: Database, tmp_path: Path
) -> None:
    url, path = url_of(hub_server.url), tmp_path / "s.db"
    library = server_rows.synced(HubSource(), url, path).database
    other = url_of(hub_server.guarded_url)
    server_rows.synced(HubSource(), other, path)
    options = watching._parser().parse_args(["--watch", "--store", str(path)])
    postgres.stop()
    try:
        options.roots = [other]
        assert watching._targets(options, Config())()[0].root == other
        options.roots = [url]
        (target,) = watching._targets(options, Config())()
        assert (target.source.kind, target.root) == ("hub", url)
        options.watch = False
        with pytest.raises(StoreError, match="cannot be reached"):
            watching._targets(options, Config())
        with following(path, target) as watcher:
            gone = watcher.until("server")
            assert (gone["server"], gone["reason"][:17]) == (str(url), "cannot be reached")
            postgres.start()
            while gone["reason"] is not None:
                gone = watcher.until("server")
            watcher.until("watching")
            hub_server.execute(PART, "prt_0000b00000001", text("it is back"))
            said = watcher.until("synced")
            assert said["session"] == derived_session_id("hub", BUSY)
    finally:
        postgres.start()
    assert kept.problems(library) == []
    library.close()


def test_a_server_that_is_silent_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_S", 0.05)
    monkeypatch.setattr(connection, "SILENT_S", 100.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = url_of(f"postgresql://me@127.0.0.1:{mute.getsockname()[1]}/x?sslmode=disable")
        servers = connection.Servers()
        for _ in range(2):
            with pytest.raises(StoreError, match="does not answer"):
                servers.moment(url)
        mute.setblocking(False)
        mute.accept()
        with pytest.raises(BlockingIOError):
            mute.accept()


def test_words_about_servers() -> None:
    assert server_words([]) == ""
    events = [ServerEvent("postgresql://me@db:1/hub?x=1", "is locked by another program: x", 2_000),
              ServerEvent("postgresql://b/c", "does not answer", 1_000)]  # fmt: skip
    assert server_words(events[:1]).startswith("db:1/hub is locked by another program since 1970-")
    assert server_words(events).startswith("b/c does not answer since 1970-")
    assert server_words(events).endswith(" (and 1 more)")
