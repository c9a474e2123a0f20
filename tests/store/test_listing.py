from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.language.query import parse
from store.queries import list_keys, listing
from store.queries.list_options import SORTS
from store.queries.listing import ListQuery
from store.queries.listing_filter import ListFilterTest, narrows
from tests.tui.stores import MINUTE, NOW, Told, put, some

Opened = Callable[[Path], Database]


def number_of(db: Database, id: str) -> int:
    """Return the number by which the list knows a session."""
    (found,) = db.connection.execute(
        f"SELECT {db.sql.rowid()} FROM chat_sessions WHERE id = ?", (id,)).fetchone()
    return int(found)


def ids(db: Database, rowids: list[int]) -> list[str]:
    rows = listing.rows_of(db, rowids)
    return [rows[rowid].id for rowid in rowids]


ORDERS = {
    "recent": "bcad", "created": "acbd", "tokens": "cdba", "cost": "cadb", "length": "dbac",
    "activity": "bcad",
}
"""The last letters of the sessions of ``test_orders`` by each sort; a new sort needs its own."""


@pytest.mark.parametrize("sort", SORTS)
def test_orders(sort: str, tmp_path: Path, opened: Opened) -> None:
    told = [Told("ses_a", age=3, tokens=5, cost=1.0), Told("ses_b", age=1, tokens=7, cost=0.5),
            Told("ses_c", age=2, tokens=9, cost=2.0),
            Told("ses_d", age=4, tokens=8, cost=0.7)]
    path = put(tmp_path / "s.db", told)
    database = open_database(path)
    for letter, created, messages in (("a", 9, 1), ("b", 7, 2), ("c", 8, 0), ("d", 6, 3)):
        values = {"1": f"ses_{letter}", "2": created}
        sql = "UPDATE chat_sessions SET created_at = $2 WHERE id = $1"
        database.connection.execute(sql, values)
        for number in range(messages):
            database.connection.execute(
                "INSERT INTO chat_messages(id, session_id, role, created_at, updated_at)"
                " VALUES ($1, $2, 'user', 1, 1)",
                {"1": f"msg_{letter}{number}", "2": f"ses_{letter}"},
            )
    database.close()
    db = opened(path)
    keys = list_keys.all_keys(db, ListQuery(sort=sort))
    assert ids(db, list(keys.rowids)) == [f"ses_{letter}" for letter in ORDERS[sort]]


def test_a_row_is_what_is_stored(tmp_path: Path, opened: Opened) -> None:
    told = Told("ses_b", "Told", "/w/other", 2, "ses_a", "subagent", "codex", "gpt-5", 12, 0.25,
                True, "running", "main")  # fmt: skip
    db = opened(put(tmp_path / "s.db", [Told("ses_a"), told]))
    (row,) = listing.rows_of(db, [number_of(db, "ses_b")]).values()
    at = NOW - 2 * MINUTE
    assert (row.id, row.title, row.agent, row.source, row.model, row.workspace) == (
        "ses_b", "Told", "codex", "codex", "gpt-5", "/w/other")
    assert (row.branch, row.parent_id, row.lineage, row.tokens, row.cost, row.activity) == (
        "main", "ses_a", "subagent", 12, 0.25, "running")
    assert (row.updated_at, row.archived_at, row.star, row.tags) == (at, NOW, False, ())


def test_shelves_and_workspaces(tmp_path: Path, opened: Opened) -> None:
    told = [Told("ses_a", workspace="/w/a"), Told("ses_b", workspace="/w/a/b", archived=True),
            Told("ses_c", workspace="/w/ab")]
    db = opened(put(tmp_path / "s.db", told))

    def found(query: ListQuery) -> set[str]:
        return set(ids(db, list(list_keys.all_keys(db, query).rowids)))

    assert found(ListQuery()) == {"ses_a", "ses_c"}
    assert found(ListQuery(shelf="archived")) == {"ses_b"}
    assert found(ListQuery(shelf="all")) == {"ses_a", "ses_b", "ses_c"}
    assert found(ListQuery(shelf="all", workspace="/w/a")) == {"ses_a", "ses_b"}


def test_days_are_local(tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened(put(tmp_path / "s.db", [Told("ses_a", age=0), Told("ses_b", age=24 * 60)]))
    keys = list_keys.all_keys(db, ListQuery(group="day"))
    assert keys.group_names == [list_keys.day_of(NOW), list_keys.day_of(NOW - 24 * 60 * MINUTE)]


def test_lineage_that_bites_its_tail_is_cut(tmp_path: Path, opened: Opened) -> None:
    told = [Told("ses_a", parent="ses_b"), Told("ses_b", parent="ses_a"),
            Told("ses_c", parent="ses_c"), Told("ses_d", parent="ses_gone")]
    db = opened(put(tmp_path / "s.db", told))
    keys = list_keys.all_keys(db, ListQuery())
    assert len(keys.parents) == 1
    first = list_keys.first_keys(db, ListQuery(), 10)
    assert first is not None
    assert len(first.rowids) == 4


@pytest.mark.parametrize("group", ["workspace", "day", "none"])
def test_the_first_page_stands_where_the_whole_list_has_it(
    group: str, tmp_path: Path, opened: Opened
) -> None:
    told = some(200)
    for number in range(0, 150, 7):
        told[number].parent = told[number + 30].id
    db = opened(put(tmp_path / "s.db", told))
    query = ListQuery(group=group)
    from tui.sessions.model import build_model

    first = list_keys.first_keys(db, query, 40)
    assert first is not None
    head = build_model(first, {}).rowids[:20]
    assert head == build_model(list_keys.all_keys(db, query), {}).rowids[:20]


def test_damaged_json_costs_just_itself(tmp_path: Path) -> None:
    path = put(tmp_path / "s.db", [Told("ses_a", "Kept")])
    db = open_database(path)
    db.connection.execute("UPDATE chat_sessions SET model_json = '[', permissions_json = '{'")
    (row,) = listing.rows_of(db, [1]).values()
    assert (row.title, row.model, row.source) == ("Kept", None, "claude-code")


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("ab", "xxabxx", True), ("ac", "abc", False),
        ("rtlp", "retry loop", True), ("rtlp", "art loop\nlp", False),
        ("loop retry", "retry loop", True), ("loop x", "retry loop", False),
        ("a.c", "abc", False), ("retryloop", "Retry-Loop", True), ("retryloopx", "retry", False),
        ('"retry loop"', "the RETRY  loop", True), ('"rtry loop"', "retry loop", False),
        ("-loop", "retry loop", False), ("-lp", "retry loop", True), ("re:/^ret/", "retry", True),
        ("re:/^Ret/", "retry", False), ("strasse", "Straße", True),
    ],
)
def test_words_of_the_filter(
    query: str, text: str, found: bool, tmp_path: Path, opened: Opened
) -> None:
    db = opened(put(tmp_path / "s.db", [Told("ses_a", text, workspace=None)]))
    test = ListFilterTest(parse(query, now=NOW))
    number = number_of(db, "ses_a")
    assert test.matching(db, [number], NOW) == ({number} if found else set())


def test_matching_reads_chunks(tmp_path: Path, opened: Opened) -> None:
    db = opened(put(tmp_path / "s.db", [Told("ses_a", "Ünïcode TITLE"), Told("ses_b", "other")]))
    test = ListFilterTest(parse("ünïcode title", now=NOW))
    one, other = number_of(db, "ses_a"), number_of(db, "ses_b")
    assert test.matching(db, [one, other, 99], NOW) == {one}


def test_fields_and_words_of_the_filter(tmp_path: Path, opened: Opened) -> None:
    db = opened(put(tmp_path / "s.db", [
        Told("ses_a", "Retry", source="codex"), Told("ses_b", "Retry", activity="error", age=9_999),
        Told("ses_c", "other", activity="error", age=9_999),
    ]))

    names = {number_of(db, f"ses_{letter}"): letter for letter in "abc"}

    def found(query: str) -> str:
        matching = ListFilterTest(parse(query, now=NOW)).matching(db, list(names), NOW)
        return "".join(sorted(names[number] for number in matching))

    assert found("retry agent:codex") == "a"
    assert found("is:error") == "bc"
    assert found("is:error retry") == "b"
    assert found("-is:error") == "a"
    assert found("retry -agent:codex") == "b"
    assert found("is:hidden") == "" and found("-is:hidden") == "abc"


@pytest.mark.parametrize(("query", "parts", "needed"), [
    ("retry", True, False), ("-retry", False, False), ("agent:x", False, False),
    ("is:error", False, False), ("is:hidden retry", True, False), ("tool:bash", True, True),
    ("is:denied", True, True), ("is:error tool:bash", True, True), ("in:title retry", True, True),
    ("file:x agent:y", True, True),
])
def test_what_the_filter_leaves_to_the_search(query: str, parts: bool, needed: bool) -> None:
    test = ListFilterTest(parse(query, now=NOW))
    assert (test.asks_for_parts, test.needs_parts) == (parts, needed)


@pytest.mark.parametrize(("before", "query", "narrower"), [
    ("ret", "retry", True), ("re", "ret", False), ("retry", "retry loop", True),
    ("retry", "retry agent:codex", True), ("agent:codex", "agent:codex,pi", False),
    ("agent:codex", "agent:codex agent:pi", False), ("agent:codex", "agent:codex is:fork", True),
    ("-foo", "-fool", False), ("-foo", "-foo bar", True), ('"re tr', '"re try', True),
    ("re:/ab/", "re:/abc/", False), ("retry", "rets", False), ("", "retry", False),
    ("cost:>1", "cost:>1 cost:>10", True), ("cost:>1", "cost:>10", False),
])
def test_when_a_query_narrows_the_one_before(before: str, query: str, narrower: bool) -> None:
    assert narrows(parse(query, now=NOW), parse(before, now=NOW)) is narrower


def test_a_long_word_takes_no_longer_with_every_letter(tmp_path: Path, opened: Opened) -> None:
    db = opened(put(tmp_path / "s.db", [Told("ses_a", "a" * 5_000)]))
    for word in ("a" * 7 + "b", "a" * 60 + "b"):
        number = number_of(db, "ses_a")
        assert ListFilterTest(parse(word, now=NOW)).matching(db, [number], NOW) == set()
