"""The search finds what a naive one finds, in the same order, in pages of any size."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.language.query import parse
from store.search import running
from store.search.hits import Hit, Update
from store.search.index import blocks, building
from store.search.index.building import Indexer
from store.search.index.reading import Index, open_index
from store.search.running import Request, Run, sessions_with_hits
from tests.store.making import add_message, add_part, add_session
from tests.store.search import naive
from tests.store.search.naive import WORDS, Asked

SEEDS = [seed if seed < 4 else pytest.param(seed, marks=pytest.mark.long) for seed in range(8)]
SEED_OF: dict[Path, int] = {}
FILES_ASKED = ("worker.py", "src", "/w/src/sync/worker.py", "retry_loop", "w/src", "uberlange", "w")


@pytest.fixture(scope="module", params=SEEDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("search") / "store.db"
    SEED_OF[path] = request.param
    return naive.fill(path, request.param)


@pytest.fixture(scope="module")
def indexed(store: Path) -> Iterator[Index]:
    """The index of the store, complete; of every other store in many blocks, most of them full."""
    with pytest.MonkeyPatch.context() as patch:
        if SEED_OF[store] % 2:
            patch.setattr(building, "CAPACITY", 3)
            patch.setattr(blocks, "FULL", 2)
        yield from built(store)


def built(store: Path, steps: int = 10_000) -> Iterator[Index]:
    """Yield the index of a store after so many steps of its indexer, or all."""
    indexer = Indexer(store)
    for _ in range(steps):
        indexer.look()
        if not indexer.step() and indexer.idle:
            break
    indexer.close()
    index = open_index(store)
    assert index is not None
    yield index
    index.close()


def last(db: Database, text: str, index: Index | None = None, **more: object) -> Update:
    """Return the last update of a search."""
    query = parse(text, now=10**12)
    assert not query.problems, query.problems
    request = Request(query, **more)  # type: ignore[arg-type]
    updates = [one for one in Run(db, request, index).steps() if one is not None]
    assert updates[-1].done and not any(one.done for one in updates[:-1])
    return updates[-1]


def keys(hits: list[Hit]) -> list[naive.Key]:
    return [(hit.message_id or hit.session_id, hit.index) for hit in hits]


def asked(seed: int) -> Iterator[Asked]:
    """Yield queries: each word alone, and many at random."""
    chosen = random.Random(seed)
    for word in (*WORDS, "etryl", "ync", "期", "試行", "nothing_like_it"):
        yield Asked([word])
        yield Asked(phrases=[word])
    for name in FILES_ASKED:
        yield Asked(file=name)
    for _ in range(120):
        yield Asked(
            words=chosen.sample(WORDS, chosen.choice((0, 1, 1, 2, 2, 3))),
            phrases=[" ".join(chosen.choices(WORDS, k=2))] if chosen.random() < 0.1 else [],
            without=chosen.sample(("retry", "uber", "日本", "x"), chosen.choice((0, 0, 1))),
            places=chosen.choice(([], [], [], ["output"], ["prompt", "title"], ["title"])),
            role=chosen.choice((None, None, None, "user", "assistant")),
            tool=chosen.choice((None, None, None, "bash", "github")),
            file=chosen.choice(FILES_ASKED) if chosen.random() < 0.2 else None,
            agent=chosen.choice((None, None, None, "claude", "codex")),
            hidden=chosen.random() < 0.2, failed=chosen.random() < 0.15,
            archived=chosen.random() < 0.15,
        )


def finds_all(store: Path, index: Index | None, seed: int) -> None:
    """Compare a search with the naive one, for many queries."""
    db = open_database(store, write=False)
    for one in asked(seed):
        if not one.text:
            continue
        found = last(db, one.text, index, limit=1000)
        expected, archived = naive.search(store, one)
        assert keys(found.page.in_order) == expected, one
        assert found.counts.hits == len(expected), one
        assert found.counts.archived_hits == len(archived), one
        assert found.counts.whole
    db.close()


@pytest.mark.one_in(2)
def test_finds_what_a_naive_search_finds(store: Path) -> None:
    finds_all(store, None, 1)


@pytest.mark.one_in(2)
def test_finds_the_same_with_an_index(store: Path, indexed: Index) -> None:
    assert indexed.coverage().whole
    finds_all(store, indexed, 1)


@pytest.mark.one_in(2)
def test_finds_the_same_with_a_stale_index(store: Path, tmp_path: Path) -> None:
    """Rows that are deleted, hidden, written anew and added after the index was built."""
    path = tmp_path / "store.db"
    shutil.copy(store, path)
    for index in built(path):
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA foreign_keys = ON")
        hidden = "json_set(metadata_json, '$.hidden_at', 9)"
        connection.execute(f"UPDATE chat_messages SET metadata_json = {hidden} WHERE id LIKE '%m1'")
        connection.execute("DELETE FROM chat_messages WHERE id LIKE '%m2'")
        text = '{"type": "text", "text": "retry 期 x"}'
        connection.execute(
            "UPDATE chat_parts SET type = 'text', data_json = ? WHERE id LIKE '%m3_p0'", (text,))
        add_session(connection, "ses_new", at=60, metadata={"title": "retry loop"})
        add_message(connection, "ses_new", "ses_new_m0", 61, role="assistant")
        add_part(connection, "ses_new", "ses_new_m0", "new", 0,
                 data={"type": "text", "text": "uber loop ERROR"})
        for (name,) in connection.execute("SELECT id FROM chat_sessions").fetchall():
            connection.execute(
                "INSERT INTO changes(session_id, changed_at) VALUES (?, 0)", (name,))
        connection.commit()
        connection.close()
        finds_all(path, index, 2)


@pytest.mark.one_in(4)
def test_finds_the_same_with_an_index_that_is_half_made(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "FIRST_DOCUMENTS", 4)
    monkeypatch.setattr(building, "BLOCK_CHARACTERS", 60)
    path = tmp_path / "store.db"
    shutil.copy(store, path)
    for steps in (1, 2):
        for index in built(path, steps):
            finds_all(path, index, 3)


@pytest.mark.parametrize("with_index", [False, True])
@pytest.mark.parametrize("order", ["newest", "best"])
@pytest.mark.parametrize("text", ["retry", "x", "in:prompt,output,text", "retry loop", "期"])
@pytest.mark.one_in(3)
def test_pages_are_one_big_page(
    store: Path, indexed: Index, text: str, order: str, with_index: bool
) -> None:
    index = indexed if with_index else None
    db = open_database(store, write=False)
    whole = keys(last(db, text, index, limit=1000, order=order).page.in_order)
    for limit in (1, 2, 3, 7):
        pages: list[naive.Key] = []
        cursor: str | None = None
        for _ in range(len(whole) + 1):
            page = last(db, text, index, limit=limit, order=order, cursor=cursor,
                        counting=False).page
            assert len(page.hits) <= limit
            pages += keys(page.in_order)
            cursor = page.cursor
            if cursor is None:
                break
        assert pages == whole
    db.close()


def test_the_best_are_of_the_newest_hits(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = open_database(store, write=False)
    everything = last(db, "x", limit=1000)
    newest = keys(everything.page.in_order)[:4]
    monkeypatch.setattr(running, "MOST_RANKED", 4)
    for counting in (True, False):
        best = last(db, "x", order="best", counting=counting)
        scores = [hit.score for hit in best.page.in_order]
        assert scores == sorted(scores, reverse=True)
        assert set(newest) <= set(keys(best.page.hits))
        assert len(best.page.hits) <= len(newest) + 3
        if counting:
            assert best.counts.hits == everything.counts.hits
    db.close()


def test_names_the_sessions_with_hits(store: Path) -> None:
    db = open_database(store, write=False)
    for text in ("retry", "tool:bash", "is:error agent:claude", "期 loop", "nothing_like_it"):
        *_, found = (one for one in sessions_with_hits(db, parse(text, now=0)) if one is not None)
        hits = last(db, text, limit=1000)
        assert not found.why and {one.row.id for one in hits.page.sessions} <= found.ids
        assert len(found.ids) >= hits.counts.sessions + hits.counts.archived_sessions
    db.close()


def test_a_page_only_grows(store: Path) -> None:
    db = open_database(store, write=False)
    shown: list[naive.Key] = []
    for update in Run(db, Request(parse("retry", now=0)), None).steps():
        if update is not None:
            now = keys(update.page.in_order)
            assert now[: len(shown)] == shown
            shown = now
    db.close()


def test_facets_add_up(store: Path) -> None:
    db = open_database(store, write=False)
    found = last(db, "in:prompt,text,output,input")
    facets = found.facets
    for name in ("agent", "workspace", "role", "where", "month"):
        assert sum(facets[name].values()) == found.counts.hits
        assert list(facets[name].values()) == sorted(facets[name].values(), reverse=True)
    months: Counter[str] = Counter()
    for day, hits in found.days.items():
        months[day[:7]] += hits
    assert months == facets["month"]
    for name, count in facets["where"].items():
        assert last(db, f"in:prompt,text,output,input in:{name}").counts.hits >= count
    for name, count in facets["role"].items():
        assert last(db, f"in:prompt,text,output,input role:{name}").counts.hits == count
    db.close()


def test_marks_are_where_the_words_are(store: Path) -> None:
    db = open_database(store, write=False)
    for word in WORDS:
        for hit in last(db, word).page.hits:
            assert hit.excerpt.marks, (word, hit)
            for start, end in hit.excerpt.marks:
                marked = hit.excerpt.text[start:end]
                assert naive.holds(marked, word), (word, marked)
    db.close()


def test_hits_of_a_session_can_be_bounded(store: Path) -> None:
    db = open_database(store, write=False)
    whole = last(db, "in:prompt,text,output", limit=1000)
    some = last(db, "in:prompt,text,output", limit=1000, per_session=2)
    assert [len(one.hits) + one.more for one in some.page.sessions] == (
        [len(one.hits) for one in whole.page.sessions])
    assert all(len(one.hits) <= 2 for one in some.page.sessions)
    db.close()
