from __future__ import annotations

from pathlib import Path

import pytest

from store.engine.database import Database, open_database
from store.queries import list_keys, listing, listing_filter
from store.queries.list_options import SORTS
from store.queries.listing import ListQuery
from tests.tui.stores import MINUTE, NOW, Told, put, some


def opened(path: Path) -> Database:
    return open_database(path, write=False)


def ids(db: Database, rowids: list[int]) -> list[str]:
    rows = listing.rows_of(db, rowids)
    return [rows[rowid].id for rowid in rowids]


ORDERS = {
    "recent": "bcad", "created": "acbd", "tokens": "cdba", "cost": "cadb", "length": "dbac",
    "activity": "bcad",
}
"""The last letters of the sessions of ``test_orders`` by each sort; a new sort needs its own."""


@pytest.mark.parametrize("sort", SORTS)
def test_orders(sort: str, tmp_path: Path) -> None:
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


def test_a_row_is_what_is_stored(tmp_path: Path) -> None:
    told = Told("ses_b", "Told", "/w/other", 2, "ses_a", "subagent", "codex", "gpt-5", 12, 0.25,
                True, "running", "main")  # fmt: skip
    db = opened(put(tmp_path / "s.db", [Told("ses_a"), told]))
    row = listing.rows_of(db, [2])[2]
    at = NOW - 2 * MINUTE
    assert (row.id, row.title, row.agent, row.source, row.model, row.workspace) == (
        "ses_b", "Told", "codex", "codex", "gpt-5", "/w/other")
    assert (row.branch, row.parent_id, row.lineage, row.tokens, row.cost, row.activity) == (
        "main", "ses_a", "subagent", 12, 0.25, "running")
    assert (row.updated_at, row.archived_at, row.star, row.tags) == (at, NOW, False, ())


def test_shelves_and_workspaces(tmp_path: Path) -> None:
    told = [Told("ses_a", workspace="/w/a"), Told("ses_b", workspace="/w/a/b", archived=True),
            Told("ses_c", workspace="/w/ab")]
    db = opened(put(tmp_path / "s.db", told))

    def found(query: ListQuery) -> set[str]:
        return set(ids(db, list(list_keys.all_keys(db, query).rowids)))

    assert found(ListQuery()) == {"ses_a", "ses_c"}
    assert found(ListQuery(shelf="archived")) == {"ses_b"}
    assert found(ListQuery(shelf="all", workspace="/w/a")) == {"ses_a", "ses_b"}


def test_days_are_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened(put(tmp_path / "s.db", [Told("ses_a", age=0), Told("ses_b", age=24 * 60)]))
    keys = list_keys.all_keys(db, ListQuery(group="day"))
    assert keys.group_names == [list_keys.day_of(NOW), list_keys.day_of(NOW - 24 * 60 * MINUTE)]


def test_lineage_that_bites_its_tail_is_cut(tmp_path: Path) -> None:
    told = [Told("ses_a", parent="ses_b"), Told("ses_b", parent="ses_a"),
            Told("ses_c", parent="ses_c"), Told("ses_d", parent="ses_gone")]
    db = opened(put(tmp_path / "s.db", told))
    keys = list_keys.all_keys(db, ListQuery())
    assert len(keys.parents) == 1
    first = list_keys.first_keys(db, ListQuery(), 10)
    assert first is not None
    assert len(first.rowids) == 4


@pytest.mark.parametrize("group", ["workspace", "day", "none"])
def test_the_first_page_stands_where_the_whole_list_has_it(group: str, tmp_path: Path) -> None:
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
        ("", "anything", None), ("ab", "xxabxx", True), ("ac", "abc", False),
        ("rtlp", "retry loop", True), ("rtlp", "art loop\nlp", False),
        ("loop retry", "retry loop", True), ("loop x", "retry loop", False),
        ("a.c", "abc", False),
    ],
)
def test_matcher(query: str, text: str, found: bool | None) -> None:
    test = listing_filter.matcher(query)
    assert (None if test is None else test(text)) is found


def test_matching_reads_chunks(tmp_path: Path) -> None:
    db = opened(put(tmp_path / "s.db", [Told("ses_a", "Ünïcode TITLE"), Told("ses_b", "other")]))
    test = listing_filter.matcher("ünïcode title")
    assert test is not None
    assert listing_filter.matching(db, [1, 2, 99], test) == {1}
