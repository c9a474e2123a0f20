"""Values of a server that Python has no type for: each costs itself alone."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from store.sources.base.protocol import Reading
from store.sources.base.row_reader import bound_ids
from store.sources.base.servers import values
from store.sources.base.servers.connection import PostgresRows, Servers
from store.sources.hub import HubSource
from store.sources.lionagi import LionagiSource
from tests.sources import test_hub_expected
from tests.sources.postgres_server import DATA, Database, Server
from tests.sources.server_rows import drafts_of, url_of
from tests.sources.test_postgres_live import BUSY, LAST_MESSAGE, PART, text


@pytest.fixture(scope="module")
def reader_of_values(postgres: Server) -> Any:
    servers = Servers()
    with servers.reading(url_of(postgres.admin.url)) as reader:
        yield reader
    servers.close_all()


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("timestamptz '2026-01-02 03:04:05.1+02'", "2026-01-02T01:04:05.100Z"),
        ("timestamp '2026-01-02 03:04:05.123456'", "2026-01-02T03:04:05.123456Z"),
        ("timestamptz '2026-01-02 03:04:05+00'", "2026-01-02T03:04:05.000Z"),
        ("to_timestamp(1793603100000)", "58807-01-08 03:20:00+00"),
        ("timestamptz '0044-03-15 00:00:00+00 BC'", "0044-03-15 00:00:00+00 BC"),
        ("timestamptz 'infinity'", "infinity"),
        ("timestamp '-infinity'", "-infinity"),
        ("date '0044-03-15 BC'", "0044-03-15 BC"),
        ("date 'infinity'", "infinity"),
        ("time '24:00:00'", "24:00:00"),
        ("interval '178000000 years'", "178000000 years"),
        ("float8 'NaN'", "NaN"),
        ("float8 '-infinity'", "-Infinity"),
        ("float8 '0.1'", 0.1),
        ("float4 '0.1'", 0.1),
        ("numeric 'NaN'", "NaN"),
        ("numeric '12345678901234567890'", 12345678901234567890),
        ("numeric '1.50'", 1.5),
        ("CAST(10 AS numeric) ^ 400 + 0.5", None),
        ("CAST(10 AS numeric) ^ 6000", None),
        ("array['a', null]", '["a",null]'),
        ("array[timestamptz 'infinity']", '["infinity"]'),
        ("row(1, 'x')", '{"f1":1,"f2":"x"}'),
        ("int4range(1, 5)", "[1,5)"),
        ("CAST('\\x00ff' AS bytea)", b"\x00\xff"),
        ("true", True),
        ("CAST(NULL AS timestamptz)", None),
        ("json '{\"a\": 1e999}'", '{"a": 1e999}'),
        ("9223372036854775807", 9223372036854775807),
    ],
)  # fmt: skip
def test_a_value(sql: str, value: object, reader_of_values: PostgresRows) -> None:
    (row,) = reader_of_values.rows(f"SELECT {sql} AS found")
    if value is None and row["found"] is not None:
        assert isinstance(row["found"], str) and len(row["found"]) > 400
    else:
        assert row["found"] == value and type(row["found"]) is type(value)


@pytest.mark.parametrize("kind", ["text", "bigint", "uuid", "numeric"])
def test_ids_of_any_type_are_bound(kind: str, reader_of_values: PostgresRows) -> None:
    ids = [f"{number:032}" for number in range(4)] if kind == "uuid" else list("0123")
    listed = ", ".join(f"(CAST('{one}' AS {kind}))" for one in ids)
    rows = reader_of_values.rows(
        f"SELECT CAST(id AS text) AS id FROM (VALUES {listed}) AS ids(id)"
        f" WHERE id {reader_of_values.any_of(1)} AND id <> $2", bound_ids(ids[1:]), ids[3])
    assert [str(row["id"]).replace("-", "") for row in rows] == ids[1:3]


def test_text_that_is_not_utf8() -> None:
    fetched = values.Fetched([values.Column("a", "text", "scalar")], [[b"a\xff"], [b"b"]])
    assert fetched.rows() == [{"a": "a\ufffd"}, {"a": "b"}]


@pytest.mark.parametrize(("encoding", "letters", "title"), [
    ("SQL_ASCII", "61e962", "a\ufffdb"), ("SQL_ASCII", "c3a4", "ä"), ("LATIN1", "61e962", "aéb"),
    ("WIN1252", "8161e9", "\ufffdaé"), ("KOI8R", "c1", "а"),  # noqa: RUF001
    ("EUC_TW", "c4e3", "中"),
])  # fmt: skip
def test_a_text_of_another_encoding_costs_itself(
    encoding: str, letters: str, title: str, postgres: Server
) -> None:
    name = f"of_{encoding.lower()}_{letters}"
    postgres.admin.execute(
        f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    server = Database(postgres, name)
    server.execute((DATA / "hub" / "postgresql.sql").read_text())
    server.execute(
        "INSERT INTO projects(id, name) VALUES ('p', 'p'); INSERT INTO sessions(id, project_id,"
        f" slug, title) VALUES ('s', 'p', 's', convert_from('\\x{letters}', '{encoding}'));"
        "INSERT INTO messages(id, session_id, role, data) VALUES ('m', 's', 'user', '{}');"
        "INSERT INTO parts(id, message_id, session_id, type, data)"
        " VALUES ('x', 'm', 's', 'text', '{\"text\": \"hi\"}')")
    found, problems = drafts_of(HubSource(), url_of(server.url))
    assert (problems, found["s"].title, len(found["s"].messages)) == ([], title, 1)


ODD = (
    "UPDATE sessions SET updated_at = {0} WHERE id = '" + BUSY + "'",
    "UPDATE messages SET created_at = {0} WHERE id = '" + LAST_MESSAGE + "'",
    "UPDATE parts SET updated_at = {0} WHERE id = (SELECT min(id) FROM parts WHERE session_id = '"
    + BUSY + "')",
)  # fmt: skip


@pytest.mark.parametrize("value", [
    "to_timestamp(1793603100000)", "'0044-03-15 BC'", "'infinity'", "'-infinity'"])  # fmt: skip
def test_an_odd_time_costs_itself(value: str, hub_server: Database) -> None:
    before, _ = drafts_of(HubSource(), url_of(hub_server.url))
    source = HubSource()
    assert list(source.units_on(url_of(hub_server.url), []))
    for change in ODD:
        hub_server.execute(change.format(value))
    assert [unit.key for unit in source.moved_on(url_of(hub_server.url)) or ()] == [BUSY]
    found, problems = drafts_of(HubSource(), url_of(hub_server.url))
    assert (found.keys(), problems) == (before.keys(), [])
    assert len(found[BUSY].messages) == len(before[BUSY].messages)
    assert all(found[name] == before[name] for name in before if name != BUSY)
    assert sum(len(one.parts) for one in found[BUSY].messages) == sum(
        len(one.parts) for one in before[BUSY].messages)  # fmt: skip


def test_an_odd_enum_and_numbers_beyond_floats(hub_server: Database) -> None:
    hub_server.execute(
        "CREATE TYPE state AS ENUM ('idle', 'busy', 'archived', 'retry', 'päused \"now\"');"
        "DROP INDEX idx_sessions_active; ALTER TABLE sessions ALTER status DROP DEFAULT,"
        " ALTER status TYPE state USING CAST(status AS state);"
        f"UPDATE sessions SET status = 'päused \"now\"' WHERE id = '{BUSY}'"
    )
    huge = '{"text": "kept", "metadata": {"a": 1e400, "b": %s}}' % ("9" * 5000)
    hub_server.execute(PART, "prt_0000b00000001", huge)
    found, problems = drafts_of(HubSource(), url_of(hub_server.url))
    assert problems == [] and found.keys() == {one["id"] for one in test_hub_expected.EXPECTED}
    activity = found[BUSY].metadata["activity"]
    assert (activity["state"], activity["word"]) == ("unknown", 'päused "now"')
    texts = [part.data.get("text") for one in found[BUSY].messages for part in one.parts]
    assert "kept" in texts


def test_lionagis_times_that_are_no_numbers(lionagi_server: Database) -> None:
    before, _ = drafts_of(LionagiSource(), url_of(lionagi_server.url))
    lionagi_server.execute(
        "UPDATE messages SET created_at = 'NaN' WHERE id = (SELECT min(id) FROM messages);"
        "UPDATE sessions SET updated_at = 'infinity', total_cost_usd = 'NaN';"
        "UPDATE branches SET started_at = '-infinity', created_at = 'NaN'"
    )
    found, problems = drafts_of(LionagiSource(), url_of(lionagi_server.url))
    assert (found.keys(), problems) == (before.keys(), [])
    assert {name: len(one.messages) for name, one in found.items()} == {
        name: len(one.messages) for name, one in before.items()}  # fmt: skip


STATES = (
    "SELECT state FROM pg_stat_activity WHERE application_name = 'backscroll'"
    " AND datname = current_database()"
)


@pytest.mark.parametrize("server", ["hub", "lionagi"])
def test_no_transaction_is_open_while_values_are_decoded(
    server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    database: Database = request.getfixturevalue(f"{server}_server")
    source: Any = HubSource() if server == "hub" else LionagiSource()
    url, seen = url_of(database.url), list[str]()
    (unit, *_) = source.units_on(url, [])
    decode = values.Fetched.rows

    def slow(fetched: values.Fetched) -> list[dict[str, Any]]:
        if len(fetched.records) > 2 and any(one.name == "data" for one in fetched.columns):
            seen.extend(row["state"] for row in database.rows(STATES))
        return decode(fetched)

    monkeypatch.setattr(values.Fetched, "rows", slow)
    convert, stamps = MADE[server]
    for made in (convert, stamps):
        monkeypatch.setattr(made, _watched(made, lambda: seen.extend(
            row["state"] for row in database.rows(STATES)
        )))  # fmt: skip
    reading: Reading = source.read_on(url, unit)
    assert reading.sessions and seen and set(seen) == {"idle"}
    seen.clear()
    assert list(source.units_on(url, []))
    assert seen and set(seen) == {"idle"}


MADE = {
    "hub": ("store.sources.hub.source.session_draft", "store.sources.hub.source.stamp_of_rows"),
    "lionagi": ("store.sources.lionagi.source.session_drafts",
                "store.sources.lionagi.listing.stamp_of_rows"),
}  # fmt: skip
"""What is called for each session, and for each unit, as rows are converted."""


def _watched(name: str, watch: Callable[[], None]) -> Callable[..., Any]:
    module, _, function = name.rpartition(".")
    called = getattr(import_module(module), function)

    def watched(*given: Any, **more: Any) -> Any:
        watch()
        return called(*given, **more)

    return watched


def test_a_change_of_the_tables_waits_for_no_decoding(
    hub_server: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, url = HubSource(), url_of(hub_server.url)
    (unit, *_) = source.units_on(url, [])
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(60)

    name = MADE["hub"][0]
    monkeypatch.setattr(name, _watched(name, wait))

    async def alter() -> Reading:
        reading = asyncio.ensure_future(asyncio.to_thread(source.read_on, url, unit))
        await asyncio.to_thread(begun.wait, 60)
        await asyncio.to_thread(hub_server.execute, "ALTER TABLE parts ADD more text")
        go_on.set()
        return await reading

    assert len(asyncio.run(alter()).sessions) == 1


class Listened:
    """Counts the rows that are decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        decode = values.Fetched.rows

        def counted(fetched: values.Fetched) -> list[dict[str, Any]]:
            self.rows += len(fetched.records)
            return decode(fetched)

        monkeypatch.setattr(values.Fetched, "rows", counted)


GROWTH = [
    (PART, ("prt_0000b00000001", text("more"))),
    (f"UPDATE parts SET data = '{text('other')}' WHERE id = (SELECT min(id) FROM parts"
     f" WHERE session_id = '{BUSY}' AND type = 'text')", ()),
    (f"DELETE FROM parts WHERE id = (SELECT max(id) FROM parts WHERE session_id = '{BUSY}')", ()),
    (f"UPDATE messages SET data = data || '{{\"finish\": \"stop\"}}' WHERE id = '{LAST_MESSAGE}'",
     ()),
    ("INSERT INTO messages(id, session_id, role, data, created_at) VALUES ('msg_0', "
     f"'{BUSY}', 'user', '{{}}', '2025-01-01')", ()),
    (f"UPDATE parts SET message_id = 'msg_0' WHERE id = (SELECT min(id) FROM parts"
     f" WHERE session_id = '{BUSY}')", ()),
    (f"UPDATE parts SET message_id = '{LAST_MESSAGE}' WHERE message_id = 'msg_0'", ()),
    ("SET session_replication_role = replica; UPDATE parts SET message_id = 'none' WHERE id IN"
     f" (SELECT id FROM parts WHERE session_id = '{BUSY}' AND type = 'text' ORDER BY id LIMIT 2)",
     ()),
    (f"UPDATE parts SET message_id = '{LAST_MESSAGE}' WHERE id ="
     " (SELECT max(id) FROM parts WHERE message_id = 'none')", ()),
    (f"UPDATE parts SET type = 'compaction' WHERE id = (SELECT min(id) FROM parts"
     f" WHERE session_id = '{BUSY}' AND message_id <> 'none')", ()),
    (f"UPDATE messages SET data = '[]' WHERE id = '{LAST_MESSAGE}'", ()),
    (f"UPDATE messages SET data = '{{}}' WHERE id = '{LAST_MESSAGE}'", ()),
    (f"UPDATE sessions SET title = 'New' WHERE id = '{BUSY}'", ()),
    (f"UPDATE parts SET session_id = (SELECT min(id) FROM sessions WHERE id <> '{BUSY}')"
     f" WHERE id = (SELECT max(id) FROM parts WHERE session_id = '{BUSY}')", ()),
]  # fmt: skip


def test_a_growing_session_is_fetched_by_what_was_added(
    hub_server: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub_server.execute(
        "INSERT INTO parts(id, message_id, session_id, type, data) SELECT 'prt_0000a' || n,"
        f" '{LAST_MESSAGE}', '{BUSY}', 'text', '{{\"text\": \"x\"}}' FROM generate_series(1, 300) n"
    )
    source, url = HubSource(), url_of(hub_server.url)
    (unit,) = [one for one in source.units_on(url, []) if one.key == BUSY]
    kept = source.follow_on(url, unit)
    assert source.read_on(url, unit).sessions
    for sql, bound in GROWTH:
        hub_server.execute(sql, *bound)
        whole = HubSource().read_on(url, unit)
        with monkeypatch.context() as patch:
            listened = Listened(patch)
            grown = source.read_on(url, unit)
        assert (grown.sessions, grown.problems) == (whole.sessions, whole.problems)
        assert (listened.rows < 150) is ("DELETE" not in sql), sql
    del kept
    with monkeypatch.context() as patch:
        listened = Listened(patch)
        source.read_on(url, unit)
    assert listened.rows > 300


def test_lionagis_messages_that_are_the_same_are_not_fetched(
    lionagi_server: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, url = LionagiSource(), url_of(lionagi_server.url)
    asked, later = list[str](), PostgresRows.later

    def noted(reader: PostgresRows, sql: str, *bound: Any) -> Any:
        if '"content"' in sql:
            asked.append(bound[0])
        return later(reader, sql, *bound)

    monkeypatch.setattr(PostgresRows, "later", noted)
    for unit in source.units_on(url, []):
        kept = source.follow_on(url, unit)
        source.read_on(url, unit)
        lionagi_server.execute(
            "UPDATE messages SET content = CAST(jsonb_set(CAST(content AS jsonb), '{more}', '1')"
            " AS json) WHERE id = (SELECT min(id) FROM messages)"
        )
        whole = LionagiSource().read_on(url, unit)
        asked.clear()
        grown = source.read_on(url, unit)
        assert (grown.sessions, grown.problems) == (whole.sessions, whole.problems)
        assert all(len(json.loads(names)) <= 1 for names in asked)
        del kept
