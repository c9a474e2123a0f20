"""Databases on servers as places: two spellings are one, a copy with the same ids is another."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from store.engine.database import Database as Library
from store.engine.server_url import ServerUrl, server_url
from store.ids import derived_session_id
from store.sources.base.servers.connection import Servers
from store.sources.hub import HubSource
from store.sync import server_places
from store.sync.engine import Sync, each_target_once
from store.sync.places import places
from store.sync.settings import Settings
from store.sync.targets import Target
from tests.sources.postgres_server import Database, Server
from tests.sources.server_rows import synced, url_of
from tests.sources.test_postgres_live import BUSY, PART, text


def spellings(server: Database) -> list[str]:
    folder = server.server.folder
    return [
        server.url, server.guarded_url, f"postgresql://postgres@/{server.name}?host={folder}/.",
        f"host={folder} user=postgres dbname={server.name} sslmode=disable",
        f"{server.url}&schema=public",
    ]  # fmt: skip


def paths(library: Library) -> dict[str, str]:
    return dict(library.connection.execute(
        "SELECT id, json_extract(metadata_json, '$.source.path') FROM chat_sessions"))  # fmt: skip


def words(library: Library, session: str) -> set[str]:
    rows = library.connection.execute(
        "SELECT data_json FROM chat_parts WHERE session_id = ? AND type = 'text'", (session,))
    return {json.loads(body)["text"] for (body,) in rows}


def test_two_spellings_are_one_place(hub_server: Database, tmp_path: Path) -> None:
    urls = [url_of(name) for name in spellings(hub_server)]
    assert len(set(urls)) == len(urls)
    library = synced(HubSource(), urls[0], tmp_path / "s.db").database
    before = paths(library)
    for url in urls[1:]:
        again = synced(HubSource(), url, tmp_path / "s.db")
        assert (again.summary.read, again.changed) == (0, [])
    assert paths(library) == before and set(before.values()) == {str(urls[0])}
    source = HubSource()
    once = each_target_once(library, [Target(source, url) for url in urls])
    assert [str(one.root) for one in once] == [str(urls[0])]
    assert isinstance(once[0].root, ServerUrl) and once[0].root.dsn == urls[0].dsn
    shown = [one for one in places(library, os.environ, tmp_path) if one.kind == "hub"]
    assert [(one.path, one.files, one.sessions) for one in shown] == [(str(urls[0]), 5, 5)]


def test_a_copy_with_the_same_ids_overwrites_nothing(
    hub_server: Database, postgres: Server, tmp_path: Path
) -> None:
    staging = postgres.database(template=hub_server.name)
    hub_server.execute(PART, "prt_0000b00000001", text("in production"))
    staging.execute(PART, "prt_0000b00000001", text("in staging"))
    store, source = tmp_path / "s.db", HubSource()
    targets = [Target(source, url_of(one.url)) for one in (hub_server, staging)]
    library = synced(source, url_of(hub_server.url), store).database
    name = derived_session_id("hub", BUSY)
    assert "in production" in words(library, name)
    for _ in range(2):
        Sync(library, Settings(helpers=0)).run(targets)
        found = [one for one in paths(library) if words(library, one) & {
            "in production", "in staging"}]  # fmt: skip
        assert len(found) == 2 and name in found
        assert [words(library, one) & {"in production", "in staging"} for one in sorted(
            found, key=lambda one: "in staging" in words(library, one))] == [
            {"in production"}, {"in staging"}]  # fmt: skip
        assert len(paths(library)) == 6
    again = Sync(library, Settings(helpers=0))
    again.run(targets)
    assert (again.summary.read, again.changed) == (0, [])
    hub_server.execute(PART, "prt_0000b00000002", text("more of production"))
    staging.execute(PART, "prt_0000b00000002", text("more of staging"))
    Sync(library, Settings(helpers=0)).run(targets)
    grown = {frozenset(words(library, one) & {"more of production", "more of staging"})
             for one in paths(library)}  # fmt: skip
    assert {frozenset({"more of production"}), frozenset({"more of staging"})} <= grown


def test_a_url_that_leads_to_another_database(
    hub_server: Database, postgres: Server, tmp_path: Path
) -> None:
    """As a tunnel on localhost may: what was read by it stays."""
    url, source = url_of(hub_server.url), HubSource()
    other, third = (postgres.database(template=hub_server.name) for _ in range(2))
    library = synced(source, url, tmp_path / "s.db").database
    hub_server.execute(PART, "prt_0000b00000001", text("in the first"))
    other.execute(PART, "prt_0000b00000001", text("in the second"))
    Sync(library, Settings(helpers=0)).run([Target(source, url)])
    leads = ServerUrl(url.text, url_of(other.url).dsn)
    place = server_places.known_place(library, HubSource(), leads)
    assert place.text.startswith(f"{url}#server=") and place.dsn == url_of(other.url).dsn
    read = server_url(place.text)
    assert read is not None and (read.text, read.fault) == (place.text, None)
    Sync(library, Settings(helpers=0)).run([Target(HubSource(), leads)])
    said = {one for name in paths(library) for one in words(library, name)}
    assert {"in the first", "in the second"} <= said
    leads = ServerUrl(url.text, url_of(third.url).dsn)
    more = server_places.known_place(library, HubSource(), leads)
    assert more.text not in (url.text, place.text)
    back = server_places.known_place(library, source, url)
    assert back.text == url.text


def test_a_library_of_before_keeps_its_sessions(hub_server: Database, tmp_path: Path) -> None:
    """Its roots are URLs that it knows no database of, also two of one."""
    urls = [url_of(name) for name in spellings(hub_server)[:2]]
    library = synced(HubSource(), urls[0], tmp_path / "s.db").database
    before = paths(library)
    for statement in (
        "DROP TABLE source_servers", "DROP TABLE shared_sessions", "DROP TABLE shared_libraries",
        "DROP TABLE recorder_leases", "DROP TABLE unit_news", "PRAGMA user_version = 6",
        "INSERT INTO source_units SELECT kind, '" + str(urls[1]) + "', key, session_id,"
        " stamp_json, synced_at FROM source_units",
    ):  # fmt: skip
        library.connection.execute(statement)
    library.close()
    for url in (urls[0], urls[1], urls[0]):
        again = synced(HubSource(), url, tmp_path / "s.db")
        assert (again.summary.read, again.changed) == (0, [])
        assert paths(again.database) == before
    roots = again.database.connection.execute("SELECT DISTINCT root FROM source_units").fetchall()
    assert roots == [(str(urls[0]),)]


def test_a_server_that_is_silent_is_what_it_was(
    hub_server: Database, postgres: Server, tmp_path: Path
) -> None:
    urls = [url_of(name) for name in spellings(hub_server)[:2]]
    library = synced(HubSource(), urls[0], tmp_path / "s.db").database
    synced(HubSource(), urls[1], tmp_path / "s.db")
    postgres.stop()
    try:
        place = server_places.known_place(library, HubSource(), urls[1])
        assert (str(place), place.named) == (str(urls[0]), str(urls[1]))
        assert server_places.known_place(library, HubSource(), url_of("postgresql:///x?host=/n")
                                         ).text == "postgresql:///x?host=/n"  # fmt: skip
        with pytest.raises(Exception, match="guarded"):
            HubSource()._servers.moment(place)
    finally:
        postgres.start()


def test_the_identity_of_a_database(hub_server: Database, postgres: Server) -> None:
    servers = Servers()
    found = {servers.identity(url_of(one), "sessions") for one in spellings(hub_server)}
    (identity,) = found
    cluster, database, schema = identity.split("/")
    assert cluster.isdecimal() and (database, schema) == (hub_server.name, "public")
    hub_server.execute(
        "CREATE ROLE plain LOGIN; REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC;"
        " GRANT SELECT ON ALL TABLES IN SCHEMA public TO plain"
    )
    url = url_of(hub_server.url.replace("postgres@", "plain@"))
    assert servers.identity(url, "sessions") == (
        f"{postgres.folder}:5432/{hub_server.name}/public")  # fmt: skip
    hub_server.execute("ALTER SCHEMA public RENAME TO team")
    url = url_of(f"{hub_server.url}&schema=team")
    assert servers.identity(url, "sessions") == f"{cluster}/{hub_server.name}/team"
    servers.close_all()
    hub_server.execute("DROP OWNED BY plain; DROP ROLE plain")
