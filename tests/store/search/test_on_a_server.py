"""A search on PostgreSQL finds what one in a file finds, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from store.engine.database import Database, open_database
from store.engine.opening import open_target
from store.language.query import parse
from store.search.hits import SessionHits
from store.search.running import sessions_with_hits
from store.system.records import replaced
from tests.sources.postgres_server import Server
from tests.store.engines import fill, new_server_store
from tests.store.search import naive
from tests.store.search.test_searching import asked, keys, last


class Both(NamedTuple):
    """Two stores with the same rows."""

    path: Path
    file: Database
    server: Database


@pytest.fixture(scope="module", params=[0, 1])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres: Server
) -> Iterator[Both]:
    path = naive.fill(tmp_path_factory.mktemp("search") / "store.db", request.param)
    file = open_database(path, write=False)
    url = new_server_store(postgres)
    writing = open_target(url, write=True)
    fill(writing, file)
    writing.close()
    server = open_target(url)
    yield Both(path, file, server)
    server.close()
    file.close()


def without_number(found: SessionHits) -> SessionHits:
    """Return what was found without the number that the engine gives a session."""
    return replace(found, row=replaced(found.row, rowid=0))


def test_finds_what_a_naive_search_finds(both: Both) -> None:
    for one in asked(1):
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
        on_server = last(both.server, text, **wanted)  # type: ignore[arg-type]
        in_file = last(both.file, text, **wanted)  # type: ignore[arg-type]
        assert on_server.page.cursor == in_file.page.cursor
        assert list(map(without_number, on_server.page.sessions)) == (
            list(map(without_number, in_file.page.sessions)))
        assert on_server.counts == in_file.counts
        assert on_server.facets == in_file.facets and on_server.days == in_file.days
        cursor = in_file.page.cursor
        if cursor is None:
            return
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize(
    "text", ["retry", "tool:bash", "-tool:bash", "is:error agent:claude", "期 loop", "nothing_so"])
def test_names_the_sessions_with_hits(both: Both, text: str) -> None:
    *_, on_server = filter(None, sessions_with_hits(both.server, parse(text, now=0)))
    *_, in_file = filter(None, sessions_with_hits(both.file, parse(text, now=0)))
    assert on_server == in_file
