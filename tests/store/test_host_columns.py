"""A host's database whose columns have other types than the contract's is read as if they had."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from store.copying.rows import parents_first, read_rows
from store.demo import make_demo
from store.engine.database import Database, in_transaction, open_database
from store.engine.opening import open_target
from store.engine.schema import CONTRACT_TABLES, REQUIRED_COLUMNS
from store.errors import Refused
from store.queries import lineage, list_keys, listing, sessions
from store.stats import families
from store.store import Store
from store.verbs.marks import rename
from store.watch import look
from tests.sources.postgres_server import Database as Server
from tests.sources.postgres_server import Server as Cluster
from tests.store.engines import fill_table, host_tables
from tests.store.test_both_engines import NOW, Pair, exports, of_list, of_pages, of_sessions

_TABLES = """
CREATE TABLE chat_sessions (id {id} PRIMARY KEY, agent {agent} NOT NULL, workspace_root text,
 model_json {json}, parent_id {id}, parent_message_id {id}, permissions_json {json},
 metadata_json {json}, prompt_tokens {number} DEFAULT 10, completion_tokens {number} DEFAULT 5,
 reasoning_tokens {number} DEFAULT 0, cache_read {number} DEFAULT 0,
 cache_write {number} DEFAULT 0, total_tokens {number} DEFAULT 15, cost_usd {cost} DEFAULT 0.25,
 created_at {time}, updated_at {time}, archived_at {time});
CREATE TABLE chat_messages (id {id} PRIMARY KEY, session_id {id}, role {role}, metadata_json {json},
 created_at {time}, updated_at {time});
CREATE TABLE chat_parts (id {id} PRIMARY KEY, message_id {id}, session_id {id}, "index" {number},
 type {kind}, data_json {json}, tool_call_id text, tool_state {state}, created_at {time},
 updated_at {time});
"""
_ENUMS = """
CREATE TYPE speaker AS ENUM ('user', 'assistant'); CREATE TYPE sort AS ENUM ('text', 'tool-Bash');
CREATE TYPE stage AS ENUM ('output-available'); CREATE TYPE who AS ENUM ('mine');
CREATE DOMAIN ident AS varchar(40); CREATE DOMAIN key AS ident CHECK (VALUE <> '');
CREATE DOMAIN doc AS jsonb; CREATE DOMAIN moment AS timestamptz;
"""
_ROWS = """
INSERT INTO chat_sessions (id, agent, model_json, parent_id, parent_message_id, permissions_json,
 metadata_json, created_at, updated_at) VALUES
 ({1}, 'mine', '{{"model_id": "m"}}', NULL, NULL, '[]', '{{"title": "First"}}', {t1}, {t3}),
 ({2}, 'mine', '{{"model_id": "m"}}', {1}, {11}, '[]', '{{"title": "Second"}}', {t2}, {t4});
INSERT INTO chat_messages VALUES ({11}, {1}, 'user', '{{}}', {t1}, {t1}),
 ({12}, {1}, 'assistant', '{{"usage": {{"input": 10, "output": 5}}}}', {t2}, {t2}),
 ({21}, {2}, 'user', '{{}}', {t2}, {t2});
INSERT INTO chat_parts VALUES
 ({111}, {11}, {1}, 0, 'text', '{{"text": "A zebra?", "type": "text"}}', NULL, NULL, {t1}, {t1}),
 ({121}, {12}, {1}, 0, 'tool-Bash', '{{"type": "tool-Bash", "output": "zebras"}}', 'c',
  'output-available', {t2}, {t2}),
 ({211}, {21}, {2}, 0, 'text', '{{"text": "No more", "type": "text"}}', NULL, NULL, {t2}, {t2});
"""
_TIMES = {"t1": 1_795_000_000_250, "t2": 1_795_000_001_000, "t3": 1_795_000_002_000,
          "t4": 1_795_000_003_000}  # fmt: skip
_CONTRACT = {
    "id": "text", "agent": "text", "json": "jsonb", "number": "bigint", "cost": "float8",
    "time": "bigint", "role": "text", "kind": "text", "state": "text",
}  # fmt: skip


class Kind(NamedTuple):
    """Types of a host's columns, how its ids and times are written, and if verbs can write."""

    types: dict[str, str]
    id: str = "'{}'"
    time: str = "{}"
    writable: bool = False


_ZONED = "to_timestamp({} / 1000.0)"
KINDS = {
    "uuid": Kind({"id": "uuid"}, "CAST(lpad('{}', 32, '0') AS uuid)"),
    "bigint": Kind({"id": "bigint"}, "{}"),
    "numeric": Kind({"id": "numeric(30)"}, "{}0000000000000000000000"),
    "char": Kind({"id": "char(20)", "role": "char(12)", "kind": "char(20)"}),
    "timestamptz": Kind({"time": "timestamptz"}, time=_ZONED),
    "timestamp": Kind({"time": "timestamp"}, time=f"({_ZONED} AT TIME ZONE 'UTC')"),
    "times as numbers": Kind({"time": "numeric(20, 3)"}, writable=True),
    "times with a fraction": Kind({"time": "float8", "number": "float8"}, writable=True),
    "times as digits": Kind({"time": "text"}, time="'{}'"),
    "times in words": Kind({"time": "text"}, time=(
        f"to_char({_ZONED} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MSZ')")),
    "numbers": Kind({"number": "numeric", "cost": "numeric(12, 6)"}, writable=True),
    "money": Kind({"number": "smallint", "cost": "money"}, writable=True),
    "enums": Kind({"agent": "who", "role": "speaker", "kind": "sort", "state": "stage"}),
    "domains": Kind({"id": "key", "json": "doc", "time": "moment"}, time=_ZONED),
}  # fmt: skip


def host(postgres: Cluster, kind: Kind) -> Server:
    """Return a host's database with columns of other types."""
    server = postgres.database()
    ids = {number: kind.id.format(number) for number in (1, 2, 11, 12, 21, 111, 121, 211)}
    times = {name: kind.time.format(at) for name, at in _TIMES.items()}
    listed = [ids.get(number, "") for number in range(max(ids) + 1)]
    server.execute(_ENUMS + _TABLES.format(**{**_CONTRACT, **kind.types}))
    server.execute(_ROWS.format(*listed, **times))
    return server


def listed(db: Database) -> list[listing.ListRow]:
    """Return the rows of the list."""
    keys = list_keys.first_keys(db, listing.ListQuery(), 10)
    assert keys is not None
    return list(listing.rows_of(db, keys.rowids).values())


async def told(url: str, ids: list[str]) -> tuple[list[Any], list[tuple[str, str | None]]]:
    """Return what a host is told of sessions, and of hits of a search."""
    async with await Store.open(url) as store:
        said = [await store.messages(one) for one in ids]
        return said, [(hit.session_id, hit.message_id) for hit in await store.search("zebra")]


@pytest.mark.parametrize("name", [
    "uuid", "enums", "timestamptz", "numbers",
    *(pytest.param(name, marks=pytest.mark.long) for name in KINDS
      if name not in ("uuid", "enums", "timestamptz", "numbers"))])  # fmt: skip
def test_columns_of_other_types_are_read_as_the_contracts(postgres: Cluster, name: str) -> None:
    kind = KINDS[name]
    odd = host(postgres, kind)
    cast = kind._replace(types={}, id=f"CAST({kind.id} AS text)", time="{}")
    plain = host(postgres, cast)
    before = odd.contents()
    with closing(open_target(odd.url, write=True)) as db, closing(open_target(plain.url)) as same:
        ids = parents_first(same)
        assert parents_first(db) == ids and len(ids) == 2
        for one in ids:
            rows = read_rows(db, one)
            assert rows is not None and rows == read_rows(same, one) and rows.count > 1
        assert sessions.page(db, sessions.SessionFilter()) == sessions.page(
            same, sessions.SessionFilter())
        assert listed(db) == listed(same) and len(listed(db)) == 2
        below, below_same = (families.family(one, ids[0]) for one in (db, same))
        assert below is not None and below == below_same and len(below.members) == 2
        if kind.writable:
            assert db.read_only is None
        else:
            assert db.read_only is not None and "other types than" in db.read_only
            with pytest.raises(Refused, match="other types than the contract's \\(chat_"):
                in_transaction(db, rename, ids[0], "Named", now=9)
    said, hits = asyncio.run(told(odd.url, ids))
    assert len(hits) == 2 and (said, hits) == asyncio.run(told(plain.url, ids))
    assert odd.contents() == before


@pytest.mark.parametrize("name", ["bigint", "char"])
def test_a_watch_names_ids_of_other_types_as_all_else_does(postgres: Cluster, name: str) -> None:
    server = host(postgres, KINDS[name])
    with closing(open_target(server.url)) as db:
        before, _ = look(db, None)
        server.execute("UPDATE chat_parts SET type = type WHERE id IN ('121', '211')")
        _, moved = look(db, before)
        assert moved.sessions == {"1": {"12"}, "2": {"21"}}


def test_a_value_without_a_meaning_costs_itself(postgres: Cluster) -> None:
    server = host(postgres, Kind({"time": "timestamptz", "number": "numeric"}, time=_ZONED))
    server.execute(
        "ALTER TABLE chat_sessions ADD seen date DEFAULT 'infinity', ADD span tstzrange DEFAULT"
        " '[-infinity,2026-01-01)', ADD times timestamptz[] DEFAULT '{4713-01-01 BC}';"
        " UPDATE chat_sessions SET created_at = '-infinity', updated_at = 'infinity',"
        " cost_usd = 'NaN', total_tokens = 1e40, prompt_tokens = 'NaN' WHERE id = '2';"
        " UPDATE chat_messages SET created_at = '0044-03-15 BC' WHERE id = '21'")
    with closing(open_target(server.url)) as db:
        rows = sessions.page(db, sessions.SessionFilter())
        assert [(row.id, row.updated_at, row.total_tokens) for row in rows] == [
            ("1", _TIMES["t3"], 15), ("2", 0, 0)]
        found = read_rows(db, "2")
        assert found is not None and found.session[8] == 0 and found.session[14] == 0.0
        ((*_, at, _),) = found.tables["chat_messages"]
        assert at == -63_517_824_000_000


_RETYPED = """
ALTER TABLE chat_sessions ALTER id TYPE char(40), ALTER agent TYPE name, ALTER parent_id TYPE ident,
 ALTER total_tokens TYPE numeric, ALTER cost_usd TYPE numeric USING cost_usd::text::numeric,
 ALTER metadata_json DROP DEFAULT, ALTER metadata_json TYPE json USING metadata_json::json;
ALTER TABLE chat_messages ALTER session_id TYPE char(40), ALTER role TYPE char(12);
ALTER TABLE chat_parts ALTER session_id TYPE key, ALTER type TYPE char(60),
 ALTER "index" TYPE float8, ALTER tool_state TYPE stage USING tool_state::stage;
DO $do$ DECLARE t text; c text; BEGIN
 FOREACH t IN ARRAY ARRAY['chat_sessions', 'chat_messages', 'chat_parts'] LOOP
  FOREACH c IN ARRAY ARRAY['created_at', 'updated_at'] LOOP
   EXECUTE format('ALTER TABLE %I ALTER %I TYPE timestamptz USING to_timestamp(%I / 1000.0)',
    t, c, c);
  END LOOP; END LOOP; END $do$;
ALTER TABLE chat_sessions ALTER archived_at TYPE moment USING to_timestamp(archived_at / 1000.0);
"""


@pytest.mark.long
def test_all_that_is_asked_of_a_store_is_asked_of_columns_of_other_types(
    postgres: Cluster, tmp_path: Path
) -> None:
    library, path = make_demo(tmp_path / "demo.db", lambda: NOW), tmp_path / "host.db"
    server = postgres.database()
    server.execute(_ENUMS.replace("('output-available')", "('output-available', 'input-available',"
                                  " 'input-streaming', 'output-error', 'approval-requested',"
                                  " 'output-denied', 'approval-responded')"))
    with closing(sqlite3.connect(path)) as file, closing(open_database(library)) as demo:
        file.executescript(CONTRACT_TABLES)
        server.execute(host_tables("text"))
        with closing(open_target(server.url, write=True)) as plain:
            for table in REQUIRED_COLUMNS:
                fill_table(file, demo, table)
                fill_table(plain.connection, demo, table)
        file.commit()
    server.execute(_RETYPED)
    with closing(open_database(path, write=False)) as file_, closing(open_target(server.url)) as db:
        pair = Pair(file_, db)
        of_list(pair)
        of_pages(pair)
        of_sessions(pair, pair.ids[:4])
        exports(pair, pair.ids[1:3])
        parent = next(one for one in pair.ids if lineage.has_children(file_, one))
        found = families.family(db, parent)
        assert found is not None and len(found.members) > 1
        same = families.family(file_, parent)
        assert same is not None and found.members == same.members
