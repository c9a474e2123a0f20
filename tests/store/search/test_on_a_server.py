"""A search on PostgreSQL finds what one in a file finds, in the same order."""

from __future__ import annotations

import json
import os
import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import pytest

from store.engine.connection import Parameters
from store.engine.database import Database, open_database
from store.engine.opening import open_target
from store.engine.server.connection import ServerConnection, ServerCursor
from store.engine.server.searched import (
    HAS_ICU,
    NEWEST_INDEX,
    WORDS_INDEX,
    folded,
    grows,
    indexes_of,
    make_indexes,
    odd,
    pieces,
    trigrams,
    unindexed,
)
from store.language.folding import fold
from store.language.query import parse
from store.search import on_server, running
from store.search.conditions import conditions_of
from store.search.hits import Order, SessionHits
from store.search.running import Request, Run, sessions_with_hits
from store.search.searching import Searcher
from store.search.verifying import Verifier, WantedSessions
from store.store import Store
from store.system.records import replaced
from tests.bench.partitions import partition
from tests.sources.postgres_server import REQUIRED, Server
from tests.store.engines import fill, new_server_store
from tests.store.search import naive
from tests.store.search.test_searching import asked, keys, last
from tests.store.talks import Talk

HOSTILE = (
    "%", "_", "100%", "re_ry", "\\", "c\\d", "'", "a'b", '"a""b"', "a\0b", "\ud800", "?", "$1",
    "x" * 10_000, "re:/retry.*loop/", "re:/(a+)+$/", "-retry loop", "\u200bretry", "ｒｅｔｒｙ",
    "file:worker.py", "after:1970 before:2090 x", "before:1960 x", "ı", "ΣΑΣ", "한", "ﬁle",
)
SEEDS = {"index": 0, "windows": 1, "none": 3}
KINDS = tuple(SEEDS)
"""What a server has for searches: an index of words, of the newest messages alone, or neither."""


class Both(NamedTuple):
    """Two stores with the same rows."""

    path: Path
    file: Database
    server: Database


@pytest.fixture(scope="module", params=KINDS)
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres: Server
) -> Iterator[Both]:
    kind = request.param
    path = naive.fill(tmp_path_factory.mktemp("search") / "store.db", SEEDS[kind])
    if kind != "none":
        without_escapes(path)
    file = open_database(path, write=False)
    url = new_server_store(postgres)
    writing = open_target(url, write=True)
    fill(writing, file)
    if kind != "index":
        writing.connection.execute(f"DROP INDEX IF EXISTS {WORDS_INDEX}")
    if kind == "none":
        writing.connection.execute(f"DROP INDEX {NEWEST_INDEX}")
    writing.close()
    server = open_target(url)
    there = indexes_of(cast(ServerConnection, server.connection))
    # Builds for one program's tests, such as the package's, may have neither ICU nor pg_trgm.
    (folds, words), = server.connection.execute(
        f"SELECT {HAS_ICU}, EXISTS (SELECT 1 FROM pg_available_extensions"
        " WHERE name = 'pg_trgm')").fetchall()
    assert (folds and words) or not os.environ.get(REQUIRED)
    assert (there.folds, there.words, there.newest) == (
        folds, folds and words and kind == "index", kind != "none")
    yield Both(path, file, server)
    server.close()
    file.close()


def without_escapes(path: Path) -> None:
    """Write the letters of half of the parts as they are."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT id, data_json FROM chat_parts WHERE rowid % 2").fetchall()
    connection.executemany(
        "UPDATE chat_parts SET data_json = ? WHERE id = ?",
        [(json.dumps(json.loads(data), ensure_ascii=False), name) for name, data in rows])
    connection.commit()
    connection.close()


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read few messages at once, so that the searches of few have all steps of one of many."""
    monkeypatch.setattr(on_server, "FEW_SESSIONS", 1)
    monkeypatch.setattr(on_server, "FIRST_WINDOW", 2)
    monkeypatch.setattr(on_server, "LARGEST_WINDOW", 3)


def without_number(found: SessionHits) -> SessionHits:
    """Return what was found without the number that the engine gives a session."""
    return replace(found, row=replaced(found.row, rowid=0))


@pytest.mark.one_in(3)
def test_finds_what_a_naive_search_finds(both: Both) -> None:
    # Those in a file are asked all; here each third one.
    for one in islice(asked(1), None, None, 3):
        if not one.text:
            continue
        found = last(both.server, one.text, limit=1000)
        expected, archived = naive.search(both.path, one)
        assert keys(found.page.in_order) == expected, one
        assert found.counts.hits == len(expected), one
        assert found.counts.archived_hits == len(archived), one
        assert found.counts.whole


@pytest.mark.parametrize("order", ["newest", "best"])
@pytest.mark.parametrize("text", ["retry", "in:prompt,output", "tool:bash", "is:error", "期"])
def test_pages_counts_and_facets_are_those_of_a_file(both: Both, text: str, order: str) -> None:
    cursor: str | None = None
    for _ in range(100):
        wanted = {"order": order, "limit": 3, "cursor": cursor}
        in_server = last(both.server, text, **wanted)  # type: ignore[arg-type]
        in_file = last(both.file, text, **wanted)  # type: ignore[arg-type]
        assert in_server.page.cursor == in_file.page.cursor
        assert list(map(without_number, in_server.page.sessions)) == (
            list(map(without_number, in_file.page.sessions)))
        assert in_server.counts == in_file.counts
        assert in_server.facets == in_file.facets and in_server.days == in_file.days
        cursor = in_file.page.cursor
        if cursor is None:
            return
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize(
    "text", ["retry", "tool:bash", "-tool:bash", "is:error agent:claude", "期 loop", "nothing_so"])
def test_names_the_sessions_with_hits(both: Both, text: str) -> None:
    *_, in_server = filter(None, sessions_with_hits(both.server, parse(text, now=0)))
    *_, in_file = filter(None, sessions_with_hits(both.file, parse(text, now=0)))
    assert in_server == in_file


@pytest.mark.parametrize("last", [0x3100, pytest.param(0x110000, marks=pytest.mark.long)])
def test_a_server_folds_every_character_as_a_search_does(postgres: Server, last: int) -> None:
    every = [
        one for one in map(chr, range(1, last))
        if unicodedata.category(one) not in ("Cn", "Co", "Cs")
    ]
    with closing(open_target(new_server_store(postgres))) as server:
        if not indexes_of(server.remote).folds:
            pytest.skip("the server has no ICU")
        rows = server.connection.execute(
            f"SELECT one.value, {folded('one.value')}, {odd('one.value')}"
            f" FROM {server.sql.texts('?', 'one')}", [json.dumps(every)]).fetchall()
    assert len(rows) == len(every)
    assert sum(is_odd for *_, is_odd in rows) < 150
    for character, there, is_odd in rows:
        here = fold(character).replace("-", "").replace("_", "")
        known = pieces(here)
        if is_odd or (here and not known):
            continue
        whole = unicodedata.normalize("NFD", here)
        if "".join(known) == whole:
            # It may be in the middle of a word.
            assert there == whole, (character, there)
        else:
            assert all(piece in there for piece in known), (character, there)
            assert there.startswith(known[0]) or not whole.startswith(known[0])
            assert there.endswith(known[-1]) or not whole.endswith(known[-1])


def test_a_search_without_an_index_ends_in_time_and_says_so(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SLICE_S", 0.0)
    found = last(both.server, "nothing_like_it", scan_s=-1.0)
    there = indexes_of(cast(ServerConnection, both.server.connection))
    if there.words:
        assert found.coverage.why == "" and found.coverage.indexed
        return
    reason = "pg_trgm" if there.folds else "no word of the query can be looked up"
    assert reason in found.coverage.why and not found.counts.whole
    assert found.coverage.searched < found.coverage.total
    *_, sessions = filter(
        None, sessions_with_hits(both.server, parse("nothing_like_it", now=0), seconds=-1.0))
    assert sessions.why == found.coverage.why


@pytest.mark.parametrize("text", ["retry", "nothing_like_it"])
def test_hits_do_not_wait_for_a_count_of_the_store(
    both: Both, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    asked, execute = list[str](), ServerConnection.execute

    def noted(connection: ServerConnection, sql: str, values: Parameters = ()) -> ServerCursor:
        asked.append(sql)
        return execute(connection, sql, values)

    monkeypatch.setattr(ServerConnection, "execute", noted)
    # However slow the machine is: what takes long is counted between two updates.
    monkeypatch.setattr(running, "_BETWEEN_UPDATES_S", float("inf"))
    steps = Run(both.server, Request(parse(text, now=0)), None).steps()
    next(one for one in steps if one is not None and one.ready)
    assert not any(one.startswith("SELECT count(*) FROM chat_") for one in asked)
    *_, done = steps
    assert done is not None and done.coverage.searched == done.coverage.total > 0


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_are_found_as_in_a_file(both: Both, text: str) -> None:
    query = parse(text, now=0)
    for term in (query,) if query and not query.problems else ():
        in_server, in_file = (
            [one for one in Run(db, Request(term), None).steps() if one is not None][-1]
            for db in (both.server, both.file))
        assert keys(in_server.page.in_order) == keys(in_file.page.in_order)
        assert in_server.counts == in_file.counts


@pytest.mark.parametrize("order", ["newest", "best"])
async def test_a_searcher_pages_through_a_server(both: Both, order: Order) -> None:
    query, cursor = parse("retry", now=0), None
    async with (
        await Searcher.open(both.server.path) as there, await Searcher.open(both.path) as here
    ):
        for _ in range(100):
            found = await there.hits(query, order=order, limit=4, cursor=cursor)
            assert found == await here.hits(query, order=order, limit=4, cursor=cursor)
            cursor = found.cursor
            if cursor is None:
                return
    raise AssertionError("the pages do not end")


async def test_a_host_searches_a_server(both: Both) -> None:
    assert both.server.server is not None
    async with (
        await Store.open(both.server.server.dsn) as there, await Store.open(both.path) as here
    ):
        some = [await there.search(word, limit=5) for word in naive.WORDS[:8]]
        assert some == [await here.search(word, limit=5) for word in naive.WORDS[:8]]
        assert any(some)


def test_the_server_leaves_out_what_cannot_have_the_word(both: Both) -> None:
    if not indexes_of(both.server.remote).folds:
        pytest.skip("the server has no ICU, and cannot fold texts")
    looked: list[int] = []
    for word in ("straße", "nothing_like_it"):
        conditions = conditions_of(parse(word, now=0))
        wanted = WantedSessions(both.server, conditions.sessions, helpers=True, now=0)
        verifier = Verifier(both.server, conditions, wanted)
        walk = on_server.OnServer(both.server, verifier, [word])
        found = [one.message_id for one in walk.candidates(None) if one.message_id]
        looked.append(len(found))
        for message in found:
            texts = both.file.connection.execute(
                "SELECT data_json FROM chat_parts WHERE message_id = ?", (message,)).fetchall()
            assert any("strasse" in fold(text) or "\\u" in text for (text,) in texts), texts
    (every,) = both.file.connection.execute("SELECT count(*) FROM chat_messages").fetchone()
    assert looked[1] <= looked[0] < every and looked[0]


def test_words_of_a_part_that_grows_are_found_without_the_index(both: Both) -> None:
    there = indexes_of(cast(ServerConnection, both.server.connection))
    with closing(open_target(str(both.server.server), write=True)) as writing:
        connection = writing.connection
        part, text = connection.execute(
            "SELECT p.id, CAST(p.data_json AS text) FROM chat_parts p JOIN chat_messages m"
            " ON m.id = p.message_id WHERE p.type = 'text' ORDER BY m.created_at LIMIT 1"
        ).fetchone()
        for state in ("streaming", "done"):
            grown = json.dumps({"type": "text", "text": "twelve quaggas", "state": state},
                               separators=(",", ":"))
            connection.execute("UPDATE chat_parts SET data_json = ? WHERE id = ?", (grown, part))
            (is_left_out,) = connection.execute(
                f"SELECT {unindexed('p.data_json')} FROM chat_parts p WHERE p.id = ?", (part,)
            ).fetchone()
            assert bool(is_left_out) == (state == "streaming")
            counts = last(both.server, "quaggas").counts
            assert counts.hits + counts.archived_hits == 1
        connection.execute("UPDATE chat_parts SET data_json = ? WHERE id = ?", (text, part))
        if there.words:
            connection.script("SET enable_seqscan = off")  # type: ignore[attr-defined]
            plan = connection.execute(
                f"EXPLAIN SELECT 1 FROM chat_parts p WHERE {folded('p.data_json')} LIKE '%quagga%'"
                f" AND NOT {grows('p.data_json')}").fetchall()
            assert WORDS_INDEX in str(plan)


def test_a_partitioned_store_gets_its_indexes(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_server_store(postgres)
    partition(postgres.database_of(url), 4)
    server = open_target(url, write=True)
    session = Talk(server).session()
    assert not indexes_of(server.remote).newest and server.sql.partitions
    made, script = list[str](), ServerConnection.script

    def broken_off(self: ServerConnection, sql: str, *, patient: bool = False) -> None:
        made.append(sql)
        if "CONCURRENTLY" in sql and len(_indexes_in(made)) > limit:
            raise sqlite3.OperationalError("the server is stopped")
        script(self, sql, patient=patient)

    monkeypatch.setattr(ServerConnection, "script", broken_off)
    limit = 6
    make_indexes(server.remote)
    there = indexes_of(server.remote)
    assert there.newest and not there.words
    limit, first = 1_000, len(_indexes_in(made)) - 1
    made.clear()
    make_indexes(server.remote)
    there = indexes_of(server.remote)
    has_trigrams = trigrams(server.remote) is not None
    assert there.newest and there.words == (has_trigrams and there.folds)
    # What was made before the server stopped is not made again.
    assert first + len(_indexes_in(made)) == (12 if there.words else 4)
    made.clear()
    make_indexes(server.remote)
    assert not there.words or not made
    assert server.connection.execute(
        "SELECT id FROM chat_sessions").fetchall() == [(session,)]
    server.close()


def _indexes_in(scripts: list[str]) -> list[str]:
    return [one for one in scripts if one.startswith("CREATE INDEX CONCURRENTLY")]
